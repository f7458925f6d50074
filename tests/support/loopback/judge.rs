//! What a target tolerates, and how many of the requests that arrived were too many.
//!
//! An arrival that is beyond the tolerance takes nothing from it. With that, the number of such
//! arrivals is the least number that would have to be taken away for the rest to conform, and it is
//! zero exactly when the promise was kept.

use std::collections::VecDeque;
use std::time::Duration;

use super::log::Arrival;

/// The finest step of the instants that are judged: what is early by no more than this is on time,
/// so that an interval such as a third of a second, rounded down, is not a violation.
const RESOLUTION_NS: f64 = 1.0;

/// How much a target takes.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// At most `burst + rate·t` requests in any interval of length t.
    Bucket {
        /// Requests a second.
        rate_per_s: f64,
        /// Requests at once.
        burst: u32,
    },
    /// At most `max` requests in any half-open interval of length `window`.
    Window {
        /// Requests.
        max: usize,
        /// The length of the interval.
        window: Duration,
    },
}

impl Tolerance {
    /// A token bucket, full at the start.
    pub fn bucket(rate_per_s: f64, burst: u32) -> Self {
        Self::Bucket { rate_per_s, burst }
    }

    /// A sliding window.
    pub fn window(max: usize, window: Duration) -> Self {
        Self::Window { max, window }
    }
}

/// Whether an arrival was tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It was.
    Within,
    /// It was not.
    Over {
        /// How long until one would be, if none arrives meanwhile.
        wait: Duration,
    },
}

/// A tolerance in use.
#[derive(Clone, Debug)]
pub struct Meter(State);

#[derive(Clone, Debug)]
enum State {
    /// The generic cell rate algorithm (ITU-T I.371): `due` is the theoretical arrival time.
    Bucket {
        interval_ns: f64,
        allowance_ns: f64,
        due_ns: f64,
    },
    Window {
        max: usize,
        window: Duration,
        tolerated: VecDeque<Duration>,
    },
}

impl Meter {
    /// An unused tolerance. Panics on one that would never tolerate anything.
    pub fn new(tolerance: Tolerance) -> Self {
        Self(match tolerance {
            Tolerance::Bucket { rate_per_s, burst } => {
                assert!(
                    rate_per_s > 0.0 && burst > 0,
                    "a bucket of {burst} at {rate_per_s}/s never tolerates anything"
                );
                let interval_ns = 1e9 / rate_per_s;
                State::Bucket {
                    interval_ns,
                    allowance_ns: interval_ns * f64::from(burst - 1),
                    due_ns: 0.0,
                }
            }
            Tolerance::Window { max, window } => {
                assert!(max > 0, "a window of none never tolerates anything");
                State::Window {
                    max,
                    window,
                    tolerated: VecDeque::new(),
                }
            }
        })
    }

    /// Judges an arrival. The instants are measured from any one origin and must not decrease.
    pub fn arrive(&mut self, at: Duration) -> Judgement {
        match &mut self.0 {
            State::Bucket {
                interval_ns,
                allowance_ns,
                due_ns,
            } => {
                let at_ns = at.as_secs_f64() * 1e9;
                let early_ns = *due_ns - *allowance_ns - at_ns;
                if early_ns > RESOLUTION_NS {
                    let wait = Duration::from_secs_f64(early_ns / 1e9);
                    return Judgement::Over { wait };
                }
                *due_ns = due_ns.max(at_ns) + *interval_ns;
                Judgement::Within
            }
            State::Window {
                max,
                window,
                tolerated,
            } => {
                while tolerated
                    .front()
                    .is_some_and(|&first| first + *window <= at)
                {
                    tolerated.pop_front();
                }
                match tolerated.front() {
                    Some(&first) if tolerated.len() >= *max => Judgement::Over {
                        wait: first + *window - at,
                    },
                    _ => {
                        tolerated.push_back(at);
                        Judgement::Within
                    }
                }
            }
        }
    }
}

/// How many of these instants, in any order, are beyond a token bucket that is full at the start.
pub fn bucket_violations(times: &[Duration], rate_per_s: f64, burst: u32) -> usize {
    let mut meter = Meter::new(Tolerance::bucket(rate_per_s, burst));
    let mut times = times.to_vec();
    times.sort_unstable();
    times
        .into_iter()
        .filter(|&at| meter.arrive(at) != Judgement::Within)
        .count()
}

/// The largest number of arrivals in any half-open interval of length `window`.
pub fn worst_window(arrivals: &[Arrival], window: Duration) -> usize {
    let mut times: Vec<_> = arrivals.iter().map(|arrival| arrival.since_start).collect();
    times.sort_unstable();
    let mut inside = VecDeque::new();
    let mut worst = 0;
    for at in times {
        inside.push_back(at);
        while inside.front().is_some_and(|&first| first + window <= at) {
            inside.pop_front();
        }
        worst = worst.max(inside.len());
    }
    worst
}
