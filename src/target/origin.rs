//! One server, in its one spelling.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::group::{address, registrable_domain};
use super::normalize::{Rejection, locate};

/// `scheme://host[:port]`, canonical: the port is left out when it is the scheme's default.
///
/// Two origins are equal exactly when they are the same server. A clone is a counted reference.
/// Reading one ([`FromStr`], serde) accepts any spelling and canonicalises it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Origin(Arc<str>);

/// The two schemes that are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// In clear text; port 80 unless the origin says otherwise.
    Http,
    /// Over TLS; port 443 unless the origin says otherwise.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that is meant when a URL names none (RFC 9110 sections 4.2.1 and 4.2.2).
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OriginError {
    /// It is no URL that could be called.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// It is a URL with a path, query, fragment or userinfo, so it means more than a server.
    #[error("an origin is scheme://host[:port] and nothing more")]
    NotBare,
}

impl Origin {
    /// `text` must be what [`locate`] made of a URL.
    pub(super) fn from_canonical(text: &str) -> Self {
        Self(text.into())
    }

    /// The canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        if self.0.starts_with("https:") {
            Scheme::Https
        } else {
            Scheme::Http
        }
    }

    /// The host as it stands in the text: lower case, punycode, IPv6 in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host_and_port().0
    }

    /// The port that is dialled.
    #[must_use]
    pub fn port(&self) -> u16 {
        let written = self.host_and_port().1;
        written.unwrap_or_else(|| self.scheme().default_port())
    }

    /// The address, when the host is one and not a name.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        address(self.host())
    }

    /// The neighbours that share a budget with this server: its registrable domain, whatever the
    /// scheme and port. See [`registrable_domain`].
    #[must_use]
    pub fn group(&self) -> &str {
        registrable_domain(self.host())
    }

    fn host_and_port(&self) -> (&str, Option<u16>) {
        let authority = self.0.split_once("://").map_or(&*self.0, |(_, rest)| rest);
        match authority.rsplit_once(':') {
            // The last colon of a bare IPv6 literal is inside the brackets.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (authority, None),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let located = locate(text)?;
        let bare = located.url.path() == "/" && located.url.query().is_none();
        if bare && located.credentials.is_none() && !text.contains('#') {
            Ok(located.origin)
        } else {
            Err(OriginError::NotBare)
        }
    }
}

impl TryFrom<String> for Origin {
    type Error = OriginError;

    fn try_from(text: String) -> Result<Self, OriginError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Origin {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_parts_are_read_from_the_text() {
        for (text, scheme, host, port, ip) in [
            ("http://example.com", Scheme::Http, "example.com", 80, None),
            ("https://a.test:8443", Scheme::Https, "a.test", 8443, None),
            ("https://[::1]", Scheme::Https, "[::1]", 443, Some("::1")),
            ("http://[::1]:81", Scheme::Http, "[::1]", 81, Some("::1")),
            (
                "http://10.0.0.1:8080",
                Scheme::Http,
                "10.0.0.1",
                8080,
                Some("10.0.0.1"),
            ),
        ] {
            let origin = origin(text);
            assert_eq!(origin.as_str(), text);
            assert_eq!(origin.scheme(), scheme, "{text}");
            assert_eq!(origin.host(), host, "{text}");
            assert_eq!(origin.port(), port, "{text}");
            assert_eq!(origin.ip().map(|ip| ip.to_string()).as_deref(), ip);
        }
    }

    #[test]
    fn any_spelling_is_read_into_the_canonical_one() {
        assert_eq!(
            origin("HTTPS://Example.com:443/"),
            origin("wss://example.com.")
        );
    }

    #[test]
    fn more_than_a_server_is_no_origin() {
        for text in [
            "https://example.com/a",
            "https://example.com//",
            "https://example.com?q",
            "https://example.com?",
            "https://example.com#x",
            "https://me@example.com",
        ] {
            assert_eq!(text.parse::<Origin>(), Err(OriginError::NotBare), "{text}");
        }
    }
}
