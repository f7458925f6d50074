//! A target with a tolerance, the rule that states it, and the verdict at the end.

use std::time::Duration;

use crate::support::loopback::{
    Answer, Arrival, Request, Script, Target, bucket_violations, worst_window,
};

/// What a target tolerates, as its rule says it.
#[derive(Clone, Copy)]
pub enum Tolerated {
    /// So many a second, and so many at once.
    Rate { per_second: u32, burst: u32 },
    /// So many in any so many seconds, some of them at once.
    Max { most: u32, seconds: u64, burst: u32 },
    /// So many in so many seconds, all of them at once if need be.
    Quota { most: u32, seconds: u64 },
}

/// How long a busy machine may keep a target from looking at what has arrived.
pub const MARGIN: &str = "300ms";

/// A loopback target and what it tolerates.
pub struct Neighbour {
    pub target: Target,
    tolerated: Tolerated,
}

impl Neighbour {
    /// A target that answers everything with 200 after `latency`.
    pub fn new(tolerated: Tolerated, latency: Duration) -> Self {
        Self::playing(
            tolerated,
            Script::new(move |request: &Request, _| {
                Answer::status(200)
                    .body(request.path.clone())
                    .after(latency)
            }),
        )
    }

    /// A target that plays a script.
    pub fn playing(tolerated: Tolerated, script: Script) -> Self {
        Self {
            target: Target::start(script),
            tolerated,
        }
    }

    /// Its part of the configuration.
    pub fn rule(&self) -> String {
        let limit = match self.tolerated {
            Tolerated::Rate { per_second, burst } => {
                format!("rate = \"{per_second}/s\"\nburst = {burst}")
            }
            Tolerated::Max {
                most,
                seconds,
                burst,
            } => {
                format!("max = \"{most}/{seconds}s\"\nburst = {burst}")
            }
            Tolerated::Quota { most, seconds } => {
                format!("quota = \"{most}/{seconds}s\"\nreset = \"rolling\"")
            }
        };
        let origin = self.target.origin();
        format!("\n[[target]]\nmatch = \"{origin}\"\n{limit}\narrival_margin = \"{MARGIN}\"\n")
    }

    /// Everything that arrived, after the verdict: never more than tolerated, in the whole of it.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let arrivals = self.target.arrivals();
        let times: Vec<_> = arrivals.iter().map(|arrival| arrival.since_start).collect();
        match self.tolerated {
            Tolerated::Rate { per_second, burst } => {
                let over = bucket_violations(&times, per_second.into(), burst);
                assert_eq!(over, 0, "beyond {per_second}/s, burst {burst}: {times:?}");
            }
            Tolerated::Max { most, seconds, .. } | Tolerated::Quota { most, seconds } => {
                let worst = worst_window(&arrivals, Duration::from_secs(seconds));
                let most = usize::try_from(most).unwrap();
                assert!(worst <= most, "{worst} of {most} in {seconds} s: {times:?}");
            }
        }
        arrivals
    }
}
