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
    /// Those of them that count no longer, as their tasks were accepted anew.
    pub(super) replaced: [u64; Outcome::ALL.len()],
    /// Where its last refresh began.
    pub round: Round,
}

/// Written when tasks are accepted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Intake {
    pub(super) out: String,
    /// The number of the next task.
    pub(super) next: u64,
    /// Results, by outcome, whose tasks were accepted anew.
    pub(super) replaced: [u64; Outcome::ALL.len()],
}

/// Where the result of a complete task is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Placed {
    pub(super) place: u64,
    pub(super) outcome: Outcome,
}

/// Written when tasks are complete.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcomes {
    pub(super) results: u64,
    pub(super) counts: [u64; Outcome::ALL.len()],
}

impl JobRecord {
    /// How many tasks ended so, each by its last result.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        let of = |counts: &[u64]| counts.get(outcome as usize).copied().unwrap_or(0);
        of(&self.outcomes).saturating_sub(of(&self.replaced))
    }

    /// Tasks that are complete and not asked for again.
    #[must_use]
    pub fn complete(&self) -> u64 {
        let all = Outcome::ALL.into_iter();
        all.map(|outcome| self.outcome(outcome)).sum()
    }

    /// Tasks that are accepted and not complete.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.next.saturating_sub(self.results)
    }

    /// Tasks, each once however often it was asked for again.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        self.complete() + self.pending()
    }

    /// Tasks accepted so far, once more for each time that one was asked for again.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.next
    }
}
