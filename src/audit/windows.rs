//! The record cut into windows of one length, target by target, beside the
//! limits of then.
//!
//! Windows are cut in decision time, so that a step of the wall clock neither
//! stretches one nor folds two into one. They begin at whole multiples of
//! their length in UTC as long as the clock was not stepped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::envelopes::{envelope, limits_in_words};
use super::event::{Call, Deferred, Event, Refused};
use super::filter::Filter;
use super::query::Recorded;
use crate::budget::{Revision, rfc3339};
use crate::clock::{Moment, nanos};
use crate::outcome::End;
use crate::store::{Store, StoreError};

/// Counts of one target in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Calls that may have arrived.
    pub calls: u64,
    /// Calls of these that the target refused for now.
    pub throttled: u64,
    /// Calls without a whole answer, sent or not.
    pub failed: u64,
    /// Calls given back before they were dialled.
    pub abandoned: u64,
    /// Deferrals.
    pub deferrals: u64,
    /// Refusals by us.
    pub refusals: u64,
    /// Bytes of answers.
    pub bytes: u64,
    /// Tokens spent.
    pub tokens: u64,
    /// The envelopes under which this was decided.
    pub revisions: BTreeSet<Revision>,
    wall_offset: i64,
}

/// Windows of one length. Holds one row for each target of each window.
#[derive(Clone, Debug)]
pub struct Windows {
    width: i128,
    /// What shifts the first window to a whole multiple in UTC.
    shift: Option<i128>,
    from: Moment,
    to: Moment,
    rows: BTreeMap<(i128, Arc<str>), Window>,
}

impl Windows {
    /// Windows of `width`; at least a nanosecond.
    #[must_use]
    pub fn new(width: Duration) -> Self {
        Self {
            width: i128::from(nanos(width).max(1)),
            shift: None,
            from: Moment::ZERO,
            to: Moment::MAX,
            rows: BTreeMap::new(),
        }
    }

    /// Leaves out what counts before `filter` begins or after it ends: a call
    /// that only ended in its time would show windows that are not whole.
    #[must_use]
    pub fn within(mut self, filter: &Filter) -> Self {
        self.from = filter.from.unwrap_or(Moment::ZERO);
        self.to = filter.to.unwrap_or(Moment::MAX);
        self
    }

    /// Counts an event. A call counts in the window in which it departed, or
    /// was granted if it did not.
    pub fn add(&mut self, recorded: &Recorded) {
        let Recorded {
            event,
            wall_offset,
            begun_offset,
            ..
        } = recorded;
        let (at, offset, target) = match event {
            Event::Call(Call { intent, settlement }) => {
                let at = settlement.departed.unwrap_or(intent.decided);
                (at, *begun_offset, intent.target.to_string().into())
            }
            Event::Deferred(Deferred { at, target, .. }) => {
                (*at, *wall_offset, target.to_string().into())
            }
            Event::Refused(Refused { at, target, .. }) => (*at, *wall_offset, target.clone()),
            Event::Revised { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::Held { .. }
            | Event::Released { .. }
            | Event::Opened { .. }
            | Event::Closed { .. }
            | Event::ClockStepped { .. }
            | Event::Truncated { .. }
            | Event::Pruned { .. }
            | Event::BodiesLetGo { .. }
            | Event::Task { .. }
            | Event::Set { .. }
            | Event::Denied { .. }
            | Event::Lapsed { .. }
            | Event::Reloaded { .. }
            | Event::ReloadFailed { .. } => return,
        };
        if at < self.from || at >= self.to {
            return;
        }
        let row = self.row(at, offset, target);
        match event {
            Event::Call(call) => row.call(call),
            Event::Deferred(Deferred {
                count, revision, ..
            }) => {
                row.deferrals = row.deferrals.saturating_add(*count);
                row.revisions.insert(*revision);
            }
            Event::Refused(Refused { count, .. }) => {
                row.refusals = row.refusals.saturating_add(*count);
            }
            _ => {}
        }
    }

    fn row(&mut self, at: Moment, wall_offset: i64, target: Arc<str>) -> &mut Window {
        let shift = i128::from(wall_offset).rem_euclid(self.width);
        let shift = *self.shift.get_or_insert(shift);
        let window = (i128::from(at.as_nanos()) + shift).div_euclid(self.width);
        let new = || Window {
            wall_offset,
            ..Window::default()
        };
        self.rows.entry((window, target)).or_insert_with(new)
    }

    /// Start, target and counts, by start and then by target.
    pub fn iter(&self) -> impl Iterator<Item = (Moment, &str, &Window)> {
        self.rows
            .iter()
            .map(|((window, target), row)| (self.start(*window), &**target, row))
    }

    fn start(&self, window: i128) -> Moment {
        let start = window * self.width - self.shift.unwrap_or(0);
        Moment::from_nanos(u64::try_from(start.max(0)).unwrap_or(u64::MAX))
    }

    /// The rows as objects, the limits of their envelopes in words beside them.
    ///
    /// # Errors
    /// When an envelope cannot be read.
    pub fn rows(&self, store: &Store) -> Result<Vec<Value>, StoreError> {
        let mut known: HashMap<Revision, Vec<String>> = HashMap::new();
        for revision in self.rows.values().flat_map(|row| &row.revisions) {
            if !known.contains_key(revision) {
                let words = envelope(store, *revision)?.as_ref().map(limits_in_words);
                known.insert(*revision, words.unwrap_or_default());
            }
        }
        Ok(self
            .iter()
            .map(|(start, target, row)| self.json(start, target, row, &known))
            .collect())
    }

    fn json(
        &self,
        start: Moment,
        target: &str,
        row: &Window,
        limits: &HashMap<Revision, Vec<String>>,
    ) -> Value {
        let envelopes = row
            .revisions
            .iter()
            .map(|revision| json!({"envelope_revision": revision, "limits": limits.get(revision)}));
        let width = Duration::from_nanos(u64::try_from(self.width).unwrap_or(u64::MAX));
        json!({
            "start": rfc3339(start, row.wall_offset),
            "end": rfc3339(start.after(width), row.wall_offset),
            "target": target,
            "calls": row.calls,
            "throttled": row.throttled,
            "failed": row.failed,
            "abandoned": row.abandoned,
            "deferrals": row.deferrals,
            "refusals": row.refusals,
            "bytes": row.bytes,
            "tokens": row.tokens,
            "envelopes": envelopes.collect::<Vec<_>>(),
        })
    }
}

impl Window {
    fn call(&mut self, call: &Call) {
        let end = call.settlement.end;
        self.calls += u64::from(end.may_have_arrived());
        match end {
            End::Answered => {}
            End::Throttled => self.throttled += 1,
            End::Partial | End::Unanswered | End::NotSent | End::Interrupted => self.failed += 1,
            End::Abandoned => self.abandoned += 1,
        }
        if end != End::Abandoned {
            self.tokens += u64::from(call.intent.cost);
        }
        self.bytes = self.bytes.saturating_add(call.settlement.bytes);
        self.revisions.insert(call.intent.revision);
    }
}
