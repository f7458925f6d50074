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
/// stub
pub struct Windows;
pub struct Who;
pub enum By {
    Agent,
    Trajectory,
    Step,
    Goal,
    Target,
}
impl Windows {
    pub fn new(_: std::time::Duration) -> Self {
        Self
    }
    pub fn add(&mut self, _: &Recorded) {}
    pub fn rows(
        self,
        _: &crate::store::Store,
    ) -> Result<Vec<serde_json::Value>, crate::store::StoreError> {
        Ok(vec![])
    }
}
impl Who {
    pub fn new(_: By) -> Self {
        Self
    }
    pub fn add(&mut self, _: &Recorded) {}
    pub fn rows(self) -> Vec<serde_json::Value> {
        vec![]
    }
}
pub fn event_json(r: &Recorded) -> serde_json::Value {
    serde_json::json!({"kind": r.event.kind(), "event": format!("{:?}", r.event)})
}
pub fn decision_json(_: &Recorded) -> Option<serde_json::Value> {
    None
}
pub fn envelope_rows(
    _: &crate::store::Store,
) -> Result<Vec<serde_json::Value>, crate::store::StoreError> {
    Ok(vec![])
}
