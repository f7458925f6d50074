//! What a target says of its own tolerance: is this answer a *not now*, and
//! for how long? One definition of "a rate-limit signal", used everywhere.

pub mod retry_after;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderMap;

use retry_after::{Asked, asked, is_throttle};

/// What the head of an answer means for the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It serves.
    Open,
    /// Not now.
    NotNow {
        /// For how long, where it says so in a way that can be followed.
        asked: Option<Duration>,
        /// What it said: `429 Retry-After: 120`.
        reason: Arc<str>,
    },
}

/// Reads the head of an answer that arrived at `now` by the wall clock.
#[must_use]
pub fn read(status: u16, headers: &HeaderMap, now: SystemTime) -> Reading {
    let said = asked(headers, now);
    if !is_throttle(status, &said) {
        return Reading::Open;
    }
    let (asked, reason) = match said {
        Asked::Wait { wait, header } => (Some(wait), format!("{status} {header}")),
        Asked::Nonsense { header } => (
            None,
            format!("{status} {header} (not understood, own back-off)"),
        ),
        Asked::Nothing => (None, status.to_string()),
    };
    Reading::NotNow {
        asked,
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_it_was_told_by() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "120".parse().unwrap());
        let now = SystemTime::UNIX_EPOCH;
        let Reading::NotNow { asked, reason } = read(429, &headers, now) else {
            panic!("a 429 is a refusal")
        };
        assert_eq!(asked, Some(Duration::from_secs(120)));
        assert!(reason.starts_with("429 Retry-After: 120"), "{reason}");
        assert_eq!(read(200, &headers, now), Reading::Open);
        assert_eq!(read(503, &HeaderMap::new(), now), Reading::Open);
    }
}
