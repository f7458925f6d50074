//! The count behind a quota: so many in a long period, not paced.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::limit::Reset;
use crate::clock::Moment;

/// A rolling period is counted in this many parts; a call is let go when its
/// whole part is a period old, so the count never runs low, only late.
const PARTS: u64 = 64;

/// Calls counted by part of time: by whole periods of UTC, or by the parts of
/// a rolling one. Oldest first, no part twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally(VecDeque<(u64, u64)>);

/// How a tally's parts lie in time.
#[derive(Clone, Copy, Debug)]
pub struct Calendar {
    /// The quota's period in nanoseconds.
    pub period: u64,
    /// When it starts anew.
    pub reset: Reset,
    /// Nanoseconds from decision time to UTC.
    pub utc_offset: i64,
    /// A call counts where it may arrive: up to this many nanoseconds late.
    pub margin: u64,
}

impl Calendar {
    fn width(&self) -> u64 {
        match self.reset {
            Reset::Utc => self.period,
            Reset::Rolling => self.period.div_ceil(PARTS),
        }
        .max(1)
    }

    fn offset(&self) -> i64 {
        match self.reset {
            Reset::Utc => self.utc_offset,
            Reset::Rolling => 0,
        }
    }

    fn part(&self, at: u64) -> u64 {
        at.saturating_add_signed(self.offset()) / self.width()
    }

    /// When the next part begins.
    #[must_use]
    pub fn next(&self, now: Moment) -> Moment {
        let next = self.part(now.as_nanos()).saturating_add(1);
        let begins = next.saturating_mul(self.width());
        Moment::from_nanos(begins.saturating_add_signed(self.offset().saturating_neg()))
    }

    /// When a part's calls no longer count.
    fn freed(&self, part: u64) -> Moment {
        let end = part
            .saturating_add(1)
            .saturating_mul(self.width())
            .saturating_add_signed(self.offset().saturating_neg());
        Moment::from_nanos(match self.reset {
            Reset::Utc => end,
            Reset::Rolling => end.saturating_add(self.period).saturating_add(self.margin),
        })
    }
}

impl Tally {
    /// Counts `cost` calls that left at `departed`.
    pub fn add(&mut self, cost: u64, departed: Moment, calendar: &Calendar) {
        self.forget(departed, calendar);
        let departed = departed.as_nanos();
        let first = calendar.part(departed);
        self.put(first, cost);
        // Near midnight nobody knows in which day it arrives: it counts in both.
        let last = calendar.part(departed.saturating_add(calendar.margin));
        if calendar.reset == Reset::Utc && last != first {
            self.put(last, cost);
        }
    }

    fn put(&mut self, part: u64, cost: u64) {
        match self.0.iter_mut().rev().find(|(at, _)| *at == part) {
            Some((_, count)) => *count = count.saturating_add(cost),
            None => {
                let place = self.0.partition_point(|(at, _)| *at < part);
                self.0.insert(place, (part, cost));
            }
        }
    }

    fn forget(&mut self, now: Moment, calendar: &Calendar) {
        while self
            .0
            .front()
            .is_some_and(|(part, _)| calendar.freed(*part) <= now)
        {
            self.0.pop_front();
        }
    }

    /// The parts that count at `now`, oldest first. A UTC day that has not
    /// begun (a call near midnight, a clock that was set back) counts as well
    /// as today: never more is let through than either would allow.
    fn counting(&self, now: Moment, calendar: &Calendar) -> impl Iterator<Item = (u64, u64)> {
        let counts = move |part: u64| calendar.freed(part) > now;
        self.0
            .iter()
            .copied()
            .filter(move |(part, _)| counts(*part))
    }

    /// How many calls count at `now`.
    #[must_use]
    pub fn used(&self, now: Moment, calendar: &Calendar) -> u64 {
        match calendar.reset {
            Reset::Utc => self
                .counting(now, calendar)
                .map(|(_, count)| count)
                .max()
                .unwrap_or(0),
            Reset::Rolling => self.counting(now, calendar).map(|(_, count)| count).sum(),
        }
    }

    /// When at most `allowed` calls will still count, if none is added.
    #[must_use]
    pub fn falls_to(&self, allowed: u64, now: Moment, calendar: &Calendar) -> Moment {
        let mut used = self.used(now, calendar);
        let mut at = now;
        for (part, count) in self.counting(now, calendar) {
            if used <= allowed {
                break;
            }
            at = calendar.freed(part);
            used = match calendar.reset {
                Reset::Utc => self.used(at, calendar),
                Reset::Rolling => used.saturating_sub(count),
            };
        }
        at
    }

    /// True when nothing counts any more.
    #[must_use]
    pub fn is_idle(&self, now: Moment, calendar: &Calendar) -> bool {
        self.counting(now, calendar).next().is_none()
    }

    /// True when it can never count more than a period ahead of `now`; what a
    /// damaged record would break.
    pub fn clamp(&mut self, now: Moment, calendar: &Calendar) {
        let latest = calendar.part(now.as_nanos().saturating_add(calendar.margin));
        for entry in &mut self.0 {
            entry.0 = entry.0.min(latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000_000;

    fn calendar(reset: Reset) -> Calendar {
        Calendar {
            period: DAY,
            reset,
            utc_offset: 0,
            margin: 1_000,
        }
    }

    #[test]
    fn a_utc_day_ends_at_midnight() {
        let days = calendar(Reset::Utc);
        let mut tally = Tally::default();
        tally.add(7, Moment::from_nanos(DAY / 2), &days);
        assert_eq!(tally.used(Moment::from_nanos(DAY - 1), &days), 7);
        assert_eq!(tally.used(Moment::from_nanos(DAY), &days), 0);
        assert_eq!(
            tally.falls_to(6, Moment::from_nanos(DAY / 2), &days),
            Moment::from_nanos(DAY)
        );
    }

    #[test]
    fn a_call_that_may_arrive_after_midnight_counts_in_both_days() {
        let days = calendar(Reset::Utc);
        let mut tally = Tally::default();
        tally.add(1, Moment::from_nanos(DAY - 500), &days);
        assert_eq!(tally.used(Moment::from_nanos(DAY - 1), &days), 1);
        assert_eq!(tally.used(Moment::from_nanos(DAY + 1), &days), 1);
        assert_eq!(tally.used(Moment::from_nanos(2 * DAY), &days), 0);
    }

    #[test]
    fn a_rolling_call_counts_for_at_least_a_period() {
        let rolling = calendar(Reset::Rolling);
        let mut tally = Tally::default();
        for hour in 0..24 {
            tally.add(1, Moment::from_nanos(hour * DAY / 24), &rolling);
        }
        assert_eq!(tally.used(Moment::from_nanos(DAY - 1), &rolling), 24);
        let ready = tally.falls_to(20, Moment::from_nanos(DAY - 1), &rolling);
        assert!(ready >= Moment::from_nanos(DAY + 3 * DAY / 24));
        assert_eq!(tally.used(ready, &rolling), 20);
    }
}
