//! The record: what was granted, deferred, refused and sent, who caused it,
//! and which envelope was in force.
//!
//! [`Log`] appends; [`events`] reads. A call is on record before it may leave
//! (its *intent*), and again when it has ended (its *settlement*). What is
//! closed is packed into segments chained by hash. Reading needs the store
//! alone, with nothing else alive. [`event_json`], [`Windows`], [`Who`] and
//! [`envelope_rows`] are views of the same events.

mod copy;
mod count;
mod envelopes;
mod event;
mod filter;
mod frame;
mod frames;
mod head;
mod index;
mod log;
mod names;
mod query;
mod reach;
mod retention;
mod seen;
mod segment;
mod tail;
mod terms;
mod view;
mod who;
mod windows;

pub use copy::{Copied, copy};
pub use envelopes::{
    all_in_words, envelope, envelope_json, envelope_rows, envelopes, limits_in_words,
};
pub use event::{Call, Deferred, Event, Intent, Refused, Settlement, TaskRef};
pub use filter::Filter;
pub use log::Log;
pub use query::{Recorded, events, under_way};
pub use retention::Retained;
pub use seen::{Seen, SeenHost};
pub use tail::Interrupted;
pub use view::{decision_json, event_json};
pub use who::{By, Counted, Group, Who};
pub use windows::{Window, Windows};

#[cfg(test)]
mod tests;
