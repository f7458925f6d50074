//! What can be asked of a gate, whether it runs in this process or another.

use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::budget::Limit;

/// A question, or an operator's word.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// How far, how fast, what is stuck.
    Status,
    /// What is left at these targets or URLs.
    Budget {
        /// Target keys or URLs.
        targets: Vec<String>,
    },
    /// Every target that is known now.
    Targets,
    /// What holds for a call; sends nothing.
    Explain {
        /// Its URL.
        url: String,
        /// Its method.
        method: String,
    },
    /// Tasks, counted or listed.
    Tasks(TaskFilter),
    /// The results of a job.
    Results {
        /// Its output folder.
        out: PathBuf,
    },
    /// Something to be done with tasks.
    Act {
        /// What.
        act: Act,
        /// Which: these ids; where there are none, those that the filter takes.
        ids: Vec<String>,
        /// Which of them.
        filter: TaskFilter,
    },
    /// An operator's word.
    Change(Change),
    /// A copy of the record.
    StoreCopy {
        /// Where to: a whole path, of a folder that is missing or empty.
        to: PathBuf,
    },
    /// The record.
    Audit {
        /// In which form.
        record: Record,
        /// Which part of it.
        wanted: Wanted,
    },
}

/// What is done with tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Tasks that wait are called off.
    Cancel,
    /// Complete tasks are to be asked for again.
    Retry {
        /// Whether those that may have been executed are among them.
        ambiguous: Ambiguous,
    },
}

/// What to do with tasks of which nobody knows whether they were executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ambiguous {
    /// They stay as they are.
    Leave,
    /// A person has decided that they may be executed, perhaps once more.
    Repeat,
}

/// A change by hand, signed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    /// A target key, URL, `pool:NAME` or `group:NAME`.
    pub target: String,
    /// What is changed.
    pub what: Manually,
    /// For so many milliseconds; until it is released where it is not said.
    pub for_ms: Option<u64>,
    /// Who says so.
    pub by: String,
    /// Why.
    pub note: String,
}

/// What an operator changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manually {
    /// Calls wait.
    Hold,
    /// Calls are refused.
    Deny,
    /// Other limits hold.
    Set {
        /// All of the target's own.
        limits: Vec<Limit>,
    },
    /// All of this is taken back.
    Release,
}

/// Which tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskFilter {
    /// List them instead of counting.
    pub list: bool,
    /// `queued`, `running`, `backoff` or `complete`.
    pub state: Option<String>,
    /// Of complete ones: how they ended.
    pub outcome: Option<String>,
    /// Of this target.
    pub target: Option<String>,
}

/// A form of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// Everything, in the order in which it became known.
    Events,
    /// What was decided.
    Decisions,
    /// Sums per target and window of so many seconds.
    Windows {
        /// The width of a window.
        seconds: u64,
    },
    /// Who caused it.
    Who {
        /// Grouped by what.
        by: By,
    },
    /// The envelopes.
    Envelopes,
    /// Each host: how much it got, what it refused, under which envelope.
    Seen,
}

/// What `who` groups by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The agent.
    Agent,
    /// The agent's run.
    Trajectory,
    /// The step in it.
    Step,
    /// The goal.
    Goal,
    /// The target.
    Target,
}

/// Which part of the record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Wanted {
    /// A target key or URL.
    pub target: Option<String>,
    /// A domain with everything below it.
    pub site: Option<String>,
    /// An agent.
    pub agent: Option<String>,
    /// A trajectory.
    pub trajectory: Option<String>,
    /// Not before.
    pub from: Option<SystemTime>,
    /// Before.
    pub to: Option<SystemTime>,
}
