//! How fast tasks get done: over the last minutes, and at best.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Moment;

/// How far back is looked.
const WINDOW: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
pub(super) struct Pace {
    samples: VecDeque<(Moment, u64)>,
}

impl Pace {
    /// So many were done by `now`; to be told every few seconds.
    pub(super) fn note(&mut self, now: Moment, done: u64) {
        let old = |(at, _): &(Moment, u64)| now.since(*at) > WINDOW;
        // One that is too old is kept: the window begins at it.
        while self.samples.get(1).is_some_and(old) {
            self.samples.pop_front();
        }
        self.samples.push_back((now, done));
    }

    /// Tasks a second since the window began.
    pub(super) fn mean(&self, now: Moment, done: u64) -> Option<f64> {
        let first = self.samples.front()?;
        rate(*first, (now, done))
    }

    /// Tasks a second between two of the samples, where that was most.
    pub(super) fn best(&self) -> Option<f64> {
        let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        pairs
            .filter_map(|(before, after)| rate(*before, *after))
            .max_by(f64::total_cmp)
    }
}

fn rate((from, before): (Moment, u64), (to, after): (Moment, u64)) -> Option<f64> {
    let seconds = to.since(from).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let done = after.saturating_sub(before) as f64;
    (seconds > 0.0).then(|| done / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ZERO.after(Duration::from_secs(seconds))
    }

    #[test]
    fn the_mean_is_of_the_window_and_the_best_of_its_samples() {
        let mut pace = Pace::default();
        assert_eq!((pace.mean(at(0), 0), pace.best()), (None, None));
        for (seconds, done) in [(0, 0), (10, 1000), (20, 1100), (400, 1100), (410, 1200)] {
            pace.note(at(seconds), done);
        }
        assert_eq!(pace.best(), Some(10.0));
        assert_eq!(pace.mean(at(420), 1300), Some(0.5));
    }
}
