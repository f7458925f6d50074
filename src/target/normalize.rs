//! From the text of a URL to its target.
//!
//! Parsing is the WHATWG parser's, because agents, browsers and HTTP clients read URLs that way; a
//! stricter reader here would key one host and dial another. On top of it come the foldings that
//! keep one server from having several budgets: the trailing dot, IPv4 inside IPv6, `ws`.

use std::fmt;

use percent_encoding::percent_decode_str;
use thiserror::Error;
use url::{Host, ParseError, Position, Url};

use super::origin::Origin;
use super::path::normalized_path;

/// The longest URL that is read, in bytes, as given and as dialled. The HTTP
/// client takes no longer ones.
pub const MAX_URL_BYTES: usize = 64 * 1024 - 2;

/// The longest DNS name in text form, without the root's dot (RFC 1035 section 2.3.4).
const MAX_DNS_NAME: usize = 253;
/// The longest label of a DNS name (RFC 1035 section 2.3.4).
const MAX_DNS_LABEL: usize = 63;
/// Longer ones are no schemes anybody uses, and are left out of messages.
const MAX_NAMED_SCHEME: usize = 16;

/// A URL that was read: whose machine it means, and what is to be dialled.
///
/// `Debug` shows the origin only: path, query and credentials may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Located {
    /// The server, in its one canonical spelling.
    pub origin: Origin,
    /// The path in the normal form that class rules match; it is not what is sent.
    pub path: String,
    /// The query as it is sent, without its `?`; empty when there is none.
    pub query: String,
    /// What is dialled: host and port are exactly those of `origin`, the scheme is `http` or
    /// `https`, userinfo and fragment are gone; path and query are as the caller wrote them.
    pub url: Url,
    /// The userinfo of the URL, if it had any.
    pub credentials: Option<Credentials>,
}

impl fmt::Debug for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Located")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// The userinfo of a URL, percent-decoded. Octets that are not UTF-8 become U+FFFD, since RFC 7617
/// knows no other charset. `Debug` prints neither half.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    username: String,
    password: Option<String>,
}

impl Credentials {
    /// What stands before the colon; may be empty.
    #[must_use]
    pub fn username(&self) -> &str {
        &self.username
    }

    /// What stands after the colon; `None` without one.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Why a URL has no target. Such a call is refused: it is never sent without a budget.
///
/// The detail may be logged and recorded: it holds neither userinfo nor path nor query.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}: {detail}")]
pub struct Rejection {
    /// The reason as callers are told it.
    pub reason: RejectionReason,
    /// The same for people.
    pub detail: String,
}

/// The reasons for which a URL has no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    /// Not an absolute URL with a host that can be reached.
    InvalidTarget,
    /// A scheme other than `http`, `https`, `ws` and `wss`.
    UnsupportedScheme,
}

impl RejectionReason {
    /// The name used on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidTarget => "invalid_target",
            Self::UnsupportedScheme => "unsupported_scheme",
        }
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a URL: its target, and the URL to dial for it.
///
/// # Errors
/// A [`Rejection`] when the text is no absolute URL, has a scheme that cannot be called, a host
/// that is neither an address nor a DNS name, or more than [`MAX_URL_BYTES`].
pub fn locate(text: &str) -> Result<Located, Rejection> {
    if text.len() > MAX_URL_BYTES {
        return Err(too_long());
    }
    let mut url = Url::parse(text).map_err(unparsable)?;
    fold_scheme(&mut url)?;
    let credentials = take_credentials(&mut url)?;
    url.set_fragment(None);
    fold_host(&mut url)?;
    // Percent-encoding makes a URL longer, and what is dialled must itself be readable again.
    if url.as_str().len() > MAX_URL_BYTES {
        return Err(too_long());
    }
    Ok(Located {
        // Without userinfo the parser's own serialisation is already the canonical origin.
        origin: Origin::from_canonical(&url[..Position::BeforePath]),
        path: normalized_path(url.path()),
        query: url.query().unwrap_or_default().to_owned(),
        credentials,
        url,
    })
}

fn fold_scheme(url: &mut Url) -> Result<(), Rejection> {
    let folded = match url.scheme() {
        "http" | "https" => return Ok(()),
        "ws" => "http",
        "wss" => "https",
        _ => return Err(unsupported(url)),
    };
    url.set_scheme(folded)
        .map_err(|()| invalid("the scheme cannot be folded into http"))
}

fn take_credentials(url: &mut Url) -> Result<Option<Credentials>, Rejection> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let credentials = Credentials {
        username: decoded(url.username()),
        password: url.password().map(decoded),
    };
    url.set_password(None)
        .and_then(|()| url.set_username(""))
        .map_err(|()| invalid("the userinfo cannot be taken out of the URL"))?;
    Ok(Some(credentials))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn fold_host(url: &mut Url) -> Result<(), Rejection> {
    let folded = match url.host() {
        Some(Host::Domain(name)) => {
            let bare = name.strip_suffix('.').unwrap_or(name);
            check_dns_name(bare)?;
            (bare.len() < name.len()).then(|| bare.to_owned())
        }
        Some(Host::Ipv4(_)) => None,
        Some(Host::Ipv6(address)) => address.to_ipv4_mapped().map(|v4| v4.to_string()),
        None => return Err(invalid("the URL has no host")),
    };
    match folded {
        Some(host) => url.set_host(Some(&host)).map_err(unparsable),
        None => Ok(()),
    }
}

/// The WHATWG parser lets names through that no resolver can ask for; each would be a key of its
/// own, outside its registrable domain's group.
fn check_dns_name(name: &str) -> Result<(), Rejection> {
    if name.len() > MAX_DNS_NAME {
        return Err(invalid("the host is longer than a DNS name can be"));
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(invalid("the host has an empty label"));
        }
        if label.len() > MAX_DNS_LABEL {
            return Err(invalid("a label of the host is longer than DNS allows"));
        }
    }
    Ok(())
}

fn invalid(detail: &str) -> Rejection {
    Rejection {
        reason: RejectionReason::InvalidTarget,
        detail: detail.to_owned(),
    }
}

fn too_long() -> Rejection {
    invalid("the URL is longer than 64 KiB")
}

fn unparsable(error: ParseError) -> Rejection {
    match error {
        ParseError::RelativeUrlWithoutBase => invalid("not an absolute URL: http:// or https://"),
        // The parser's messages are fixed texts, so nothing of the URL is repeated in them.
        other => invalid(&other.to_string()),
    }
}

fn unsupported(url: &Url) -> Rejection {
    let scheme = url.scheme();
    // In `user:secret@host` the user name stands where a scheme would, so only what is followed by
    // `://` is named.
    let detail = if url.has_authority() && scheme.len() <= MAX_NAMED_SCHEME {
        format!("`{scheme}` cannot be called, only http, https, ws and wss")
    } else {
        "only http, https, ws and wss can be called".to_owned()
    };
    Rejection {
        reason: RejectionReason::UnsupportedScheme,
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(text: &str) -> Located {
        locate(text).unwrap_or_else(|rejection| panic!("{text}: {rejection}"))
    }

    #[test]
    fn the_dialled_host_is_the_keyed_host() {
        for (text, dialled) in [
            ("http://example.com./a", "http://example.com/a"),
            ("http://example.com.:8080/", "http://example.com:8080/"),
            ("http://[::ffff:127.0.0.1]:81/", "http://127.0.0.1:81/"),
            ("ws://example.com/s?x", "http://example.com/s?x"),
            ("ws://example.com:443/s", "http://example.com:443/s"),
            ("wss://example.com:443/s", "https://example.com/s"),
            ("http://u:p@example.com/#top", "http://example.com/"),
        ] {
            assert_eq!(located(text).url.as_str(), dialled, "{text}");
        }
    }

    #[test]
    fn path_and_query_are_dialled_as_written() {
        let found = located("https://example.com//a%2fb/%7Ex/?q=%41+b&q=#frag");
        assert_eq!(
            found.url.as_str(),
            "https://example.com//a%2fb/%7Ex/?q=%41+b&q="
        );
        assert_eq!(found.path, "/a%2Fb/~x");
        assert_eq!(found.query, "q=%41+b&q=");
    }

    #[test]
    fn credentials_are_decoded_and_leave_the_url() {
        let found = located("https://us%40er:p%3Aw@example.com/x");
        let credentials = found.credentials.as_ref().expect("userinfo");
        assert_eq!(credentials.username(), "us@er");
        assert_eq!(credentials.password(), Some("p:w"));
        assert_eq!(found.url.as_str(), "https://example.com/x");
        let only_user = located("http://tok@example.com/").credentials;
        assert_eq!(only_user.expect("userinfo").password(), None);
        let only_password = located("http://:pw@example.com/").credentials;
        assert_eq!(only_password.expect("userinfo").username(), "");
        assert_eq!(located("http://@example.com/").credentials, None);
    }

    #[test]
    fn debug_output_holds_no_secret() {
        let found = located("https://hunter:seven@example.com/zzz?key=abc");
        let shown = format!("{found:?} {:?}", found.credentials);
        for secret in ["hunter", "seven", "zzz", "abc"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }

    #[test]
    fn a_rejection_repeats_neither_userinfo_nor_query() {
        for text in [
            "hunter:seven@example.com/?seven",
            "http://hunter:seven@[::zz]/?seven",
            "http://hunter:seven@exa%23mple.com/?seven",
            "ftp://hunter:seven@example.com/?seven",
            "//hunter:seven@example.com/?seven",
            "http://hunter:seven@example.com:99999/?seven",
            "http://hunter:seven@example.com../?seven",
        ] {
            let shown = locate(text).expect_err(text).to_string();
            assert!(!shown.contains("hunter"), "{shown}");
            assert!(!shown.contains("seven"), "{shown}");
        }
    }

    #[test]
    fn an_unsupported_scheme_is_named_for_people() {
        let rejection = locate("ftp://example.com/").expect_err("ftp");
        assert_eq!(rejection.reason.as_str(), "unsupported_scheme");
        assert!(rejection.detail.contains("`ftp`"), "{rejection}");
    }

    #[test]
    fn the_length_limit_holds_for_what_is_given_and_what_is_dialled() {
        let start = "http://example.com/";
        let fits = format!("{start}{}", "a".repeat(MAX_URL_BYTES - start.len()));
        assert!(locate(&fits).is_ok());
        let one_more = format!("{fits}a");
        let folded_longer = fits.replacen("http:", "ws:", 1) + "aa";
        let encoded_longer = format!("{start}{}", "\"".repeat(MAX_URL_BYTES / 2));
        for text in [one_more, folded_longer, encoded_longer] {
            let rejection = locate(&text).expect_err("too long");
            assert_eq!(rejection.reason, RejectionReason::InvalidTarget);
        }
    }

    #[test]
    fn names_longer_than_dns_allows_are_refused() {
        let label = "a".repeat(63);
        assert!(locate(&format!("http://{label}.example/")).is_ok());
        assert!(locate(&format!("http://a{label}.example/")).is_err());
        let name = [label.as_str(); 4].join(".");
        assert!(locate(&format!("http://{name}/")).is_err());
        let longest = name.get(2..).expect("two letters less");
        assert!(locate(&format!("http://{longest}./")).is_ok());
    }
}
