//! The record: what was granted, deferred, refused and sent, who caused it,
//! and which envelope was in force.
//!
//! [`Log`] appends; [`events`] reads. A call is on record before it may leave
//! (its *intent*), and again when it has ended (its *settlement*). What is
//! closed is packed into segments chained by hash. Reading needs the store
//! alone, with nothing else alive.

mod count;
mod event;
mod head;
mod log;
mod names;
mod query;
mod segment;

pub use event::{Call, Deferred, Event, Intent, Refused, Settlement, TaskRef};
pub use log::{Interrupted, Log};
pub use query::{Filter, Recorded, events, under_way};
