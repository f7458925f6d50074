//! One limit and what has been spent of it.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::gcra::{Nonconforming, conforms};
use super::limit::{Limit, Reset};
use super::tally::{Calendar, Tally};
use crate::clock::{Moment, nanos};

/// What a meter needs to know of its surroundings to answer.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Now.
    pub now: Moment,
    /// Tokens granted whose requests have not left: a debt that does not decay.
    pub under_way: u64,
    /// By how much delays on the way may differ.
    pub margin: Duration,
    /// Nanoseconds from decision time to UTC.
    pub utc_offset: i64,
}

/// The longest that a request is on its way when a day of UTC ends.
const ON_THE_WAY: Duration = Duration::from_secs(10);

/// A limit with its state.
#[derive(Clone, Debug)]
pub struct Meter {
    limit: Limit,
    spent: Spent,
}

/// The state of a limit, as it is kept over restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spent {
    /// The theoretical arrival time, and the interval it was reckoned in.
    Paced {
        /// Nanoseconds a token takes to come back.
        interval: u64,
        /// When the bucket will be full again.
        tat: Moment,
    },
    /// A count.
    Counted(Tally),
}

/// A meter as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedMeter {
    /// Which limit of its scope.
    pub limit: Limit,
    /// What was spent.
    pub spent: Spent,
}

impl Meter {
    /// A meter of `limit` with nothing spent.
    #[must_use]
    pub fn full(limit: Limit) -> Self {
        let spent = match limit {
            Limit::Quota { .. } => Spent::Counted(Tally::default()),
            _ => Spent::Paced {
                interval: limit.interval(),
                tat: Moment::ZERO,
            },
        };
        Self { limit, spent }
    }

    /// A meter of `limit` that goes on from what is known of it. Where only the
    /// same limit with other numbers is known, so many tokens spent stay so
    /// many; where only other limits of its scope are, as many are spent as of
    /// the fullest of them, since the target has seen those calls.
    #[must_use]
    pub fn resumed(limit: Limit, known: &[SavedMeter], around: &Surroundings) -> Self {
        let mut meter = Self::full(limit);
        let kin = |saved: &&SavedMeter| saved.limit.identity() == limit.identity();
        let calendar = meter.calendar(around);
        let itself = known.iter().find(|saved| saved.is_of(&limit));
        match (&mut meter.spent, itself) {
            (spent, Some(itself)) => spent.clone_from(&itself.spent),
            (Spent::Paced { interval, tat }, None) => {
                let has_kin = known.iter().any(|saved| kin(&saved));
                let spent = known
                    .iter()
                    .filter(|saved| !has_kin || kin(saved))
                    .filter_map(|saved| saved.in_intervals_of(*interval, around));
                *tat = spent.max().unwrap_or(Moment::ZERO);
            }
            (Spent::Counted(tally), None) => {
                let has_kin = known.iter().any(|saved| kin(&saved));
                let used = known
                    .iter()
                    .filter(|saved| !has_kin || kin(saved))
                    .map(|saved| saved.used(around))
                    .max();
                // Nobody knows any more when they left: now is the careful guess.
                if let Some(used) = used.filter(|used| *used > 0) {
                    tally.add(used, around.now, &calendar);
                }
            }
        }
        meter.clamp(around);
        meter
    }

    /// No state may lie further ahead than an empty bucket; for a cap over a
    /// window no further than a window, in which all of it may have been sent
    /// when its burst was another one.
    pub fn clamp(&mut self, around: &Surroundings) {
        let calendar = self.calendar(around);
        let burst = u64::from(self.limit.burst().get());
        let window = match self.limit {
            Limit::Max { .. } => self.limit.identity().period,
            Limit::Rate { .. } | Limit::Quota { .. } => 0,
        };
        match &mut self.spent {
            Spent::Paced { interval, tat } => {
                let capacity = interval.saturating_mul(burst).max(window);
                let empty = around.now.as_nanos().saturating_add(capacity);
                *tat = (*tat).min(Moment::from_nanos(empty));
            }
            Spent::Counted(tally) => tally.clamp(around.now, &calendar),
        }
    }

    /// The limit.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// The meter as the store keeps it.
    #[must_use]
    pub fn saved(&self) -> SavedMeter {
        SavedMeter {
            limit: self.limit,
            spent: self.spent.clone(),
        }
    }

    fn calendar(&self, around: &Surroundings) -> Calendar {
        calendar(&self.limit, around)
    }

    /// Could `cost` ever be granted?
    #[must_use]
    pub fn can_hold(&self, cost: NonZeroU32) -> bool {
        cost <= self.limit.burst()
    }

    /// The earliest instant known now at which `cost` will be granted; `now`
    /// itself when it would be granted at once. Exact while nothing is under
    /// way; else as if everything under way left now.
    #[must_use]
    pub fn ready(&self, cost: NonZeroU32, around: &Surroundings) -> Moment {
        let now = around.now;
        match &self.spent {
            Spent::Paced { interval, tat } => {
                // The target's own bucket refills by what arrives, and an
                // arrival may be late by the margin: decide as of that much ago.
                let offered = owed(*tat, now, *interval, around.under_way);
                match conforms(
                    offered,
                    *interval,
                    self.limit.burst(),
                    cost,
                    now.before(around.margin),
                ) {
                    Ok(()) => now,
                    Err(Nonconforming::Until(ready)) => ready.after(around.margin).max(now),
                    Err(Nonconforming::Never) => Moment::MAX,
                }
            }
            Spent::Counted(tally) => {
                let calendar = self.calendar(around);
                let free = u64::from(self.limit.burst().get())
                    .saturating_sub(around.under_way)
                    .checked_sub(u64::from(cost.get()));
                match free {
                    Some(free) => tally.falls_to(free, now, &calendar),
                    // All of it is under way: no instant is known before some of it has left.
                    None => tally
                        .falls_to(0, now, &calendar)
                        .max(now.after(Duration::from_secs(1))),
                }
            }
        }
    }

    /// How many single calls would be granted one after the other at once.
    #[must_use]
    pub fn left(&self, around: &Surroundings) -> u64 {
        if self.ready(NonZeroU32::MIN, around) > around.now {
            return 0;
        }
        let burst = u64::from(self.limit.burst().get());
        match &self.spent {
            Spent::Paced { interval, tat } => {
                // From the first grant on the debt is counted from now.
                let base = (*tat).max(around.now).as_nanos();
                let tolerance = interval.saturating_mul(burst.saturating_sub(1));
                let reach = around
                    .now
                    .before(around.margin)
                    .as_nanos()
                    .saturating_add(tolerance);
                let room = reach.saturating_sub(base) / (*interval).max(1);
                room.saturating_add(1)
                    .saturating_sub(around.under_way)
                    .clamp(1, burst)
            }
            Spent::Counted(tally) => {
                let used = tally.used(around.now, &self.calendar(around));
                burst.saturating_sub(used).saturating_sub(around.under_way)
            }
        }
    }

    /// When the last of so many single calls could be granted, if each were
    /// asked for as early as may be and left at once.
    #[must_use]
    pub fn granted_at(&self, calls: u64, around: &Surroundings) -> Moment {
        let now = around.now;
        let Some(later) = calls.checked_sub(1) else {
            return now;
        };
        let burst = u64::from(self.limit.burst().get());
        match &self.spent {
            Spent::Paced { interval, tat } => {
                let first = self.ready(NonZeroU32::MIN, around);
                let Some(between) = later.checked_sub(1) else {
                    return first;
                };
                // The margin costs time where the burst does not cover it.
                let tolerance = interval.saturating_mul(burst.saturating_sub(1));
                let uncovered = nanos(around.margin).saturating_sub(tolerance);
                let apart = interval.saturating_add(uncovered).saturating_mul(between);
                let tat = owed(*tat, now, *interval, around.under_way).max(first);
                let last = tat
                    .as_nanos()
                    .saturating_add(*interval)
                    .saturating_add(apart);
                Moment::from_nanos(last.saturating_sub(tolerance))
                    .after(around.margin)
                    .max(first)
            }
            Spent::Counted(tally) => {
                let calendar = self.calendar(around);
                let used = tally.used(now, &calendar).saturating_add(around.under_way);
                let Some(beyond) = later.checked_sub(burst.saturating_sub(used)) else {
                    return now;
                };
                let anew = match calendar.reset {
                    Reset::Utc => calendar.next(now),
                    Reset::Rolling => tally.falls_to(0, now, &calendar),
                };
                let periods = beyond / burst.max(1);
                anew.after(Duration::from_nanos(
                    calendar.period.saturating_mul(periods),
                ))
            }
        }
    }

    /// When nothing of it will be spent any more, if nothing is taken.
    #[must_use]
    pub fn full_at(&self, around: &Surroundings) -> Moment {
        match &self.spent {
            Spent::Paced { interval, tat } => owed(*tat, around.now, *interval, around.under_way)
                .after(around.margin)
                .max(around.now),
            Spent::Counted(tally) => tally.falls_to(0, around.now, &self.calendar(around)),
        }
    }

    /// `cost` tokens left for the target at `departed`.
    pub fn depart(&mut self, cost: u64, departed: Moment, around: &Surroundings) {
        let calendar = self.calendar(around);
        match &mut self.spent {
            Spent::Paced { interval, tat } => {
                let base = (*tat).max(departed).as_nanos();
                *tat = Moment::from_nanos(base.saturating_add(interval.saturating_mul(cost)));
            }
            Spent::Counted(tally) => tally.add(cost, departed, &calendar),
        }
    }

    /// Empties a paced bucket: from now on one token each interval.
    pub fn drain(&mut self, now: Moment) {
        if let Spent::Paced { interval, tat } = &mut self.spent {
            let burst = u64::from(self.limit.burst().get());
            let empty = now
                .as_nanos()
                .saturating_add(interval.saturating_mul(burst));
            *tat = (*tat).max(Moment::from_nanos(empty));
        }
    }

    /// True when a new meter would answer the same for ever.
    #[must_use]
    pub fn is_full(&self, around: &Surroundings) -> bool {
        match &self.spent {
            Spent::Paced { tat, .. } => tat.after(around.margin) <= around.now,
            Spent::Counted(tally) => tally.is_idle(around.now, &self.calendar(around)),
        }
    }
}

impl SavedMeter {
    /// True when it counted just what `limit` counts. For a quota that is so
    /// whatever its number.
    #[must_use]
    pub fn is_of(&self, limit: &Limit) -> bool {
        match (self.limit, limit) {
            (Limit::Quota { reset, .. }, Limit::Quota { reset: other, .. }) => {
                reset == *other && self.limit.identity() == limit.identity()
            }
            _ => self.limit == *limit,
        }
    }

    /// The tokens spent of it, as a theoretical arrival time in another
    /// interval; none for a count.
    fn in_intervals_of(&self, interval: u64, around: &Surroundings) -> Option<Moment> {
        match self.spent {
            Spent::Paced { interval: own, tat } => {
                // What left in the last moments may arrive when the longer interval
                // holds already: it counts as if nothing of it had come back.
                let as_of = if interval > own {
                    around.now.before(around.margin)
                } else {
                    around.now
                };
                Some(rescaled(tat, own, interval, as_of))
            }
            Spent::Counted(_) => None,
        }
    }

    /// Tokens that are spent and not back: of a paced limit as of a margin ago,
    /// since what left then may arrive now.
    fn used(&self, around: &Surroundings) -> u64 {
        match &self.spent {
            Spent::Paced { interval, tat } => {
                let ahead = tat.since(around.now.before(around.margin));
                nanos(ahead).div_ceil((*interval).max(1))
            }
            Spent::Counted(tally) => tally.used(around.now, &calendar(&self.limit, around)),
        }
    }
}

fn calendar(limit: &Limit, around: &Surroundings) -> Calendar {
    let reset = match limit {
        Limit::Quota { reset, .. } => *reset,
        _ => Reset::Rolling,
    };
    // That delays vary little says nothing of how long they are; at the end of
    // a day that counts.
    let margin = match reset {
        Reset::Utc => around.margin.max(ON_THE_WAY),
        Reset::Rolling => around.margin,
    };
    Calendar {
        period: limit.identity().period,
        reset,
        utc_offset: around.utc_offset,
        margin: nanos(margin),
    }
}

/// The TAT offered to a decision: what is under way is owed in full, from now.
fn owed(tat: Moment, now: Moment, interval: u64, under_way: u64) -> Moment {
    if under_way == 0 {
        return tat;
    }
    let debt = interval.saturating_mul(under_way);
    Moment::from_nanos(tat.max(now).as_nanos().saturating_add(debt))
}

/// The same number of tokens spent, in another interval; rounded up.
fn rescaled(tat: Moment, old: u64, new: u64, now: Moment) -> Moment {
    let ahead = u128::from(tat.as_nanos().saturating_sub(now.as_nanos()));
    let ahead = (ahead * u128::from(new)).div_ceil(u128::from(old.max(1)));
    let ahead = u64::try_from(ahead).unwrap_or(u64::MAX);
    if ahead == 0 {
        tat
    } else {
        Moment::from_nanos(now.as_nanos().saturating_add(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn max(text: &str, burst: u32) -> Limit {
        Limit::max(text.parse().unwrap(), burst.try_into().unwrap()).unwrap()
    }

    #[test]
    fn what_left_just_before_a_tighter_limit_counts_in_full_under_it() {
        let margin = Duration::from_secs(1);
        let around = |now: Moment| Surroundings {
            now,
            under_way: 0,
            margin,
            utc_offset: 0,
        };
        let left = Moment::ZERO.after(Duration::from_hours(1));
        let changed = left.after(Duration::from_millis(110));
        let (loose, tight) = (max("23/s", 11), max("5/s", 2));
        let mut before = Meter::full(loose);
        before.depart(2, left, &around(left));
        let after = Meter::resumed(tight, &[before.saved()], &around(changed));
        // Both may arrive a margin late, and a third that leaves then as early as can be.
        let late = left.after(margin);
        let ready = after.ready(NonZeroU32::MIN, &around(changed));
        assert!(ready >= late.after(Duration::from_nanos(tight.interval())));
        // A cap over a window is one cap whatever its burst: ten are spent.
        let (wide, narrow) = (max("10/5s", 10), max("10/5s", 1));
        let mut before = Meter::full(wide);
        before.depart(10, left, &around(left));
        let after = Meter::resumed(narrow, &[before.saved()], &around(left));
        let ready = after.ready(NonZeroU32::MIN, &around(left));
        assert!(ready >= left.after(Duration::from_secs(5)), "{ready:?}");
        // So are they of a count that comes into force beside or after it.
        let quota = Limit::quota("10/h".parse().unwrap(), Reset::Rolling);
        let after = Meter::resumed(quota, &[before.saved()], &around(left));
        assert_eq!(after.left(&around(left)), 0);
        let (tight, before) = (max("5/s", 2), {
            let mut before = Meter::full(loose);
            before.depart(2, left, &around(left));
            before
        });
        // Nothing that left longer ago is counted again.
        let long = changed.after(margin);
        let after = Meter::resumed(tight, &[before.saved()], &around(long));
        assert_eq!(
            after.left(&around(long)),
            Meter::full(tight).left(&around(long))
        );
    }
}
