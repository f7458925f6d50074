//! A crawl that is killed twice, and goes on where it was.
//!
//! This program starts two servers and itself once more, as a crawler in a
//! process of its own, which it kills in the middle of its work; then again;
//! the third one may end. What counts is what the servers saw: every page is
//! asked for, and twice only those whose call was under way at a kill.
//!
//! `cargo run --example resumed_crawl [FOLDER]`; the results stay in FOLDER/out
//! where one is named.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod support;

use std::error::Error;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use tidegate::admission::{Admission, Policy};
use tidegate::budget::{Limit, Rulebook, TargetRule};
use tidegate::egress::guard::Guard;
use tidegate::egress::{Bodies, Egress, Wire};
use tidegate::schedule::{Fetch, Job, NewTask, Results, Schedule, Settings, Started};
use tidegate::step::Step;
use tidegate::store::{IfMissing, Store};

type Outcome = Result<(), Box<dyn Error>>;

/// Pages of each server.
const PAGES: usize = 60;
/// Calls under way at once.
const CONCURRENCY: usize = 4;
/// So many results there are when a crawler is killed.
const KILLED_AT: [usize; 2] = [30, 75];

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [word, folder, origins @ ..] if word == "crawl" => {
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(crawl(Path::new(folder), origins))
        }
        [folder] => watch(Path::new(folder)),
        _ => watch(tempfile::tempdir()?.path()),
    }
}

/// The crawler: a store, a gate over it, and the list. Nothing in it knows
/// whether it is the first.
async fn crawl(folder: &Path, origins: &[String]) -> Outcome {
    let store = Arc::new(Store::open(&folder.join("store"), IfMissing::Create, 0)?);
    let mut rules = Vec::new();
    for origin in origins {
        let limit = Limit::rate("50/s".parse()?, NonZeroU32::MIN)?;
        rules.push(TargetRule::new(origin.parse()?, vec![limit]));
    }
    let rulebook = Rulebook::of(rules)?;
    let admission = Admission::open(store.clone(), store.clock(), rulebook, Policy::default())?;
    let wire = Wire {
        guard: Arc::new(Guard::new(vec!["127.0.0.1/32".parse()?])),
        ..Wire::default()
    };
    let egress = Arc::new(Egress::new(admission.clone(), &wire)?);

    let out = folder.join("out");
    std::fs::create_dir_all(&out)?;
    let job = Arc::new(Job::of(store, &out)?);
    let stored = |place| job.result(place).map_err(io::Error::other);
    let mut results = Results::open(&out.join("results.jsonl"), &stored, job.record().results)?;
    let schedule = Schedule {
        admission: admission.clone(),
        job: job.clone(),
        work: Arc::new(Fetch::new(egress, Bodies::in_folder(&out)?)),
        settings: Settings {
            concurrency: CONCURRENCY,
            ..Settings::default()
        },
    };
    let Started {
        handle,
        mut completed,
        stopped,
    } = schedule.start()?;
    // All of the list, every time: what was accepted before is known by its id.
    let pages = (0..PAGES).flat_map(|page| {
        origins.iter().map(move |origin| {
            let step = Step::new("crawler", "one-crawl", "", "every page once");
            NewTask::get(&format!("{origin}/page/{page}"), step)
        })
    });
    handle.submit(pages.collect()).await?;
    handle.seal();
    while let Some(done) = completed.recv().await {
        results.append(done.place, &done.line)?;
    }
    stopped.await?;
    admission.close().wait().await?;
    Ok(())
}

/// The other side: two servers, and whoever kills the crawler.
fn watch(folder: &Path) -> Outcome {
    let servers = [support::Server::start()?, support::Server::start()?];
    let seen = || {
        let counts = servers.iter().map(|server| server.paths().len());
        counts.collect::<Vec<_>>()
    };
    let mut kills = 0;
    for killed_at in KILLED_AT {
        let mut crawler = crawler(folder, &servers)?;
        while lines(folder) < killed_at && crawler.try_wait()?.is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        crawler.kill()?;
        kills += usize::from(!crawler.wait()?.success());
        println!(
            "killed: the servers saw {:?} requests, there are {} results",
            seen(),
            lines(folder)
        );
    }
    let ended = crawler(folder, &servers)?.wait()?;
    println!(
        "ended:  the servers saw {:?} requests, there are {} results",
        seen(),
        lines(folder)
    );

    let mut twice = 0;
    for server in &servers {
        let mut paths = server.paths();
        let asked = paths.len();
        paths.sort();
        paths.dedup();
        twice += asked - paths.len();
        if paths.len() != PAGES {
            return Err(format!("{} of {PAGES} pages were asked for", paths.len()).into());
        }
    }
    println!("every page was asked for; {twice} twice, over {kills} kills");
    if !ended.success() || twice > kills * CONCURRENCY || lines(folder) != 2 * PAGES {
        return Err("a page was lost, or asked for again without need".into());
    }
    Ok(())
}

fn crawler(folder: &Path, servers: &[support::Server]) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg("crawl")
        .arg(folder)
        .args(servers.iter().map(support::Server::origin))
        .spawn()
}

fn lines(folder: &Path) -> usize {
    let text = std::fs::read_to_string(folder.join("out/results.jsonl"));
    text.map_or(0, |text| text.lines().count())
}
