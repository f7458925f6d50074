//! The decision: governor's GCRA over a state that is ours.
//!
//! governor keeps one quota per limiter, with state relative to the process's
//! start and no way to peek, refund or re-rate. Its `StateStore` and `Clock`
//! are public, so a limiter is built on the stack for each decision, over the
//! one number that we keep: the theoretical arrival time (TAT).

use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};

use crate::clock::Moment;

/// Why the cells do not fit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nonconforming {
    /// They will at this instant, if nothing else is taken.
    Until(Moment),
    /// They never will: more than the bucket holds.
    Never,
}

/// Do `cost` cells conform at `at`, for a bucket of `burst` whose tokens come
/// back one each `interval` nanoseconds (`interval * burst < 2^62`)?
pub(super) fn conforms(
    tat: Moment,
    interval: u64,
    burst: NonZeroU32,
    cost: NonZeroU32,
    at: Moment,
) -> Result<(), Nonconforming> {
    // In a release build governor's own capacity check wraps; this one cannot.
    if cost > burst {
        return Err(Nonconforming::Never);
    }
    let Some(quota) = Quota::with_period(Duration::from_nanos(interval)) else {
        return Err(Nonconforming::Never);
    };
    let clock = At(Cell::new(0));
    let limiter: RateLimiter<NotKeyed, Tat, &At, NoOpMiddleware<Nanos>> =
        RateLimiter::new(quota.allow_burst(burst), Tat(tat.as_nanos()), &clock);
    clock.0.set(at.as_nanos());
    match limiter.check_n(cost) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(not_until)) => {
            let earliest = Moment::from_nanos(not_until.earliest_possible().into());
            Err(Nonconforming::Until(earliest))
        }
        Err(_) => Err(Nonconforming::Never),
    }
}

#[derive(Debug)]
struct At(Cell<u64>);

impl Clock for &At {
    type Instant = Nanos;
    fn now(&self) -> Nanos {
        Nanos::from(self.0.get())
    }
}

struct Tat(u64);

impl StateStore for Tat {
    type Key = NotKeyed;
    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        decide(Some(Nanos::from(self.0))).map(|(decision, _)| decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    #[test]
    fn a_cost_above_the_burst_never_conforms_however_large() {
        let day = 86_400_000_000_000;
        let now = Moment::from_nanos(1 << 60);
        for cost in [11, 213_505, u32::MAX] {
            let decision = conforms(Moment::ZERO, day, n(10), n(cost), now);
            assert_eq!(decision, Err(Nonconforming::Never));
        }
    }

    #[test]
    fn the_instant_of_a_no_is_the_first_yes() {
        let now = Moment::from_nanos(1_000_000);
        let tat = Moment::from_nanos(1_500_000);
        let Err(Nonconforming::Until(ready)) = conforms(tat, 100, n(3), n(2), now) else {
            panic!("expected a wait");
        };
        assert_eq!(ready, Moment::from_nanos(1_500_000 - 100));
        assert_eq!(conforms(tat, 100, n(3), n(2), ready), Ok(()));
        let just_before = Moment::from_nanos(ready.as_nanos() - 1);
        assert!(conforms(tat, 100, n(3), n(2), just_before).is_err());
    }
}
