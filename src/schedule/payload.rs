//! What an HTTP call sends besides its method and URL. A header's value may be `env:NAME`: the
//! task then holds the name only, and the secret is looked up when the request is sent.

use std::fmt;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

/// The headers and the body of a call, as the queue keeps them.
///
/// `Debug` prints neither values nor body.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpPayload {
    /// Names and values in the order in which they were given; a value `env:NAME` is not resolved.
    pub headers: Vec<(String, String)>,
    /// The body; empty where there is none.
    #[serde(with = "crate::store::as_bytes")]
    pub body: Vec<u8>,
}

impl fmt::Debug for HttpPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpPayload")
            .field(
                "headers",
                &self
                    .headers
                    .iter()
                    .map(|(name, _)| name)
                    .collect::<Vec<_>>(),
            )
            .field("body", &self.body.len())
            .finish()
    }
}

/// Why a header cannot be sent. Never holds a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {name}: {problem}")]
pub struct HeaderFault {
    /// The header, as far as its name is one.
    pub name: String,
    /// What is wrong with it.
    pub problem: HeaderProblem,
}

/// What is wrong with a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderProblem {
    /// Not a token (RFC 9110, section 5.1).
    #[error("its name holds a character that a header's name cannot hold, or is empty")]
    Name,
    /// Not a field value (RFC 9110, section 5.5).
    #[error("its value holds a character that a header cannot hold, such as a line break")]
    Value,
    /// The gate sets it, or no target may see it.
    #[error("{0}")]
    NotTheCallers(&'static str),
    /// `env:` and then no name.
    #[error("`env:` takes the name of an environment variable: letters, digits and `_`")]
    NoVariable,
    /// The variable is not there.
    #[error("the environment variable {0} is not set")]
    Unset(String),
    /// The variable's value is no field value.
    #[error(
        "the environment variable {0} holds a character that a header cannot hold, such as a line break"
    )]
    Variable(String),
    /// More than a request can hold.
    #[error("these are more headers than a request can hold")]
    TooMany,
}

impl From<HeaderFault> for String {
    fn from(fault: HeaderFault) -> Self {
        fault.to_string()
    }
}

impl HttpPayload {
    /// As bytes of a task; none at all when there is nothing to send, as for most tasks.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if self.headers.is_empty() && self.body.is_empty() {
            return Vec::new();
        }
        postcard::to_extend(self, Vec::new()).unwrap_or_default()
    }

    /// Reads what [`Self::encode`] wrote; `None` when it is something else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        postcard::from_bytes(bytes).ok()
    }

    /// The headers whose lower-case name `goes_along`, as they were given, and no body.
    #[must_use]
    pub fn keeping(&self, goes_along: impl Fn(&str) -> bool) -> Self {
        let stays = |(name, _): &&(String, String)| goes_along(&name.to_ascii_lowercase());
        Self {
            headers: self.headers.iter().filter(stays).cloned().collect(),
            body: Vec::new(),
        }
    }

    /// The headers to send, with variables looked up in `env`. To be called at the last moment, and
    /// once when a task is accepted, so that what cannot be sent is known before anything is.
    ///
    /// # Errors
    /// The first header that cannot be sent; a variable that is not set is named.
    pub fn to_headers(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<HeaderMap, HeaderFault> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let fault = |problem| HeaderFault {
                name: shown(name),
                problem,
            };
            let key =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault(HeaderProblem::Name))?;
            if let Some(reason) = not_the_callers(&key) {
                return Err(fault(HeaderProblem::NotTheCallers(reason)));
            }
            let value = resolved(value, env).map_err(fault)?;
            map.try_append(key, value)
                .map_err(|_| fault(HeaderProblem::TooMany))?;
        }
        Ok(map)
    }
}

fn resolved(
    value: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<HeaderValue, HeaderProblem> {
    // White space around a value is not part of it, and HTTP/2 forbids it (RFC 9113, 8.2.1).
    let value = value.trim_matches([' ', '\t']);
    let Some(variable) = value.strip_prefix("env:") else {
        return HeaderValue::from_str(value).map_err(|_| HeaderProblem::Value);
    };
    if !is_variable(variable) {
        return Err(HeaderProblem::NoVariable);
    }
    let secret = env(variable).ok_or_else(|| HeaderProblem::Unset(variable.to_owned()))?;
    let mut secret = HeaderValue::from_str(secret.trim_matches([' ', '\t']))
        .map_err(|_| HeaderProblem::Variable(variable.to_owned()))?;
    // Keeps it out of `Debug` and of HTTP/2's compression tables.
    secret.set_sensitive(true);
    Ok(secret)
}

/// What stands behind `env:` may be a secret put there by mistake, so only what looks like a
/// variable (POSIX, section 8.1) is looked up and repeated.
fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What is dialled is what was keyed; the rest is between the gate and its next hop (RFC 9110,
/// section 7.6.1).
fn not_the_callers(name: &HeaderName) -> Option<&'static str> {
    match name.as_str() {
        "host" => Some("is taken from the URL, so that what is called is what is budgeted"),
        "content-length" => Some("is counted from the body"),
        "proxy-authorization" => Some("is meant for a proxy, and would be shown to the target"),
        "connection" | "keep-alive" | "te" | "trailer" | "transfer-encoding" | "upgrade" => {
            Some("belongs to the connection, which the gate makes itself")
        }
        _ => None,
    }
}

/// A name up to where it ceases to be one: behind that, somebody may have written the value.
fn shown(name: &str) -> String {
    let is_token = |c: &char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(*c);
    name.chars().take_while(is_token).take(64).collect()
}

/// The header that carries a task's key (draft-ietf-httpapi-idempotency-key-header).
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(headers: &[(&str, &str)]) -> HttpPayload {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        HttpPayload {
            headers: headers.collect(),
            body: b"seven".to_vec(),
        }
    }

    fn env(name: &str) -> Option<String> {
        match name {
            "TOKEN" => Some("hunter2".into()),
            "BROKEN" => Some("hunter2\n".into()),
            _ => None,
        }
    }

    #[test]
    fn a_payload_is_read_as_it_was_written_and_nothing_is_no_bytes() {
        let full = payload(&[("Accept", "*/*"), ("x", "env:TOKEN")]);
        assert_eq!(HttpPayload::decode(&full.encode()), Some(full));
        assert!(HttpPayload::default().encode().is_empty());
        assert_eq!(HttpPayload::decode(&[]), Some(HttpPayload::default()));
        assert_eq!(HttpPayload::decode(&[9]), None);
    }

    #[test]
    fn a_variable_is_looked_up_when_sent_and_marked_as_a_secret() {
        let kept = payload(&[("Authorization", " env:TOKEN "), ("Accept", "\ta, b ")]);
        assert!(!kept.encode().windows(7).any(|bytes| bytes == b"hunter2"));
        let sent = kept.to_headers(&env).unwrap();
        assert_eq!(sent["authorization"], "hunter2");
        assert!(sent["authorization"].is_sensitive());
        assert_eq!(sent["accept"], "a, b");
        assert!(!format!("{sent:?}").contains("hunter2"));
    }

    #[test]
    fn what_cannot_be_sent_is_named_and_no_value_is_repeated() {
        for (name, value, named, problem) in [
            (
                "x-a",
                "env:NOT_THERE",
                "x-a",
                HeaderProblem::Unset("NOT_THERE".into()),
            ),
            (
                "x-a",
                "env:BROKEN",
                "x-a",
                HeaderProblem::Variable("BROKEN".into()),
            ),
            ("x-a", "env:", "x-a", HeaderProblem::NoVariable),
            ("x-a", "env:hunter2 7", "x-a", HeaderProblem::NoVariable),
            ("x-a", "env:2hunter2", "x-a", HeaderProblem::NoVariable),
            ("x-a", "hunter2\r\nhost: b", "x-a", HeaderProblem::Value),
            ("x-a", "hunter2\u{0}", "x-a", HeaderProblem::Value),
            ("x-a: hunter2", "v", "x-a", HeaderProblem::Name),
            (":authority", "b.test", "", HeaderProblem::Name),
            ("", "hunter2", "", HeaderProblem::Name),
        ] {
            let fault = payload(&[("ok", "1"), (name, value)])
                .to_headers(&env)
                .unwrap_err();
            assert_eq!(
                fault,
                HeaderFault {
                    name: named.into(),
                    problem
                },
                "{name}: {value}"
            );
            assert!(!fault.to_string().contains("hunter2"), "{fault}");
        }
    }

    #[test]
    fn headers_that_are_not_the_callers_are_refused_with_a_reason() {
        for name in [
            "Host",
            "connection",
            "Content-Length",
            "transfer-encoding",
            "TE",
            "trailer",
            "upgrade",
            "proxy-authorization",
            "Keep-Alive",
        ] {
            let fault = payload(&[(name, "hunter2")]).to_headers(&env).unwrap_err();
            assert!(
                matches!(fault.problem, HeaderProblem::NotTheCallers(_)),
                "{name}"
            );
            assert!(String::from(fault).starts_with(&format!("header {name}: ")));
        }
        for name in ["cookie", "expect", "host-name", "te-xt", "user-agent"] {
            assert!(payload(&[(name, "v")]).to_headers(&env).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_redirect_takes_along_names_of_variables_and_not_their_values() {
        let kept = payload(&[
            ("Accept", "a"),
            ("Authorization", "env:TOKEN"),
            ("X", "env:TOKEN"),
        ]);
        let along = kept.keeping(|name| ["accept", "x"].contains(&name));
        assert_eq!(
            along.headers,
            payload(&[("Accept", "a"), ("X", "env:TOKEN")]).headers
        );
        assert!(along.body.is_empty());
    }

    #[test]
    fn debug_output_holds_neither_values_nor_body() {
        let debug = format!("{:?}", payload(&[("x-key", "hunter2")]));
        assert!(
            debug.contains("x-key") && !debug.contains("hunter2"),
            "{debug}"
        );
        assert!(
            !debug.contains("seven") && !debug.contains("115"),
            "{debug}"
        );
    }

    #[test]
    fn more_headers_than_a_request_can_hold_are_a_fault_and_no_panic() {
        let names: Vec<String> = (0..40_000).map(|n| format!("x-{n}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "v")).collect();
        let fault = payload(&many).to_headers(&env).unwrap_err();
        assert_eq!(fault.problem, HeaderProblem::TooMany);
    }
}
