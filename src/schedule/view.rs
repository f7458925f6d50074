//! What can be seen of a schedule from outside.

use crate::audit::TaskRef;
use crate::budget::Cause;
use crate::clock::Moment;
use crate::target::TargetKey;

/// The state of a task that is not complete. A task whose target must wait is
/// listed as in back-off too: see [`TaskView::blocked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It waits for its target's budget.
    Queued,
    /// Its call is under way.
    Running,
    /// It is not tried before.
    Backoff {
        /// When it is.
        until: Moment,
    },
}

/// A task that is not complete.
#[derive(Clone, Copy, Debug)]
pub struct TaskView {
    /// Which.
    pub task: TaskRef,
    /// Its state.
    pub state: TaskState,
    /// How often it was told to wait.
    pub deferrals: u32,
    /// What its target waits for.
    pub blocked: Option<(Cause, Option<Moment>)>,
}

/// A lane with work.
#[derive(Clone, Debug)]
pub struct LaneView {
    /// Whose.
    pub target: TargetKey,
    /// Tasks waiting.
    pub waiting: usize,
    /// Calls granted in this run.
    pub calls: u64,
    /// Why the last try got none, if it got none.
    pub blocked: Option<(Cause, Option<Moment>)>,
}

/// A schedule at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Tasks that wait for their target's budget.
    pub queued: u64,
    /// Tasks whose call is under way.
    pub running: u64,
    /// Tasks in a back-off of their own, or whose target must wait.
    pub backoff: u64,
    /// Queued tasks of a run before that are not in memory yet.
    pub unread: u64,
    /// True while tasks may still be read or added.
    pub reading: bool,
    /// Tasks completed a second, over the last five minutes at most.
    pub pace: Option<f64>,
    /// The same over the best ten seconds of them.
    pub best: Option<f64>,
    /// Alarms set.
    pub alarms: usize,
    /// The earliest of them.
    pub wake: Option<Moment>,
    /// The lanes with most work first.
    pub lanes: Vec<LaneView>,
}
