//! What a bucket lacks, and why.

use serde::{Deserialize, Serialize};

use super::limit::Limit;
use super::pause::Because;
use crate::clock::Moment;

/// Why a bucket says: not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Our own budget holds the call back.
    BudgetEmpty,
    /// As many calls as allowed are under way.
    Concurrency,
    /// The target said: not now.
    Paused,
    /// It could not be reached and rests.
    Unreachable,
    /// An operator said so.
    Held,
}

impl Cause {
    /// True when the target as a whole must wait, whatever is left.
    #[must_use]
    pub fn stops_target(self) -> bool {
        matches!(self, Self::Paused | Self::Unreachable | Self::Held)
    }

    /// The name used in decisions, records and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BudgetEmpty => "budget_empty",
            Self::Concurrency => "concurrency",
            Self::Paused => "paused",
            Self::Unreachable => "unreachable",
            Self::Held => "held",
        }
    }
}

impl From<Because> for Cause {
    fn from(because: Because) -> Self {
        match because {
            Because::Throttled => Self::Paused,
            Because::Unreachable => Self::Unreachable,
        }
    }
}

/// What a bucket lacks for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Why.
    pub cause: Cause,
    /// The earliest instant known now; none when nobody can say.
    pub ready: Option<Moment>,
    /// The limit, where one is the cause.
    pub limit: Option<Limit>,
}
