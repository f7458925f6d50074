//! The verdict: from what the hosts saw, and from what the run says of it.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use super::hosts::Arrival;
use super::process::Gate;
use super::settings::Settings;

/// What each host tolerates over time, in requests a nanosecond, with a bucket of one.
pub struct Budget {
    /// From when on, and how many.
    steps: Vec<(u64, f64)>,
}

impl Budget {
    /// From an instant on so many a minute.
    pub fn new(from: u64, per_minute: f64) -> Self {
        Self {
            steps: vec![(from, per_minute / 60e9)],
        }
    }

    /// A change that was asked for and, later, confirmed: a looser budget may hold from the one, a
    /// tighter one must from the other.
    pub fn change(&mut self, asked: u64, confirmed: u64, per_minute: f64) {
        let rate = per_minute / 60e9;
        let before = self.steps.last().expect("one").1;
        self.steps
            .push((if rate > before { asked } else { confirmed }, rate));
    }

    /// How many requests are allowed for between two instants.
    fn between(&self, from: u64, to: u64) -> f64 {
        let ends = self
            .steps
            .iter()
            .skip(1)
            .map(|step| step.0)
            .chain([u64::MAX]);
        let pieces = self.steps.iter().zip(ends);
        pieces
            .map(|((begins, rate), ends)| {
                let overlap = to.min(ends).saturating_sub(from.max(*begins));
                overlap as f64 * rate
            })
            .sum()
    }
}

/// What can be said in the end.
pub struct Judge {
    tasks: usize,
    above: usize,
    doubles: usize,
    missing: usize,
    arrivals: usize,
    tightest: f64,
}

impl Judge {
    /// Looks at what arrived.
    pub fn new(mut arrivals: Vec<Arrival>, budget: &Budget, settings: &Settings) -> Self {
        let mut seen = vec![0_u8; settings.tasks];
        for arrival in &arrivals {
            let times = &mut seen[arrival.task as usize];
            *times = times.saturating_add(1);
        }
        arrivals.sort_by_key(|arrival| (arrival.host, arrival.at));
        let gaps = arrivals
            .windows(2)
            .filter(|pair| pair[0].host == pair[1].host)
            .map(|pair| budget.between(pair[0].at, pair[1].at));
        let (mut above, mut tightest) = (0, f64::INFINITY);
        for gap in gaps {
            above += usize::from(gap < 1.0);
            tightest = tightest.min(gap);
        }
        Self {
            tasks: settings.tasks,
            above,
            doubles: seen
                .iter()
                .map(|times| usize::from(times.saturating_sub(1)))
                .sum(),
            missing: seen.iter().filter(|times| **times == 0).count(),
            arrivals: arrivals.len(),
            tightest,
        }
    }

    /// Says it, beside what the run itself says; true when both are in order.
    pub fn print(&self, results: &Path, gate: &mut Gate) -> bool {
        let lines = BufReader::new(File::open(results).expect("results")).lines();
        let mut succeeded = vec![false; self.tasks];
        let (mut count, mut repeated) = (0, 0);
        for line in lines {
            let line: serde_json::Value =
                serde_json::from_str(&line.expect("a line")).expect("whole lines only");
            let url = line["url"].as_str().expect("a URL");
            let task: usize = url
                .rsplit('/')
                .next()
                .expect("a path")
                .parse()
                .expect("a task");
            count += 1;
            repeated += usize::from(succeeded[task]);
            succeeded[task] |= line["outcome"] == "succeeded";
        }
        let lost = succeeded.iter().filter(|done| !**done).count();
        let recorded = gate.calls_on_record();
        println!(
            "arrivals: {}, above the envelope: {} (the closest pair had {:.4} of its distance)",
            self.arrivals, self.above, self.tightest
        );
        println!(
            "tasks: {}, results: {count}, lost: {lost}, never seen: {}, two results: {repeated}",
            self.tasks, self.missing
        );
        println!(
            "doubles: {} (all tasks are GETs); calls on record that may have arrived: {recorded}",
            self.doubles
        );
        self.above == 0
            && lost == 0
            && self.missing == 0
            && repeated == 0
            && recorded >= self.arrivals
    }
}
