//! What a target makes of an arrival. Shares no code with the budgets that it
//! judges: a mistake made on both sides would be seen on none.

use std::collections::VecDeque;
use std::time::Duration;

use crate::budget::Limit;

/// A tolerance in use. What is over it takes nothing from it, so the number of
/// those that are over is the least that would have had to stay away.
#[derive(Debug)]
pub(super) struct Judge {
    most: u32,
    period: Duration,
    state: State,
}

#[derive(Debug)]
enum State {
    /// A bucket of `most` tokens, by when it is full again. In nanoseconds
    /// times the tokens of a period, so that nothing is rounded.
    Bucket { tokens: u32, full: u128 },
    /// The tolerated arrivals of one period.
    Window(VecDeque<Duration>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Within,
    /// It would have been within, had it come so much later.
    Over(Duration),
}

impl Judge {
    pub(super) fn new(limit: &Limit) -> Self {
        let (most, state) = match limit {
            Limit::Rate { frequency, burst } => {
                let tokens = frequency.count().get();
                (burst.get(), State::Bucket { tokens, full: 0 })
            }
            Limit::Max { frequency, .. } | Limit::Quota { frequency, .. } => {
                (frequency.count().get(), State::Window(VecDeque::new()))
            }
        };
        Self {
            most,
            period: limit.frequency().period(),
            state,
        }
    }

    /// Judges an arrival, so long after the start; never before the last one.
    pub(super) fn arrive(&mut self, at: Duration) -> Judgement {
        match &mut self.state {
            State::Bucket { tokens, full } => {
                let period = self.period.as_nanos();
                let now = at.as_nanos() * u128::from(*tokens);
                let reach = now + period * u128::from(self.most.saturating_sub(1));
                if *full > reach {
                    let early = (*full - reach).div_ceil(u128::from(*tokens));
                    return Judgement::Over(Duration::from_nanos(
                        u64::try_from(early).unwrap_or(u64::MAX),
                    ));
                }
                *full = (*full).max(now) + period;
                Judgement::Within
            }
            State::Window(tolerated) => {
                while tolerated
                    .front()
                    .is_some_and(|first| *first + self.period <= at)
                {
                    tolerated.pop_front();
                }
                match tolerated.front() {
                    Some(first) if tolerated.len() as u64 >= u64::from(self.most) => {
                        Judgement::Over((*first + self.period).saturating_sub(at))
                    }
                    _ => {
                        tolerated.push_back(at);
                        Judgement::Within
                    }
                }
            }
        }
    }
}

/// The window that a tolerance is shown by: its own, or a second of a bucket.
pub(super) fn window(limit: &Limit) -> Duration {
    match limit {
        Limit::Rate { .. } => Duration::from_secs(1),
        Limit::Max { frequency, .. } | Limit::Quota { frequency, .. } => frequency.period(),
    }
}

/// The most arrivals that such a window may hold.
pub(super) fn allowed(limit: &Limit) -> u64 {
    let tokens = u64::from(limit.frequency().count().get());
    match limit {
        Limit::Rate { frequency, burst } => {
            let in_window = u128::from(tokens) * window(limit).as_nanos();
            let refilled = in_window / frequency.period().as_nanos().max(1);
            u64::from(burst.get()) + u64::try_from(refilled).unwrap_or(u64::MAX)
        }
        Limit::Max { .. } | Limit::Quota { .. } => tokens,
    }
}

/// The most arrivals in any half-open interval of this length.
pub(super) fn worst(arrivals: impl Iterator<Item = Duration>, window: Duration) -> u64 {
    let mut inside = VecDeque::new();
    let mut worst = 0;
    for at in arrivals {
        inside.push_back(at);
        while inside.front().is_some_and(|first| *first + window <= at) {
            inside.pop_front();
        }
        worst = worst.max(inside.len() as u64);
    }
    worst
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn over(limit: &Limit, arrivals: &[u64]) -> usize {
        let mut judge = Judge::new(limit);
        let judged = arrivals.iter().map(|at| judge.arrive(ms(*at)));
        judged
            .filter(|judgement| *judgement != Judgement::Within)
            .count()
    }

    #[test]
    fn a_bucket_tolerates_its_burst_and_then_its_rate() {
        let bucket = Limit::rate("10/s".parse().unwrap(), NonZeroU32::new(2).unwrap()).unwrap();
        assert_eq!(over(&bucket, &[0, 0, 100, 200, 300]), 0);
        assert_eq!(over(&bucket, &[0, 0, 99, 100]), 1);
        assert_eq!(over(&bucket, &[0, 0, 0, 0]), 2);
        assert_eq!(over(&bucket, &[0, 1000, 1000, 1000]), 1);
        let mut judge = Judge::new(&bucket);
        for _ in 0..2 {
            assert_eq!(judge.arrive(ms(50)), Judgement::Within);
        }
        assert_eq!(judge.arrive(ms(60)), Judgement::Over(ms(90)));
        assert_eq!(allowed(&bucket), 12);
    }

    #[test]
    fn a_window_tolerates_its_number_in_any_of_its_length() {
        let burst = NonZeroU32::MIN;
        let window = Limit::max("3/2s".parse().unwrap(), burst).unwrap();
        assert_eq!(over(&window, &[0, 1999, 1999, 2000, 3999]), 0);
        assert_eq!(over(&window, &[0, 1000, 1999, 1999]), 1);
        assert_eq!(over(&window, &[0, 1999, 1999, 2000, 3998]), 1);
        let mut judge = Judge::new(&window);
        for at in [0, 1, 2] {
            assert_eq!(judge.arrive(ms(at)), Judgement::Within);
        }
        assert_eq!(judge.arrive(ms(500)), Judgement::Over(ms(1500)));
        assert_eq!(allowed(&window), 3);
    }

    #[test]
    fn the_worst_window_is_found_wherever_it_begins() {
        let arrivals = [0, 900, 950, 1000, 1899, 1900].map(ms);
        assert_eq!(worst(arrivals.into_iter(), ms(1000)), 4);
        assert_eq!(worst(std::iter::empty(), ms(1000)), 0);
    }
}
