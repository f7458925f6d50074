//! The key under which a budget is kept.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::class::{Class, ClassNameError};
use super::origin::{Origin, OriginError};

/// A server and a class of it: `scheme://host[:port][#class]`, the class left out when it is
/// `default`. The text form is also the serde form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct TargetKey {
    /// The server.
    pub origin: Origin,
    /// Which part of it.
    pub class: Class,
}

/// Why a text is no target key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetKeyError {
    /// What stands before the `#` is no server.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// What stands after the `#` is no class.
    #[error(transparent)]
    Class(#[from] ClassNameError),
}

impl TargetKey {
    /// The key of a class of a server.
    #[must_use]
    pub fn new(origin: Origin, class: Class) -> Self {
        Self { origin, class }
    }
}

impl From<Origin> for TargetKey {
    fn from(origin: Origin) -> Self {
        Self::new(origin, Class::default())
    }
}

impl fmt::Display for TargetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.origin.as_str())?;
        if self.class.is_default() {
            return Ok(());
        }
        write!(f, "#{}", self.class.as_str())
    }
}

impl FromStr for TargetKey {
    type Err = TargetKeyError;

    /// Reads what `Display` writes, and any other spelling of the server.
    fn from_str(text: &str) -> Result<Self, TargetKeyError> {
        match text.split_once('#') {
            Some((origin, class)) => Ok(Self::new(origin.parse()?, class.parse()?)),
            None => Ok(Self::from(text.parse::<Origin>()?)),
        }
    }
}

impl TryFrom<String> for TargetKey {
    type Error = TargetKeyError;

    fn try_from(text: String) -> Result<Self, TargetKeyError> {
        text.parse()
    }
}

impl Serialize for TargetKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::value::{Error as ValueError, StrDeserializer};

    use super::*;

    struct Serialized<T>(T);

    impl<T: Serialize> fmt::Display for Serialized<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.serialize(f)
        }
    }

    fn deserialized<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, ValueError> {
        T::deserialize(StrDeserializer::new(text))
    }

    #[test]
    fn every_spelling_reads_as_one_key() {
        for (text, key) in [
            (
                "https://api.github.com#search",
                "https://api.github.com#search",
            ),
            ("https://api.github.com", "https://api.github.com"),
            ("https://api.github.com#default", "https://api.github.com"),
            ("HTTPS://Example.com:443/", "https://example.com"),
            ("HTTPS://Example.com.:443/#v1.x", "https://example.com#v1.x"),
            ("ws://[::ffff:127.0.0.1]:80#s", "http://127.0.0.1#s"),
        ] {
            let read: TargetKey = text.parse().expect(text);
            assert_eq!(read.to_string(), key, "{text}");
            assert_eq!(deserialized::<TargetKey>(text), Ok(read.clone()), "{text}");
            assert_eq!(Serialized(&read).to_string(), key);
        }
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_part() {
        let error = |text: &str| text.parse::<TargetKey>().expect_err(text);
        for text in [
            "https://a.test#",
            "https://a.test#a b",
            "https://a.test#a#b",
        ] {
            assert_eq!(error(text), TargetKeyError::Class(ClassNameError));
        }
        for text in [
            "https://a.test/x#c",
            "https://a.test?q#c",
            "https://u@a.test",
        ] {
            assert_eq!(error(text), TargetKeyError::Origin(OriginError::NotBare));
        }
        for text in ["", "#c", "a.test", "ftp://a.test#c", "https://a.test..#c"] {
            let rejected = matches!(
                error(text),
                TargetKeyError::Origin(OriginError::Rejected(_))
            );
            assert!(rejected, "{text}");
            assert!(deserialized::<TargetKey>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_parts_are_validated_when_deserialized_alone() {
        let origin: Origin = deserialized("HTTP://A.test:80").expect("an origin");
        assert_eq!(Serialized(&origin).to_string(), "http://a.test");
        assert!(deserialized::<Origin>("http://a.test/x").is_err());
        let class: Class = deserialized("search").expect("a class");
        assert_eq!(Serialized(&class).to_string(), "search");
        assert_eq!(Serialized(Class::default()).to_string(), "default");
        assert!(deserialized::<Class>("a b").is_err());
    }

    #[test]
    fn keys_sort_like_their_text() {
        let mut keys: Vec<TargetKey> = ["https://b.test", "https://a.test#z", "https://a.test"]
            .map(|text| text.parse().expect(text))
            .into();
        keys.sort();
        let sorted: Vec<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(
            sorted,
            ["https://a.test", "https://a.test#z", "https://b.test"]
        );
    }
}
