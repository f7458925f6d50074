//! What a fault on the wire proves: was the request never sent, or may it
//! have reached its target? In doubt it may.

use super::guard::{Blocked, blocked_in, unresolved_in};

/// What is known after a request got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its address may not be reached from here. Nothing was dialled.
    Blocked(Blocked),
    /// The name has no address. Nothing was dialled.
    Unresolved(String),
    /// Nothing was sent: no connection, no TLS, or never taken.
    NotSent(String),
    /// It may have reached the target.
    Unanswered(String),
}

impl Fault {
    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Blocked(blocked) => blocked.to_string(),
            Self::Unresolved(words) | Self::NotSent(words) | Self::Unanswered(words) => {
                words.clone()
            }
        }
    }
}

/// Reads a client's error. `taken` tells whether hyper ever took the request
/// for writing: if not, nothing can have left.
#[must_use]
pub(super) fn classify(error: reqwest::Error, taken: bool) -> Fault {
    if let Some(blocked) = blocked_in(&error) {
        return Fault::Blocked(blocked.clone());
    }
    let unresolved = unresolved_in(&error);
    let unsent = error.is_connect() || !taken;
    let words = words(error);
    match (unresolved, unsent) {
        (true, _) => Fault::Unresolved(words),
        (false, true) => Fault::NotSent(words),
        (false, false) => Fault::Unanswered(words),
    }
}

/// The innermost cause says most; URLs, which may hold secrets, are left out.
pub(super) fn words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut parts: Vec<String> = Vec::new();
    let mut next: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = next {
        let text = error.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = error.source();
    }
    parts.join(": ")
}
