//! The verdict, from what the hosts saw and nothing else.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::hosts::{Arrival, Said};
use super::workload::Workload;

pub struct Verdict {
    /// Seconds from the first request to the last page, over the least.
    ratio: f64,
    /// Requests that found their host's bucket empty.
    above: usize,
    rude_hosts: usize,
    /// By how much the earliest of them was too early.
    earliest: Duration,
    /// URLs whose page was never served.
    lost: usize,
    /// Pages served more often than once.
    doubles: usize,
    requests: usize,
}

impl Verdict {
    pub const HEADER: &str =
        "client                 ratio   above  at hosts  early by   lost  double  requests   load";

    pub fn of(workload: &Workload, arrivals: &[Arrival]) -> Self {
        let mut pages: HashMap<usize, usize> = HashMap::new();
        let mut last = None;
        for arrival in arrivals {
            if let Said::Page(number) = arrival.said {
                *pages.entry(number).or_default() += 1;
                last = Some(arrival.at);
            }
        }
        let took = match (arrivals.first(), last) {
            (Some(first), Some(last)) => last.saturating_sub(first.at).as_secs_f64(),
            _ => 0.0,
        };
        let rude: Vec<_> = arrivals
            .iter()
            .filter_map(|one| match one.said {
                Said::TooMany(early) => Some((one.host, early)),
                _ => None,
            })
            .collect();
        Self {
            ratio: took / workload.optimum(),
            above: rude.len(),
            rude_hosts: rude
                .iter()
                .map(|(host, _)| host)
                .collect::<HashSet<_>>()
                .len(),
            earliest: rude
                .iter()
                .map(|(_, early)| *early)
                .max()
                .unwrap_or_default(),
            lost: workload.urls.len().saturating_sub(pages.len()),
            doubles: pages.values().map(|times| times - 1).sum(),
            requests: arrivals.len(),
        }
    }

    pub fn row(&self, client: &str, load: &str) -> String {
        format!(
            "{client:<22} {:>5.3} {:>7} {:>9} {:>6} ms {:>6} {:>7} {:>9} {load:>6}",
            self.ratio,
            self.above,
            self.rude_hosts,
            self.earliest.as_millis(),
            self.lost,
            self.doubles,
            self.requests
        )
    }

    /// Nothing too many, nothing lost, nothing twice. How long it took is for
    /// the reader to judge: the machine has a say in it.
    pub fn is_polite(&self) -> bool {
        (self.above, self.lost, self.doubles) == (0, 0, 0)
    }
}
