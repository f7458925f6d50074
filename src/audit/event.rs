//! What goes on record: one versioned enum. The journal of decisions, the
//! ledger of ambiguous calls and every report are views of this one log.

use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::{Cause, Envelope, Hold, Limit, ManualKind, Pause, Revision, Scope};
use crate::clock::Moment;
use crate::outcome::End;
use crate::step::Step;
use crate::target::TargetKey;

/// The task a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskRef {
    /// The job.
    pub job: u64,
    /// The task in it.
    pub number: u64,
}

/// What is known of a call before it may leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Which run of which gate granted it.
    pub gate: u64,
    /// Where it goes.
    pub target: TargetKey,
    /// Its method.
    pub method: Arc<str>,
    /// Its path, masked unless the file says otherwise; never its query.
    pub path: Arc<str>,
    /// Who caused it.
    pub step: Step,
    /// The envelope in force.
    pub revision: Revision,
    /// Tokens taken.
    pub cost: u32,
    /// The how-manieth sending of the task, from 1.
    pub attempt: u32,
    /// Redirects followed before it.
    pub hop: u32,
    /// The task, where there is one.
    pub task: Option<TaskRef>,
    /// When it was granted.
    pub decided: Moment,
    /// The buckets it draws from.
    pub scopes: Vec<Scope>,
    /// What it calls us.
    pub user_agent: Arc<str>,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// When its request left, if it did.
    pub departed: Option<Moment>,
    /// When it ended.
    pub ended: Moment,
    /// How.
    pub end: End,
    /// The answer's status.
    pub status: Option<u16>,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// The address that was dialled.
    pub peer: Option<IpAddr>,
    /// What went wrong, in words without secrets.
    pub error: Option<Arc<str>>,
}

/// A call from grant to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// What was granted.
    pub intent: Intent,
    /// What became of it.
    pub settlement: Settlement,
}

/// Deferrals of one kind, counted within a minute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferred {
    /// Whose calls.
    pub target: TargetKey,
    /// The envelope in force.
    pub revision: Revision,
    /// The step that was deferred first.
    pub step: Step,
    /// Why.
    pub cause: Cause,
    /// The empty limit: its scope and text.
    pub limit: Option<(Scope, String)>,
    /// The earliest instant told to the first.
    pub ready: Option<Moment>,
    /// How many.
    pub count: u64,
    /// When the first was.
    pub at: Moment,
}

/// A refusal by us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The target, as far as it could be told.
    pub target: Arc<str>,
    /// Why.
    pub reason: Arc<str>,
    /// In words.
    pub detail: Arc<str>,
    /// Who asked.
    pub step: Step,
    /// How many of the kind within a minute.
    pub count: u64,
    /// When the first was.
    pub at: Moment,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A call that has ended.
    Call(Call),
    /// Not now.
    Deferred(Deferred),
    /// Never.
    Refused(Refused),
    /// An envelope came into force for the first time.
    Revised {
        /// Its number.
        revision: Revision,
        /// Its limits.
        envelope: Envelope,
        /// When.
        at: Moment,
    },
    /// A target was paused, or its pause lengthened.
    Paused {
        /// Whose bucket.
        scope: Scope,
        /// The pause in force now.
        pause: Pause,
        /// When.
        at: Moment,
    },
    /// The probe after a pause was answered.
    Resumed {
        /// Whose bucket.
        scope: Scope,
        /// The pause that is over.
        pause: Pause,
        /// When.
        at: Moment,
    },
    /// An operator stopped a target.
    Held {
        /// Whose bucket.
        scope: Scope,
        /// By whom, why, until when.
        hold: Hold,
        /// When.
        at: Moment,
    },
    /// An operator let it go again.
    Released {
        /// Whose bucket.
        scope: Scope,
        /// Who.
        by: Arc<str>,
        /// Why.
        note: Arc<str>,
        /// When.
        at: Moment,
    },
    /// A gate opened the store.
    Opened {
        /// Which run.
        gate: u64,
        /// Of which version.
        version: Arc<str>,
        /// The digest of the file in force.
        rules: Arc<str>,
        /// Calls found under way: the gate before was killed.
        interrupted: u64,
        /// When.
        at: Moment,
    },
    /// A gate closed the store in good order.
    Closed {
        /// Which run.
        gate: u64,
        /// When.
        at: Moment,
    },
    /// Somebody set the wall clock, by so many nanoseconds.
    ClockStepped {
        /// By how much.
        nanos: i64,
        /// When.
        at: Moment,
    },
    /// Segments that were on record are gone.
    Truncated {
        /// The segment that was the last.
        expected: u64,
        /// The last one there.
        found: u64,
        /// When it was noticed.
        at: Moment,
    },
    /// A day of the record is gone, since it was older than what is kept.
    Pruned {
        /// Which day, in UTC.
        day: Arc<str>,
        /// The last of its segments.
        segment: u64,
        /// The hash of that one, which the first one kept names.
        hash: Arc<str>,
        /// Bytes it held.
        bytes: u64,
        /// When.
        at: Moment,
    },
    /// The oldest bodies of a run went, to make room for new ones.
    BodiesLetGo {
        /// How many.
        files: u64,
        /// What they held.
        bytes: u64,
        /// When.
        at: Moment,
    },
    /// Somebody changed a task by hand, or it ended without a call.
    Task {
        /// Which.
        task: TaskRef,
        /// Its id.
        id: Arc<str>,
        /// What became of it.
        what: Arc<str>,
        /// Who caused it.
        step: Step,
        /// When.
        at: Moment,
    },
    /// An operator put other limits in place of the rules'.
    Set {
        /// Whose bucket.
        scope: Scope,
        /// The limits in force there now.
        limits: Vec<Limit>,
        /// By whom, why, until when.
        word: Hold,
        /// When.
        at: Moment,
    },
    /// An operator had the calls of a target refused.
    Denied {
        /// Whose bucket.
        scope: Scope,
        /// By whom, why, until when.
        word: Hold,
        /// When.
        at: Moment,
    },
    /// What an operator put in place of the rules has ended by itself.
    Lapsed {
        /// Whose bucket.
        scope: Scope,
        /// What had been put there.
        what: ManualKind,
        /// When it was noticed: no decision was taken in between.
        at: Moment,
    },
    /// The configuration was read anew, and is in force.
    Reloaded {
        /// Its digest.
        rules: Arc<str>,
        /// Keys that differ, and are followed only after a restart.
        waiting: Vec<Arc<str>>,
        /// When.
        at: Moment,
    },
    /// It was read anew, and has errors: nothing was changed.
    ReloadFailed {
        /// All of them, each with its place.
        faults: Vec<Arc<str>>,
        /// When.
        at: Moment,
    },
}

impl Event {
    /// The moment by which the log is ordered: when it was known.
    #[must_use]
    pub fn at(&self) -> Moment {
        match self {
            Self::Call(call) => call.settlement.ended,
            Self::Deferred(Deferred { at, .. })
            | Self::Refused(Refused { at, .. })
            | Self::Revised { at, .. }
            | Self::Paused { at, .. }
            | Self::Resumed { at, .. }
            | Self::Held { at, .. }
            | Self::Released { at, .. }
            | Self::Opened { at, .. }
            | Self::Closed { at, .. }
            | Self::ClockStepped { at, .. }
            | Self::Truncated { at, .. }
            | Self::Pruned { at, .. }
            | Self::BodiesLetGo { at, .. }
            | Self::Task { at, .. }
            | Self::Set { at, .. }
            | Self::Denied { at, .. }
            | Self::Lapsed { at, .. }
            | Self::Reloaded { at, .. }
            | Self::ReloadFailed { at, .. } => *at,
        }
    }

    /// The earliest moment it speaks of.
    #[must_use]
    pub fn begin(&self) -> Moment {
        match self {
            Self::Call(call) => call.intent.decided,
            other => other.at(),
        }
    }

    /// The name of its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Deferred(_) => "deferred",
            Self::Refused(_) => "refused",
            Self::Revised { .. } => "revised",
            Self::Paused { .. } => "paused",
            Self::Resumed { .. } => "resumed",
            Self::Held { .. } => "held",
            Self::Released { .. } => "released",
            Self::Opened { .. } => "opened",
            Self::Closed { .. } => "closed",
            Self::ClockStepped { .. } => "clock_stepped",
            Self::Truncated { .. } => "truncated",
            Self::Pruned { .. } => "pruned",
            Self::BodiesLetGo { .. } => "bodies_let_go",
            Self::Task { .. } => "task",
            Self::Set { .. } => "set",
            Self::Denied { .. } => "denied",
            Self::Lapsed { .. } => "lapsed",
            Self::Reloaded { .. } => "reloaded",
            Self::ReloadFailed { .. } => "reload_failed",
        }
    }
}
