//! Which hosts a rule speaks of.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::rule::Sharing;
use crate::target::{Origin, Scheme, locate};

/// Which hosts a rule speaks of: `https://api.github.com`, `example.org`
/// (both schemes, every port) or `*.example.org` (every host below it).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPattern {
    scheme: Option<Scheme>,
    hosts: Hosts,
    port: Option<u16>,
    pub(super) text: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Hosts {
    One(Arc<str>),
    Below(Arc<str>),
}

/// Why a text is no host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("matches no host ({why}): write scheme://host[:port], host[:port] or *.domain")]
pub struct PatternError {
    // Never the text itself: a URL may hold a password.
    why: String,
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let error = |why: String| PatternError { why };
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, text),
        };
        let (below, name) = match rest.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, rest),
        };
        if name.contains('*') {
            return Err(error("a star stands for whole labels, at the front".into()));
        }
        let spelled = format!("{}://{name}", scheme.unwrap_or("http"));
        let located = locate(&spelled).map_err(|rejection| error(rejection.detail))?;
        if located.credentials.is_some() {
            return Err(error("a host has no user and no password".into()));
        }
        if name.contains(['/', '\\', '?', '#']) {
            return Err(error("a path belongs to a class".into()));
        }
        let origin = located.origin;
        if below && origin.ip().is_some() {
            return Err(error("an address has no subdomains".into()));
        }
        let names_port = scheme.is_some()
            || name
                .rsplit_once(':')
                .is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'));
        let port = names_port.then(|| origin.port());
        let host: Arc<str> = origin.host().into();
        let star = if below { "*." } else { "" };
        let text = match (scheme, port) {
            (Some(_), _) => match origin.as_str().split_once("://") {
                Some((scheme, rest)) => format!("{scheme}://{star}{rest}"),
                None => return Err(error("no scheme".into())),
            },
            (None, Some(port)) => format!("{star}{host}:{port}"),
            (None, None) => format!("{star}{host}"),
        };
        Ok(Self {
            scheme: scheme.map(|_| origin.scheme()),
            hosts: if below {
                Hosts::Below(host)
            } else {
                Hosts::One(host)
            },
            port,
            text: text.into(),
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl HostPattern {
    pub(super) fn matches(&self, origin: &Origin) -> bool {
        let host = origin.host();
        self.scheme.is_none_or(|scheme| scheme == origin.scheme())
            && self.port.is_none_or(|port| port == origin.port())
            && match &self.hosts {
                Hosts::One(name) => **name == *host,
                Hosts::Below(domain) => host
                    .strip_suffix(&**domain)
                    .is_some_and(|front| front.ends_with('.') && front.len() > 1),
            }
    }

    /// The more specific pattern is the greater: one host before a domain, a
    /// longer domain before a shorter, then a port, then a scheme.
    pub(super) fn specificity(&self) -> (usize, usize, bool, bool) {
        let (kind, length) = match &self.hosts {
            Hosts::One(name) => (1, name.len()),
            Hosts::Below(domain) => (0, domain.len()),
        };
        (kind, length, self.port.is_some(), self.scheme.is_some())
    }

    /// The one origin that can match, where it is one.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        self.is_one_origin()
            .then(|| self.text.parse().ok())
            .flatten()
    }

    /// True when exactly one origin can match.
    pub(super) fn is_one_origin(&self) -> bool {
        matches!(self.hosts, Hosts::One(_)) && self.scheme.is_some()
    }

    /// The texts of the two patterns, one a scheme, that leave nothing to this
    /// one; none when no number of others could.
    pub(super) fn shadows(&self) -> Option<[Arc<str>; 2]> {
        let (None, Some(_)) = (self.scheme, self.port) else {
            return None;
        };
        let with = |scheme: Scheme| format!("{scheme}://{}", self.text).parse::<Self>();
        match (with(Scheme::Http), with(Scheme::Https)) {
            (Ok(http), Ok(https)) => Some([http.text, https.text]),
            _ => None,
        }
    }

    /// The name of the budget that a host draws from under this pattern. Never
    /// a bare host name: those are the groups of hosts that no rule names, and
    /// two budgets under one name would be one.
    pub(super) fn budget_name(&self, sharing: Sharing, host: &str) -> Arc<str> {
        let name = match (sharing, &self.hosts) {
            (Sharing::PerHost, Hosts::Below(domain)) => {
                self.text.replacen(&format!("*.{domain}"), host, 1)
            }
            _ => self.text.to_string(),
        };
        // As in a reference without a scheme.
        let front = if name.contains("://") { "" } else { "//" };
        format!("{front}{name}").into()
    }

    /// True when [`Self::budget_name`] gives this name for some host.
    pub(super) fn can_name_budget(&self, sharing: Sharing, name: &str) -> bool {
        let (Sharing::PerHost, Hosts::Below(domain)) = (sharing, &self.hosts) else {
            return *self.budget_name(sharing, "") == *name;
        };
        let whole = self.budget_name(Sharing::Together, "");
        let around = whole.split_once(&format!("*.{domain}"));
        let host = around.and_then(|(front, back)| name.strip_prefix(front)?.strip_suffix(back));
        host.is_some_and(|host| {
            let origin = format!("http://{host}").parse::<Origin>();
            let is_host = origin.is_ok_and(|origin| origin.host() == host);
            let front = host.strip_suffix(&**domain);
            is_host
                && !host.contains('*')
                && front.is_some_and(|front| front.len() > 1 && front.ends_with('.'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_spelling_of_a_pattern_is_shown_as_one() {
        for (text, shown) in [
            ("HTTPS://API.example.org:443", "https://api.example.org"),
            ("wss://a.test", "https://a.test"),
            ("Example.org.", "example.org"),
            ("example.org:", "example.org"),
            ("example.org:080", "example.org:80"),
            ("*.Bücher.example", "*.xn--bcher-kva.example"),
            ("http://*.a.test:8080", "http://*.a.test:8080"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[::1]:81", "[::1]:81"),
        ] {
            assert_eq!(pattern(text).to_string(), shown, "{text}");
            assert_eq!(pattern(shown), pattern(text), "{text}");
        }
    }

    #[test]
    fn a_pattern_matches_the_hosts_it_speaks_of() {
        for (text, origin, matches) in [
            ("https://a.test", "https://a.test", true),
            ("https://a.test", "http://a.test", false),
            ("https://a.test", "https://a.test:8443", false),
            ("a.test", "http://a.test:8080", true),
            ("a.test", "https://b.a.test", false),
            ("a.test:8080", "https://a.test:8080", true),
            ("a.test:8080", "http://a.test", false),
            ("*.a.test", "https://c.b.a.test:1", true),
            ("*.a.test", "https://a.test", false),
            ("*.a.test", "https://ba.test", false),
            ("http://*.a.test", "http://b.a.test", true),
            ("http://*.a.test", "https://b.a.test", false),
        ] {
            let origin = origin.parse().unwrap();
            assert_eq!(pattern(text).matches(&origin), matches, "{text} {origin}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_without_being_repeated() {
        for text in [
            "",
            "*",
            "*.",
            "a.*.test",
            "**.a.test",
            "ftp://a.test",
            "https://a.test/",
            "https://a.test/x",
            "https://a.test\\x",
            "a.test?q=hunter2",
            "https://ada:hunter2@a.test",
            "ada:hunter2@a.test",
            "*.10.0.0.1",
            "a..test",
            "::1",
        ] {
            let error = text.parse::<HostPattern>().unwrap_err().to_string();
            assert!(error.contains("write scheme://"), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{text}: {error}");
        }
    }

    #[test]
    fn no_budget_of_a_rule_is_named_like_the_group_of_hosts_without_one() {
        for (text, sharing, name) in [
            ("a.test", Sharing::Together, "//a.test"),
            ("a.test:81", Sharing::Together, "//a.test:81"),
            ("*.a.test", Sharing::Together, "//*.a.test"),
            ("http://*.a.test", Sharing::Together, "http://*.a.test"),
            ("*.a.test", Sharing::PerHost, "//b.a.test"),
            ("*.a.test:81", Sharing::PerHost, "//b.a.test:81"),
            ("http://*.a.test", Sharing::PerHost, "http://b.a.test"),
        ] {
            let host = if text.contains('*') {
                "b.a.test"
            } else {
                "a.test"
            };
            assert_eq!(&*pattern(text).budget_name(sharing, host), name, "{text}");
        }
    }
}
