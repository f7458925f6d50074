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

use crate::clock::{Moment, nanos};

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
    // The difference alone decides. governor adds without a check; kept below
    // 2^62, as `interval * burst` is, no sum of them wraps.
    let ahead = nanos(tat.since(at)).min(FAR);
    let behind = nanos(at.since(tat)).min(FAR);
    let clock = At(Cell::new(0));
    let limiter: RateLimiter<NotKeyed, Tat, &At, NoOpMiddleware<Nanos>> =
        RateLimiter::new(quota.allow_burst(burst), Tat(ahead), &clock);
    clock.0.set(behind);
    match limiter.check_n(cost) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(not_until)) => {
            let wait = Duration::from_nanos(not_until.earliest_possible().into());
            Err(Nonconforming::Until(at.after(wait)))
        }
        Err(_) => Err(Nonconforming::Never),
    }
}

/// 146 years in nanoseconds.
const FAR: u64 = 1 << 62;

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
    use proptest::prelude::*;

    use super::*;

    fn n(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    /// The same in numbers that cannot wrap.
    fn exact(tat: u64, interval: u64, burst: u32, cost: u32, at: u64) -> Result<(), Nonconforming> {
        if cost > burst {
            return Err(Nonconforming::Never);
        }
        let tat = tat.min(at.saturating_add(FAR));
        let missing = u128::from(burst - cost) * u128::from(interval);
        let earliest = u128::from(tat).saturating_sub(missing);
        if u128::from(at) >= earliest {
            return Ok(());
        }
        let earliest = earliest.try_into().unwrap();
        Err(Nonconforming::Until(Moment::from_nanos(earliest)))
    }

    const SECOND: u64 = 1_000_000_000;
    const DAY: u64 = 86_400 * SECOND;
    const NOW: u64 = 1_800_000_000 * SECOND;

    // `interval * burst` stays below 2^62, as `Limit` sees to. The costs of the first rows are
    // those at which governor's own check, in a release build, wraps and says yes.
    #[rustfmt::skip]
    const CORNERS: &[(u64, u32, u32, u64, u64)] = &[
        // interval, burst, cost, tat, at
        (DAY, 10, 213_505, 0, NOW),
        (DAY, 10, 213_514, 0, NOW),
        (DAY, 10, 427_009, NOW, NOW),
        (DAY, 10, 11, 0, NOW),
        (DAY, 10, 10, 0, NOW),
        (DAY, 10, u32::MAX, 0, NOW),
        (SECOND, 1, 2, 0, NOW),
        (SECOND, 1, u32::MAX, NOW, NOW),
        (SECOND, u32::MAX, u32::MAX, 0, NOW),
        (SECOND, u32::MAX, u32::MAX, NOW + 1, NOW),
        (1, u32::MAX, u32::MAX, NOW, NOW),
        (1, u32::MAX, 1, u64::MAX, NOW),
        (1, u32::MAX, u32::MAX, u64::MAX, NOW),
        (DAY, 50_000, 50_000, u64::MAX, NOW),
        (DAY, 50_000, 2, u64::MAX - DAY, NOW),
        (DAY, 50_000, 50_000, 0, u64::MAX),
        (DAY, 50_000, 50_000, u64::MAX, u64::MAX),
        (366 * DAY, 145, 145, NOW, NOW),
        ((1 << 62) - 1, 1, 1, u64::MAX, NOW),
        ((1 << 62) - 1, 1, 2, 0, NOW),
        (1, 1, 1, 0, 0),
    ];

    #[test]
    fn no_corner_wraps() {
        for (interval, burst, cost, tat, at) in CORNERS.iter().copied() {
            let decision = conforms(
                Moment::from_nanos(tat),
                interval,
                n(burst),
                n(cost),
                Moment::from_nanos(at),
            );
            let row = format!("{cost} of {burst} each {interval} ns, {tat} at {at}");
            assert_eq!(decision, exact(tat, interval, burst, cost, at), "{row}");
        }
    }

    proptest! {
        #[test]
        fn it_decides_as_exact_numbers_do(
            (interval, burst) in (0_u32..62).prop_flat_map(|bits| {
                (1_u64 << bits..2 << bits).prop_flat_map(|interval| {
                    let most = (FAR - 1) / interval;
                    (Just(interval), 1..=u32::try_from(most).unwrap_or(u32::MAX).max(1))
                })
            }),
            cost in 1_u32..,
            costs_less in any::<bool>(),
            tat in any::<u64>(),
            at in any::<u64>(),
        ) {
            let cost = if costs_less { 1 + (cost - 1) % burst } else { cost };
            let moment = Moment::from_nanos;
            let decision = conforms(moment(tat), interval, n(burst), n(cost), moment(at));
            prop_assert_eq!(decision, exact(tat, interval, burst, cost, at));
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
