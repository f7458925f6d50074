//! The name of a part of a target.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

const DEFAULT: &str = "default";

/// A class: `default`, or the name of a rule, of `A-Z a-z 0-9 _ . -`.
///
/// A clone is a counted reference. `default` sorts before all others.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
// None is `default`: most calls have it, and must not share one reference count.
pub struct Class(Option<Arc<str>>);

/// Why a text is no class name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a class is named with letters, digits, `_`, `.` and `-`")]
pub struct ClassNameError;

impl Class {
    /// The class of this name.
    ///
    /// # Errors
    /// When the name is empty or holds any other character than those of class names.
    pub fn new(name: &str) -> Result<Self, ClassNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if name.is_empty() || !name.bytes().all(allowed) {
            return Err(ClassNameError);
        }
        Ok(Self((name != DEFAULT).then(|| name.into())))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(DEFAULT)
    }

    /// Whether this is the class of calls that no rule names.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Class").field(&self.as_str()).finish()
    }
}

impl FromStr for Class {
    type Err = ClassNameError;

    fn from_str(name: &str) -> Result<Self, ClassNameError> {
        Self::new(name)
    }
}

impl TryFrom<String> for Class {
    type Error = ClassNameError;

    fn try_from(name: String) -> Result<Self, ClassNameError> {
        Self::new(&name)
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_by_name_is_the_default() {
        let named: Class = "default".parse().expect("a class name");
        assert_eq!(named, Class::default());
        assert!(named.is_default());
        assert_eq!(named.to_string(), "default");
        assert!(named < Class::new("a").expect("a class name"));
    }

    #[test]
    fn only_plain_names_are_class_names() {
        for name in ["search", "v1.0_b-C", "Default", "0"] {
            assert_eq!(Class::new(name).expect(name).as_str(), name);
        }
        for name in ["", " ", "a b", "a#b", "a/b", "é", "a\n"] {
            assert_eq!(Class::new(name), Err(ClassNameError), "{name:?}");
        }
    }
}
