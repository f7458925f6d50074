//! Which answer a request gets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::answer::{Answer, Reply};
use super::judge::{Judgement, Meter, Tolerance};
use super::log::Request;

type Decide<A> = dyn Fn(&Request, usize) -> A + Send + Sync;

/// From a request, and the number of requests that came before it, to its answer.
///
/// A clone shares the counts and the tolerance of its original.
pub struct Script<A = Answer> {
    answer: Arc<Decide<A>>,
    judges: Vec<Arc<Judge>>,
}

impl<A> Clone for Script<A> {
    fn clone(&self) -> Self {
        Self {
            answer: Arc::clone(&self.answer),
            judges: self.judges.clone(),
        }
    }
}

impl<A: 'static> Script<A> {
    /// Decides each answer by a function.
    pub fn new<I: Into<A>>(answer: impl Fn(&Request, usize) -> I + Send + Sync + 'static) -> Self {
        Self {
            answer: Arc::new(move |request, earlier| answer(request, earlier).into()),
            judges: Vec::new(),
        }
    }

    /// Gives every request the same answer.
    pub fn always(answer: impl Into<A>) -> Self
    where
        A: Clone + Send + Sync,
    {
        let answer = answer.into();
        Self::new(move |_, _| answer.clone())
    }

    /// Gives the n-th request the n-th answer; the last repeats.
    pub fn list<I: Into<A>>(answers: Vec<I>) -> Self
    where
        A: Clone + Send + Sync,
    {
        let mut answers: Vec<A> = answers.into_iter().map(Into::into).collect();
        let last = answers.pop().expect("a list of at least one answer");
        Self::new(move |_, earlier| answers.get(earlier).unwrap_or(&last).clone())
    }

    /// Gives each path, compared without the query, a script of its own, which counts the requests
    /// of that path only. A path that is not listed gets 404.
    pub fn by_path<const N: usize>(routes: [(&str, Self); N]) -> Self
    where
        A: From<Reply>,
    {
        let judges = routes
            .iter()
            .flat_map(|(_, script)| script.judges())
            .collect();
        let routes = routes.map(|(path, script)| (path.to_owned(), script, AtomicUsize::new(0)));
        let answer = move |request: &Request, _| {
            let path = request.path.split('?').next();
            match routes.iter().find(|(route, ..)| path == Some(route)) {
                Some((_, script, earlier)) => {
                    script.answer(request, earlier.fetch_add(1, Ordering::Relaxed))
                }
                None => Answer::status(404).into(),
            }
        };
        Self {
            answer: Arc::new(answer),
            judges,
        }
    }

    /// Answers after `latency`: 200 within the tolerance, else 429 with `Retry-After` (RFC 9110
    /// §10.2.3) in whole seconds, rounded up. Whether it is within is decided at the arrival.
    pub fn tolerant(tolerance: Tolerance, latency: Duration) -> Self
    where
        A: From<Reply>,
    {
        let judge = Arc::new(Judge::new(tolerance));
        let judges = vec![Arc::clone(&judge)];
        let answer = move |request: &Request, _| {
            let reply = match judge.arrive(request.at) {
                Judgement::Within => Answer::status(200),
                Judgement::Over { wait } => {
                    Answer::status(429).header("retry-after", &whole_seconds(wait).to_string())
                }
            };
            reply.after(latency).into()
        };
        Self {
            answer: Arc::new(answer),
            judges,
        }
    }

    /// The answer to a request before which `earlier` others came.
    pub fn answer(&self, request: &Request, earlier: usize) -> A {
        (self.answer)(request, earlier)
    }

    /// Those who count what is beyond the script's tolerances.
    pub fn judges(&self) -> Vec<Arc<Judge>> {
        self.judges.clone()
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// Applies a tolerance to requests as they arrive.
pub struct Judge {
    origin: Instant,
    tally: Mutex<Tally>,
}

struct Tally {
    meter: Meter,
    over: usize,
}

impl Judge {
    fn new(tolerance: Tolerance) -> Self {
        Self {
            origin: Instant::now(),
            tally: Mutex::new(Tally {
                meter: Meter::new(tolerance),
                over: 0,
            }),
        }
    }

    fn arrive(&self, at: Instant) -> Judgement {
        let mut tally = self.tally();
        let judgement = tally
            .meter
            .arrive(at.saturating_duration_since(self.origin));
        if judgement != Judgement::Within {
            tally.over += 1;
        }
        judgement
    }

    /// How many arrivals were beyond the tolerance.
    pub fn over(&self) -> usize {
        self.tally().over
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
