//! Politeness with the rates known, judged by what the hosts saw: requests
//! above a host's tolerance, the time by the clock against the least possible,
//! what was lost and what was fetched twice. Scrapy does the same list beside
//! it, where it is installed.
//!
//! `cargo bench --bench politeness [-- CASE… [CLIENT…] [--seconds N]]`
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a judge keeps its own clock, and one that cannot be set up has nothing to report"
)]

mod client;
mod hosts;
mod judge;
mod workload;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::{Client, Ended};
use hosts::Hosts;
use judge::Verdict;
use workload::{Case, Order, Workload};

const CASES: [(&str, Case); 4] = [
    ("shuffled", Case::of(Order::Shuffled)),
    ("blocky", Case::of(Order::Blocky)),
    ("redirects", Case::of(Order::Shuffled).with_redirects()),
    ("busy", Case::of(Order::Shuffled).on_a_busy_machine()),
];

struct Wanted {
    cases: Vec<(&'static str, Case)>,
    clients: Vec<Client>,
    seconds: f64,
}

impl Wanted {
    fn from_arguments() -> Result<Self, String> {
        let mut wanted = Self {
            cases: Vec::new(),
            clients: Vec::new(),
            seconds: 30.0,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let case = CASES.into_iter().find(|(name, _)| *name == word);
            let client = Client::ALL.into_iter().find(|client| client.name() == word);
            match (case, client) {
                (Some(case), _) => wanted.cases.push(case),
                (_, Some(client)) => wanted.clients.push(client),
                _ if word == "--bench" => {}
                _ if word == "--seconds" => {
                    let number = words.next().and_then(|number| number.parse().ok());
                    wanted.seconds = number.ok_or("--seconds is followed by a number")?;
                }
                _ => return Err(format!("unknown: {word}\n{}", Self::known())),
            }
        }
        if wanted.cases.is_empty() {
            wanted.cases = CASES.to_vec();
        }
        if wanted.clients.is_empty() {
            wanted.clients = Client::ALL.to_vec();
        }
        Ok(wanted)
    }

    fn known() -> String {
        let cases = CASES.map(|(name, _)| name).join(", ");
        let clients = Client::ALL.map(Client::name).join(", ");
        format!("cases: {cases}; clients: {clients}; --seconds N: the least a case takes")
    }
}

fn main() -> ExitCode {
    let wanted = match Wanted::from_arguments() {
        Ok(wanted) => wanted,
        Err(words) => {
            eprintln!("{words}");
            return ExitCode::from(2);
        }
    };
    let scrapy = client::scrapy();
    if let Err(why) = &scrapy {
        println!("without Scrapy: {why}");
    }
    let mut fine = true;
    for (name, case) in wanted.cases {
        let workload = Workload::new(case, wanted.seconds);
        println!(
            "\n{name}: {} URLs on {} hosts, {:.1} s at least",
            workload.urls.len(),
            workload.hosts.len(),
            workload.optimum()
        );
        println!("{}", Verdict::HEADER);
        for client in &wanted.clients {
            if *client != Client::Tidegate && scrapy.is_err() {
                continue;
            }
            let load = Load::start(case);
            let (verdict, ended) = run(&workload, *client);
            drop(load);
            println!("{}{ended}", verdict.row(client.name(), &average_load()));
            if *client == Client::Tidegate {
                fine &= verdict.is_polite();
            }
        }
    }
    if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Fresh hosts, a fresh folder, one client.
fn run(workload: &Workload, client: Client) -> (Verdict, Ended) {
    let folder = tempfile::tempdir().expect("a folder");
    let hosts = Hosts::start(&workload.hosts);
    workload.write(folder.path(), hosts.port());
    // Three times over is no answer any more.
    let patience = Duration::from_secs_f64(workload.optimum() * 3.0 + 10.0);
    let ended = client.run(folder.path(), patience);
    (Verdict::of(workload, &hosts.arrivals()), ended)
}

/// Keeps every core busy while it lives.
struct Load(Arc<AtomicBool>);

impl Load {
    fn start(case: Case) -> Self {
        let over = Arc::new(AtomicBool::new(!case.is_busy()));
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..cores {
            let over = over.clone();
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(over)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The machine's load over the last minute, as it says itself.
fn average_load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}
