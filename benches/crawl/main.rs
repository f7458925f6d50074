//! A long crawl in little time: `tidegate run` over thousands of loopback hosts, killed, reloaded
//! and copied on its way, and judged by what the hosts saw.
//!
//! `cargo bench --bench crawl -- --tasks 5000000 --hosts 40000 --rate 6.5/min --kills 5`
//!
//! Every host is an address of its own in 127.0.0.0/8 with a bucket of one. It ends with exit code 1
//! when a host was called above its budget, or a task lost.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a judge keeps its own clock, and one that cannot be set up has nothing to report"
)]

mod hosts;
mod judge;
mod process;
mod settings;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hosts::Hosts;
use judge::{Budget, Judge};
use process::Gate;
use settings::Settings;

fn main() -> ExitCode {
    let Some(settings) = Settings::from_arguments() else {
        return ExitCode::SUCCESS;
    };
    let folder = tempfile::Builder::new()
        .prefix("tidegate-crawl-")
        .tempdir_in(&settings.folder)
        .expect("a folder");
    let hosts = Hosts::start();
    let list = folder.path().join("tasks.txt");
    write_list(&list, &settings, &hosts);
    let mut budget = Budget::new(hosts.now(), settings.rates[0]);
    let config = folder.path().join("tidegate.toml");
    write_config(&config, settings.rates[0], &settings);

    println!(
        "{} tasks over {} hosts, {} a minute each, kills: {}",
        settings.tasks, settings.hosts, settings.rates[0], settings.kills
    );
    let mut gate = Gate::start(folder.path(), &settings);
    let mut report = Report::default();
    for act in acts(&settings) {
        if !gate.lives_until(hosts.began() + act.at, || report.note(&hosts)) {
            break;
        }
        match act.what {
            What::Kill => {
                gate.kill();
                gate.restart();
            }
            What::Reload(rate) => {
                let asked = hosts.now();
                write_config(&config, rate, &settings);
                let done = gate.reload();
                if done {
                    budget.change(asked, hosts.now(), rate);
                }
            }
            What::Copy(number) => gate.copy(&folder.path().join(format!("copy-{number}"))),
        }
    }
    let ended = gate.ends(|| report.note(&hosts));
    report.note(&hosts);
    let lasted = hosts.now();
    println!("ended: {ended:?} after {:.0} s", lasted as f64 / 1e9);
    gate.memory().print();

    let judge = Judge::new(hosts.arrivals(), &budget, &settings);
    let fine = judge.print(&folder.path().join("out/results.jsonl"), &mut gate);
    if settings.keep {
        println!("kept: {}", folder.keep().display());
    }
    if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One task a line, hosts in turn, so that every host has work until the end.
fn write_list(path: &Path, settings: &Settings, hosts: &Hosts) {
    let mut list = BufWriter::new(File::create(path).expect("a list"));
    for task in 0..settings.tasks {
        let host = hosts.address(task % settings.hosts);
        writeln!(list, "http://{host}/t/{task}").expect("a line");
    }
    list.flush().expect("a list");
}

fn write_config(path: &Path, per_minute: f64, settings: &Settings) {
    // Rates are whole numbers for a period: a day holds enough of them.
    let per_day = (per_minute * 1440.0).round();
    let config = format!(
        "min_free = \"1GB\"\nallow_private = [\"127.0.0.0/8\"]\n\n\
         [defaults]\nrate = \"{per_day}/day\"\narrival_margin = \"{}ms\"\n",
        settings.margin.as_millis()
    );
    // Never half of it.
    let new = path.with_extension("new");
    std::fs::write(&new, config).expect("a configuration");
    std::fs::rename(new, path).expect("a configuration");
}

struct Act {
    at: Duration,
    what: What,
}

enum What {
    Kill,
    Reload(f64),
    Copy(usize),
}

/// What happens when, spread over the expected time.
fn acts(settings: &Settings) -> Vec<Act> {
    let whole = settings.expected();
    let mut acts = Vec::new();
    let mut spread = |count: usize, shift: f64, what: &dyn Fn(usize) -> What| {
        for number in 0..count {
            let part = (number as f64 + shift) / count as f64;
            acts.push(Act {
                at: whole.mul_f64(part * 0.9),
                what: what(number),
            });
        }
    };
    spread(settings.kills, 0.5, &|_| What::Kill);
    spread(settings.copies, 0.65, &What::Copy);
    let later = settings.rates.len() - 1;
    spread(later, 0.35, &|number| {
        What::Reload(settings.rates[number + 1])
    });
    acts.sort_by_key(|act| act.at);
    acts
}

/// A line every half minute: what the hosts have seen.
#[derive(Default)]
struct Report {
    last: Option<(u64, usize)>,
}

impl Report {
    fn note(&mut self, hosts: &Hosts) {
        let (now, count) = (hosts.now(), hosts.count());
        let (since, before) = *self.last.get_or_insert((now, count));
        if now - since >= 30_000_000_000 {
            let rate = (count - before) as f64 / ((now - since) as f64 / 1e9);
            println!(
                "{:>6.0} s {count:>9} arrivals, {rate:.0}/s",
                now as f64 / 1e9
            );
            self.last = Some((now, count));
        }
    }
}
