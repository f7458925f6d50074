//! A bucket: all limits of one scope, what is under way, and what pauses it.
//!
//! A call draws from several buckets and takes from all of them or from none.
//! They are locked in the order of their scopes, which is the same for every
//! call; nothing waits while a lock is held.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lack::{Cause, Lack};
use super::limit::Limit;
use super::meter::{Meter, SavedMeter, Surroundings};
use super::meters::Meters;
use super::pause::{Hold, Pause, Role, Setback};
use super::rule::Tier;
use super::scope::Scope;
use crate::clock::Moment;

/// A bucket's name inside the process; what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketId(pub u64);

/// A bucket.
#[derive(Debug)]
pub struct Bucket {
    id: BucketId,
    scope: Scope,
    state: Mutex<State>,
}

/// What a bucket holds; only ever seen under its lock.
#[derive(Debug)]
pub(crate) struct State {
    meters: Meters,
    concurrency: Option<NonZeroU32>,
    margin: Duration,
    under_way: u64,
    in_flight: u32,
    pause: Option<Pause>,
    hold: Option<Hold>,
    /// The place in line told to the latest deferral.
    line: Moment,
    /// How long calls take, smoothed, once one has ended: the estimate when
    /// concurrency is short.
    typical: Option<Duration>,
    used: Moment,
    reached: bool,
}

/// A bucket as the store keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedBucket {
    /// What was spent of each limit.
    pub meters: Vec<SavedMeter>,
    /// True when a call has ever been answered.
    pub reached: bool,
}

/// What keeps a bucket closed, as the store keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStops {
    /// The pause in force.
    pub pause: Option<Pause>,
    /// The hold in force.
    pub hold: Option<Hold>,
}

/// How long a call takes where nothing is known.
const A_CALL: Duration = Duration::from_secs(1);
/// Nobody is told to come back sooner for a call to end: its end wakes them.
const SOONEST: Duration = Duration::from_millis(100);
/// The most by which a place in line lies after the earliest instant.
const LONGEST_LINE: Duration = Duration::from_mins(5);

impl Bucket {
    /// A bucket of `tier` that goes on from what was kept of it.
    #[must_use]
    pub fn resumed(
        id: BucketId,
        tier: &Tier,
        saved: &SavedBucket,
        stops: SavedStops,
        now: Moment,
        utc_offset: i64,
    ) -> Self {
        let mut state = State {
            meters: Meters::default(),
            concurrency: None,
            margin: Duration::ZERO,
            under_way: 0,
            in_flight: 0,
            pause: stops.pause,
            hold: stops.hold,
            line: Moment::ZERO,
            typical: None,
            used: now,
            reached: saved.reached,
        };
        state.fit(tier, &saved.meters, now, utc_offset);
        Self {
            id,
            scope: tier.scope.clone(),
            state: Mutex::new(state),
        }
    }

    /// Its name in this process.
    #[must_use]
    pub fn id(&self) -> BucketId {
        self.id
    }

    /// Whose budget it holds.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes on another tier's limits; what was spent stays spent.
    pub(crate) fn refit(&mut self, tier: &Tier, now: Moment, utc_offset: i64) {
        if self.meters.are_of(&tier.limits) {
            self.margin = tier.arrival_margin;
            self.concurrency = tier.concurrency;
            return;
        }
        let saved = self.meters.saved();
        self.fit(tier, &saved, now, utc_offset);
    }

    fn fit(&mut self, tier: &Tier, saved: &[SavedMeter], now: Moment, utc_offset: i64) {
        self.margin = tier.arrival_margin;
        self.concurrency = tier.concurrency;
        let around = self.around(now, utc_offset);
        self.meters = Meters::of(&tier.limits, saved, &around);
    }

    pub(crate) fn around(&self, now: Moment, utc_offset: i64) -> Surroundings {
        Surroundings {
            now,
            under_way: self.under_way,
            margin: self.margin,
            utc_offset,
        }
    }

    pub(crate) fn meters(&self) -> &[Meter] {
        self.meters.in_force()
    }

    pub(crate) fn can_ever(&self, cost: NonZeroU32) -> bool {
        self.meters().iter().all(|meter| meter.can_hold(cost))
    }

    /// What is lacking for a call of `cost` at `now`; the hardest stop first.
    pub(crate) fn lack(&self, cost: NonZeroU32, now: Moment, utc_offset: i64) -> Option<Lack> {
        if let Some(hold) = self.hold(now) {
            return Some(Lack {
                cause: Cause::Held,
                ready: hold.until,
                limit: None,
            });
        }
        let around = self.around(now, utc_offset);
        let budget = self
            .meters()
            .iter()
            .map(|meter| (meter.ready(cost, &around), *meter.limit()));
        let budget = budget
            .max_by_key(|(ready, _)| *ready)
            .filter(|(ready, _)| *ready > now);
        let budget_ready = budget.map_or(now, |(ready, _)| ready);
        if let Some(pause) = &self.pause
            && (now < pause.until || pause.probing)
        {
            let end = if pause.probing {
                now.after(self.a_call())
            } else {
                pause.until
            };
            return Some(Lack {
                cause: pause.because.into(),
                ready: Some(end.max(budget_ready)),
                limit: None,
            });
        }
        if let Some((ready, limit)) = budget {
            return Some(Lack {
                cause: Cause::BudgetEmpty,
                ready: Some(ready),
                limit: Some(limit),
            });
        }
        let full = self
            .concurrency
            .is_some_and(|most| self.in_flight >= most.get());
        full.then(|| Lack {
            cause: Cause::Concurrency,
            ready: Some(now.after(self.a_call())),
            limit: None,
        })
    }

    /// Takes `cost` for one call.
    pub(crate) fn grant(&mut self, cost: NonZeroU32, now: Moment) -> Role {
        self.under_way = self.under_way.saturating_add(u64::from(cost.get()));
        self.in_flight = self.in_flight.saturating_add(1);
        self.used = now;
        self.hold = None;
        match &mut self.pause {
            Some(pause) => {
                pause.probing = true;
                Role::Probe
            }
            None => Role::Ordinary,
        }
    }

    /// The place in line of a deferral that may go at `ready`: later for each
    /// one still outstanding, by the time a token takes to come back.
    pub(crate) fn queue_up(&mut self, ready: Moment) -> Moment {
        let place = self.line.max(ready).min(ready.after(LONGEST_LINE));
        let interval = self.meters().iter().map(|meter| match meter.limit() {
            Limit::Quota { .. } => 0,
            limit => limit.interval(),
        });
        self.line = place.after(Duration::from_nanos(interval.max().unwrap_or(0)));
        place
    }

    pub(crate) fn depart(&mut self, cost: NonZeroU32, departed: Moment, utc_offset: i64) {
        self.under_way = self.under_way.saturating_sub(u64::from(cost.get()));
        let around = self.around(departed, utc_offset);
        self.meters.depart(u64::from(cost.get()), departed, &around);
    }

    /// A call that was under way when its gate died counts as sent now; but
    /// never more is spent than a whole bucket.
    pub(crate) fn recover(&mut self, cost: u32, now: Moment, utc_offset: i64) {
        let around = self.around(now, utc_offset);
        self.meters.depart(u64::from(cost), now, &around);
        self.meters.clamp(&around);
    }

    /// Gives back what never left.
    pub(crate) fn refund(&mut self, cost: NonZeroU32) {
        self.under_way = self.under_way.saturating_sub(u64::from(cost.get()));
    }

    /// A call is no longer under way.
    pub(crate) fn end(&mut self, lasted: Option<Duration>, now: Moment) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.used = now;
        if let Some(lasted) = lasted {
            let lasted = lasted.min(Duration::from_mins(10));
            self.typical = Some(match self.typical {
                Some(typical) => (typical * 7 + lasted) / 8,
                None => lasted,
            });
        }
    }

    /// How long calls take, where one has ended.
    pub(crate) fn typical(&self) -> Option<Duration> {
        self.typical
    }

    /// When the end of a call under way may be expected.
    fn a_call(&self) -> Duration {
        self.typical.unwrap_or(A_CALL).max(SOONEST)
    }

    /// What keeps the bucket closed whatever is left, and until when.
    pub(crate) fn stop(&self, now: Moment) -> Option<(Cause, Option<Moment>)> {
        if let Some(hold) = self.hold(now) {
            return Some((Cause::Held, hold.until));
        }
        let pause = self.pause.as_ref().filter(|pause| now < pause.until)?;
        Some((pause.because.into(), Some(pause.until)))
    }

    /// A probe ended without a word on whether the pause is over.
    pub(crate) fn free_probe(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.probing = false;
        }
    }

    pub(crate) fn set_back(
        &mut self,
        setback: &Setback,
        role: Role,
        now: Moment,
        jitter: f64,
    ) -> Pause {
        let pause = Pause::after(self.pause.as_ref(), setback, role, now, jitter);
        self.pause = Some(pause.clone());
        pause
    }

    /// The probe was answered: the pause is over, unless it was lengthened
    /// while the probe was out.
    pub(crate) fn resume(&mut self, now: Moment) -> Option<Pause> {
        self.pause.take_if(|pause| pause.until <= now)
    }

    /// Empties the bucket, so that what waited comes back one by one.
    pub(crate) fn drain(&mut self, now: Moment) {
        self.meters.drain(now);
    }

    pub(crate) fn reach(&mut self) {
        self.reached = true;
    }

    pub(crate) fn was_reached(&self) -> bool {
        self.reached
    }

    pub(crate) fn pause(&self) -> Option<&Pause> {
        self.pause.as_ref()
    }

    /// The hold in force.
    pub(crate) fn hold(&self, now: Moment) -> Option<&Hold> {
        let is_on = |hold: &&Hold| hold.until.is_none_or(|until| now < until);
        self.hold.as_ref().filter(is_on)
    }

    pub(crate) fn is_held(&self, now: Moment) -> bool {
        self.hold(now).is_some()
    }

    pub(crate) fn set_hold(&mut self, hold: Option<Hold>) -> Option<Hold> {
        std::mem::replace(&mut self.hold, hold)
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(crate) fn concurrency(&self) -> Option<NonZeroU32> {
        self.concurrency
    }

    pub(crate) fn saved(&self) -> SavedBucket {
        SavedBucket {
            meters: self.meters.saved(),
            reached: self.reached,
        }
    }

    pub(crate) fn stops(&self) -> SavedStops {
        SavedStops {
            pause: self.pause.clone(),
            hold: self.hold.clone(),
        }
    }

    /// True when a new bucket in its place would answer the same: nothing
    /// spent, nothing under way, nothing that stops it, and unused for `idle`.
    pub(crate) fn is_idle(&self, now: Moment, idle: Duration, utc_offset: i64) -> bool {
        let around = self.around(now, utc_offset);
        self.under_way == 0
            && self.in_flight == 0
            && self.pause.is_none()
            && self.hold(now).is_none()
            && now.since(self.used) >= idle
            && self.meters.is_full(&around)
    }
}
