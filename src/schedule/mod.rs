//! Back-off as a state of the task, beside queued, running and complete.
//!
//! [`task`] says what each upshot makes of a task; the queue says who is tried
//! next; one loop drives it, with one timer. A task whose target has no room
//! costs nothing while it waits: no future, no timer, no thread. Generic over
//! what a task does ([`Work`]); [`Fetch`] is the work that ships.

mod attempt;
pub mod by_hand;
mod doomed;
mod ending;
mod fair;
mod fetch;
mod job;
mod lanes;
pub mod list;
mod loading;
mod look;
mod ok_status;
mod order;
mod pace;
mod payload;
mod pending;
mod queue;
mod result_line;
mod results;
pub mod task;
mod view;
mod work;
mod worker;

pub use fetch::Fetch;
pub use job::{
    Accepted, Begun, Counting, Earlier, Job, JobRecord, ListDigest, NewTask, Round, Standing,
    Validators, counting, marked, pending, results,
};
pub use ok_status::{OkStatus, OkStatusError, OkStatusProblem};
pub use order::{Cancelled, Handle, Schedule, Started, Stop, Stopped, SubmitError, Submitted};
pub use payload::{HeaderFault, HeaderProblem, HttpPayload};
pub use result_line::{ResultLine, without_userinfo};
pub use results::Results;
pub use view::{LaneView, Snapshot, TaskState, TaskView};
pub use work::{Report, Work};
pub use worker::{Completed, Settings};
