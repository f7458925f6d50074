//! What the store knows of a job as a whole.

use serde::{Deserialize, Serialize};

use super::refresh::Round;
use crate::outcome::Outcome;

/// What the store knows of a job as a whole. It is kept in two parts, since
/// tasks are accepted while others end, each in an order of its own: one part
/// must not carry the other's news to the disk before its time, or after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// Its output folder.
    pub out: String,
    /// The number of its next task.
    pub(super) next: u64,
    /// Results so far.
    pub results: u64,
    /// Results by outcome, in the order of [`Outcome::ALL`].
    pub(super) outcomes: [u64; Outcome::ALL.len()],
    /// Where its last refresh began.
    pub round: Round,
}

/// Written when tasks are accepted.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Intake {
    pub(super) out: String,
    pub(super) next: u64,
}

/// Written when tasks are complete.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcomes {
    pub(super) results: u64,
    pub(super) counts: [u64; Outcome::ALL.len()],
}

impl JobRecord {
    /// How many tasks ended so.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(outcome as usize).copied().unwrap_or(0)
    }

    /// Results that count no longer: their tasks were asked for again.
    #[must_use]
    pub fn superseded(&self) -> u64 {
        self.results.saturating_sub(self.outcomes.iter().sum())
    }

    /// Tasks, each once however often it was asked for again.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        self.next.saturating_sub(self.superseded())
    }

    /// Tasks accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.next
    }
}
