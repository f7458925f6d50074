//! A flood of deferrals must not become a flood of records: the first of a
//! kind in a minute goes on record at once, and how many followed when the
//! minute is over. Minutes are those of the wall clock, so that a window of
//! whole minutes holds what was counted in it and nothing else.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::event::{Deferred, Event, Refused};
use crate::budget::Cause;
use crate::clock::Moment;
use crate::target::TargetKey;

/// In nanoseconds.
const MINUTE: i128 = 60_000_000_000;
/// How often the kinds are gone through.
const SWEEP: Duration = Duration::from_secs(1);
/// Kinds held in memory, at some 400 bytes each; more are written out early, so
/// that a flood over more targets than this is a flood of records after all.
pub(super) const MOST_KINDS: usize = 150_000;

/// What has been counted and is not on record.
#[derive(Debug, Default)]
pub(super) struct Counts {
    swept: Moment,
    /// Nanoseconds from decision time to the wall clock.
    wall_offset: i64,
    /// Of minutes that are over.
    over: Vec<Event>,
    deferred: HashMap<DeferralKind, Deferred>,
    refused: HashMap<RefusalKind, Refused>,
}

/// Target, agent and cause.
pub(super) type DeferralKind = (TargetKey, Arc<str>, Cause);
/// Target, agent and reason.
type RefusalKind = (Arc<str>, Arc<str>, Arc<str>);

impl Counts {
    /// Counts another deferral of a kind; false when it would be the first in
    /// its minute.
    pub(super) fn defer_again(&mut self, kind: &DeferralKind, at: Moment) -> bool {
        let (offset, minute) = (self.wall_offset, minute_of(at, self.wall_offset));
        let known = self.deferred.get_mut(kind);
        let known = known.filter(|sum| minute_of(sum.at, offset) >= minute);
        known
            .map(|sum| sum.count = sum.count.saturating_add(1))
            .is_some()
    }

    /// Counts by the minutes of this wall clock.
    pub(super) fn by(wall_offset: i64) -> Self {
        Self {
            wall_offset,
            ..Self::default()
        }
    }

    /// The wall clock was set: so much is to be added to decision time now.
    pub(super) fn step(&mut self, wall_offset: i64) {
        let counted = self.flush();
        self.wall_offset = wall_offset;
        self.over = counted;
    }

    /// Counts a deferral; the first of its kind in its minute is returned, to
    /// go on record.
    pub(super) fn defer(&mut self, deferred: Deferred) -> Option<Event> {
        let Deferred {
            target,
            step,
            cause,
            ..
        } = &deferred;
        let kind = (target.clone(), step.agent.clone(), *cause);
        let minute = minute_of(deferred.at, self.wall_offset);
        let before = self.deferred.get(&kind);
        if before.is_some_and(|before| minute_of(before.at, self.wall_offset) < minute) {
            let before = self.deferred.remove(&kind);
            let before = before.filter(|before| before.count > 0);
            self.over.extend(before.map(Event::Deferred));
        }
        count(&mut self.deferred, kind, deferred, |deferred| {
            &mut deferred.count
        })
        .map(Event::Deferred)
    }

    /// Counts a refusal in the same way.
    pub(super) fn refuse(&mut self, refused: Refused) -> Option<Event> {
        let Refused {
            target,
            step,
            reason,
            ..
        } = &refused;
        let kind = (target.clone(), step.agent.clone(), reason.clone());
        let minute = minute_of(refused.at, self.wall_offset);
        let before = self.refused.get(&kind);
        if before.is_some_and(|before| minute_of(before.at, self.wall_offset) < minute) {
            let before = self.refused.remove(&kind);
            let before = before.filter(|before| before.count > 0);
            self.over.extend(before.map(Event::Refused));
        }
        count(&mut self.refused, kind, refused, |refused| {
            &mut refused.count
        })
        .map(Event::Refused)
    }

    /// Is it time to go through the kinds?
    pub(super) fn is_due(&self, now: Moment) -> bool {
        now.since(self.swept) >= SWEEP || self.is_full()
    }

    fn is_full(&self) -> bool {
        self.deferred.len() + self.refused.len() + self.over.len() >= MOST_KINDS
    }

    /// The counts of the kinds whose minute is over.
    pub(super) fn due(&mut self, now: Moment) -> Vec<Event> {
        if !self.is_due(now) {
            return Vec::new();
        }
        self.swept = self.swept.max(now);
        if self.is_full() {
            return self.flush();
        }
        let offset = self.wall_offset;
        let minute = minute_of(now, offset);
        self.take(|since| minute_of(since, offset) < minute)
    }

    /// All counts.
    pub(super) fn flush(&mut self) -> Vec<Event> {
        self.take(|_| true)
    }

    fn take(&mut self, is_over: impl Fn(Moment) -> bool) -> Vec<Event> {
        let deferred = self.deferred.extract_if(|_, kind| is_over(kind.at));
        let deferred = deferred.filter(|(_, kind)| kind.count > 0);
        let mut events = std::mem::take(&mut self.over);
        events.extend(deferred.map(|(_, kind)| Event::Deferred(kind)));
        let refused = self.refused.extract_if(|_, kind| is_over(kind.at));
        let refused = refused.filter(|(_, kind)| kind.count > 0);
        events.extend(refused.map(|(_, kind)| Event::Refused(kind)));
        events.sort_by_key(Event::at);
        events
    }
}

fn minute_of(at: Moment, wall_offset: i64) -> i128 {
    (i128::from(at.as_nanos()) + i128::from(wall_offset)).div_euclid(MINUTE)
}

fn count<K: Eq + Hash, T: Clone>(
    known: &mut HashMap<K, T>,
    kind: K,
    one: T,
    number: impl Fn(&mut T) -> &mut u64,
) -> Option<T> {
    let mut one = one;
    if let Some(sum) = known.get_mut(&kind) {
        let sum = number(sum);
        *sum = sum.saturating_add(*number(&mut one));
        return None;
    }
    let first = one.clone();
    *number(&mut one) = 0;
    known.insert(kind, one);
    Some(first)
}
