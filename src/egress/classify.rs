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
    /// Nothing was sent, and that is not the target's doing: this process or
    /// this machine has no more sockets.
    Unable(String),
    /// It may have reached the target.
    Unanswered(String),
}

impl Fault {
    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Blocked(blocked) => blocked.to_string(),
            Self::Unresolved(words)
            | Self::NotSent(words)
            | Self::Unable(words)
            | Self::Unanswered(words) => words.clone(),
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
    let unable = unsent && lacks_sockets(&error);
    let words = words(error);
    if unable {
        return Fault::Unable(format!(
            "{words}; raise the limit of open files (ulimit -n), or lower --concurrency"
        ));
    }
    match (unresolved, unsent) {
        (true, _) => Fault::Unresolved(words),
        (false, true) => Fault::NotSent(words),
        (false, false) => Fault::Unanswered(words),
    }
}

/// No descriptor, no buffer.
fn lacks_sockets(error: &(dyn std::error::Error + 'static)) -> bool {
    use rustix::io::Errno;
    let mut next = Some(error);
    while let Some(error) = next {
        let code = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error)
            .map(Errno::from_raw_os_error);
        if let Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS) = code {
            return true;
        }
        next = error.source();
    }
    false
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
