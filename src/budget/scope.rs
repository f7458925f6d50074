//! Whose budget a bucket holds.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::target::{Class, Origin, TargetKey};

/// The scope of a bucket, in the order in which buckets are locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// A budget that a file shares between several targets.
    Pool(Arc<str>),
    /// Neighbours: a registrable domain, the hosts of one pattern, or one class
    /// of the hosts of one pattern.
    Group(Arc<str>),
    /// One scheme, host and port.
    Host(Origin),
    /// One class of a host's paths.
    Class(Origin, Class),
}

impl Scope {
    /// The kind, as decisions name it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Pool(_) => "pool",
            Self::Group(_) => "group",
            Self::Host(_) => "host",
            Self::Class(..) => "class",
        }
    }

    /// The name inside its kind.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Pool(name) | Self::Group(name) => name.to_string(),
            Self::Host(origin) => origin.to_string(),
            Self::Class(origin, class) => TargetKey {
                origin: origin.clone(),
                class: class.clone(),
            }
            .to_string(),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), self.name())
    }
}

/// A text that names no scope.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{0}` is no scope: write pool:NAME, group:NAME, host:ORIGIN or class:TARGET")]
pub struct ScopeError(String);

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let error = || ScopeError(text.to_owned());
        let (kind, name) = text.split_once(':').ok_or_else(error)?;
        Ok(match kind {
            "pool" => Self::Pool(name.into()),
            "group" => Self::Group(name.into()),
            "host" => Self::Host(name.parse().map_err(|_| error())?),
            "class" => {
                let key: TargetKey = name.parse().map_err(|_| error())?;
                Self::Class(key.origin, key.class)
            }
            _ => return Err(error()),
        })
    }
}

impl TryFrom<String> for Scope {
    type Error = ScopeError;
    fn try_from(text: String) -> Result<Self, ScopeError> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_is_read_as_it_is_written() {
        for text in [
            "pool:github",
            "group:example.org",
            "group://*.example.org",
            "group://example.org#search",
            "host:https://api.example.org:8443",
            "class:https://api.example.org#search",
        ] {
            let scope: Scope = text.parse().unwrap();
            assert_eq!(scope.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_scope_is_refused() {
        for text in [
            "",
            "pool",
            "domain:example.org",
            "host:example.org",
            "host:https://example.org#search",
            "class:https://example.org#a b",
            "class:example.org#search",
        ] {
            assert!(text.parse::<Scope>().is_err(), "{text}");
        }
    }
}
