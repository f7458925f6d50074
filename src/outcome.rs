//! What became of a call, and what became of a task. One definition of each,
//! used by everything that sends, records or reports.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How one call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A whole answer arrived.
    Answered,
    /// The target said: not now.
    Throttled,
    /// The answer was cut after its head.
    Partial,
    /// The request may have reached the target; no answer came.
    Unanswered,
    /// Proof that nothing was sent, after a dial.
    NotSent,
    /// Given back before the first dial.
    Abandoned,
    /// The gate died while the call was under way.
    Interrupted,
}

impl End {
    /// True when the target may have seen the request and acted on it,
    /// though nobody knows how that ended.
    #[must_use]
    pub fn leaves_doubt(self) -> bool {
        matches!(self, Self::Partial | Self::Unanswered | Self::Interrupted)
    }

    /// True when the call may count against the target's tolerance.
    #[must_use]
    pub fn may_have_arrived(self) -> bool {
        !matches!(self, Self::NotSent | Self::Abandoned)
    }

    /// The name used in the record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Throttled => "throttled",
            Self::Partial => "partial",
            Self::Unanswered => "unanswered",
            Self::NotSent => "not_sent",
            Self::Abandoned => "abandoned",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// 2xx or 304, unless a run says otherwise.
    Succeeded,
    /// A final answer of another kind, such as 404.
    Answered,
    /// No final answer after the allowed number of attempts.
    Failed,
    /// It may have been executed; it is not repeated, a person decides.
    Ambiguous,
    /// Its deadline or the stall limit passed.
    Expired,
    /// Somebody called it off.
    Cancelled,
    /// The gate will never send it.
    Refused,
}

impl Outcome {
    /// All outcomes, in the order they are listed.
    pub const ALL: [Self; 7] = [
        Self::Succeeded,
        Self::Answered,
        Self::Failed,
        Self::Ambiguous,
        Self::Expired,
        Self::Cancelled,
        Self::Refused,
    ];

    /// True when the target gave a final answer.
    #[must_use]
    pub fn has_answer(self) -> bool {
        matches!(self, Self::Succeeded | Self::Answered)
    }

    /// The name used in results and in the record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Ambiguous => "ambiguous",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// May a call of this method be sent again after a failure that may have
/// reached its target? The safe methods of RFC 9110, section 9.2.1, that
/// carry no confirmation of their own.
#[must_use]
pub fn is_safe_to_repeat(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reads_are_safe_to_repeat() {
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert!(is_safe_to_repeat(method));
        }
        for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "get", ""] {
            assert!(!is_safe_to_repeat(method));
        }
    }

    #[test]
    fn what_was_proved_unsent_leaves_no_doubt() {
        assert!(!End::NotSent.leaves_doubt());
        assert!(!End::Abandoned.may_have_arrived());
        assert!(End::Unanswered.leaves_doubt() && End::Interrupted.may_have_arrived());
    }
}
