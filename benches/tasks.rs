//! A long queue, stage by stage: how fast tasks are accepted, what one costs
//! in memory while it waits, how soon a restart makes its first call, and how
//! fast calls are dispatched. The work is nothing: it never dials, and every
//! budget is so wide that nothing is deferred.
//!
//! `cargo bench --bench tasks [-- TASKS [TARGETS]]`; one million over ten
//! thousand unless told otherwise. Each stage is a process of its own, as a
//! restart is, and so that its memory is its own.
#![allow(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot be set up has nothing to report, and times what it does"
)]

use std::num::NonZeroU32;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidegate::admission::{Admission, NoRoute, Permit, Policy, Route};
use tidegate::budget::{Conduct, Defaults, Limit, Provenance, Rulebook};
use tidegate::outcome::Outcome;
use tidegate::schedule::task::{Answer, Record, TaskCall, Upshot};
use tidegate::schedule::{Job, NewTask, Report, Schedule, Settings, Started, Stop, Work};
use tidegate::step::Step;
use tidegate::store::{Fault, IfMissing, Store};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tasks handed over together.
const PIECE: u64 = 5_000;
/// Calls under way at once while dispatching.
const CONCURRENCY: usize = 4096;

#[derive(Clone, Copy)]
struct Load {
    tasks: u64,
    targets: u64,
}

impl Load {
    fn task(self, number: u64) -> NewTask {
        let target = number % self.targets;
        let url = format!("https://host{target}.example{target}.org/repos/{number}?page=2");
        let step = Step::new("scout", "run-17", &number.to_string(), "");
        NewTask::get(&url, step)
    }
}

/// Does nothing, and counts how often.
struct Nothing {
    admission: Arc<Admission>,
    began: Instant,
    /// Tasks that were taken up.
    routed: AtomicU64,
    done: AtomicU64,
    /// Nanoseconds until the first call; 0 before it.
    first: AtomicU64,
}

impl Work for Nothing {
    fn route(&self, call: &TaskCall, step: &Step) -> Result<Route, NoRoute> {
        let route = self.admission.route(&call.url, &call.method, step);
        self.routed.fetch_add(1, Ordering::Relaxed);
        route
    }

    async fn run(self: Arc<Self>, _: Record, permit: Permit) -> Result<Report, Fault> {
        if self.done.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first
                .store(nanos(self.began.elapsed()), Ordering::Relaxed);
        }
        let answer = Answer {
            status: Some(204),
            ..Answer::default()
        };
        Ok(Report {
            upshot: Upshot::Final(Outcome::Succeeded, answer),
            closing: permit.abandon("there was nothing to do"),
        })
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A gate that would let a million calls through at once, to any target.
fn gate(folder: &Path) -> Arc<Admission> {
    let many = NonZeroU32::new(1_000_000).expect("not zero");
    let limit = Limit::rate("1000000/s".parse().expect("a frequency"), many).expect("a limit");
    let conduct = Conduct {
        concurrency: many,
        ..Conduct::default()
    };
    let defaults = Defaults {
        limits: vec![limit],
        conduct,
        provenance: Provenance::by("bench"),
    };
    let rules = Rulebook::new(defaults, Vec::new(), Vec::new()).expect("rules");
    let store =
        Arc::new(Store::open(&folder.join("store"), IfMissing::Create, 0).expect("a store"));
    let clock = store.clock();
    Admission::open(store, clock, rules, Policy::default()).expect("a gate")
}

fn job(gate: &Admission, folder: &Path) -> Arc<Job> {
    Arc::new(Job::of(gate.store().clone(), &folder.join("out")).expect("a job"))
}

fn start(gate: &Arc<Admission>, job: Arc<Job>, concurrency: usize) -> (Started, Arc<Nothing>) {
    let work = Arc::new(Nothing {
        admission: gate.clone(),
        began: Instant::now(),
        routed: AtomicU64::new(0),
        done: AtomicU64::new(0),
        first: AtomicU64::new(0),
    });
    let schedule = Schedule {
        admission: gate.clone(),
        job,
        work: work.clone(),
        settings: Settings {
            concurrency,
            ..Settings::default()
        },
    };
    (schedule.start().expect("a schedule"), work)
}

fn accept(load: Load, folder: &Path) {
    let gate = gate(folder);
    let job = job(&gate, folder);
    let (began, cpu) = (Instant::now(), cpu_micros());
    let mut last = None;
    for from in (0..load.tasks).step_by(usize::try_from(PIECE).expect("a small number")) {
        let tasks = (from..load.tasks.min(from + PIECE)).map(|number| load.task(number));
        let accepted = job.accept(tasks.collect(), gate.clock().now());
        last = Some(accepted.expect("a store that can be read").durable);
    }
    if let Some(durable) = last {
        durable
            .wait_blocking()
            .expect("a store that can be written");
    }
    let took = began.elapsed();
    println!(
        "accept           {:>9.0} tasks/s, durable; {:.1} us of CPU each",
        per_second(load.tasks, took),
        cpu_each(load.tasks, cpu)
    );
}

async fn memory(load: Load, folder: &Path) {
    let gate = gate(folder);
    let job = job(&gate, folder);
    // The cache of the database is full before, so that it is not counted.
    let pending = job.pending().filter(Result::is_ok).count() as u64;
    let (before, cpu) = (resident(), cpu_micros());
    let (started, work) = start(&gate, job, 0);
    while work.routed.load(Ordering::Relaxed) < pending {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let loaded = work.began.elapsed();
    // The last of them is in its lane when this is answered.
    started.handle.look(0).await.expect("an answer");
    let grown = resident().saturating_sub(before);
    println!(
        "memory           {:>9.0} bytes a queued task, lanes and buckets of {} targets included",
        grown as f64 / pending as f64,
        load.targets
    );
    println!(
        "load             {:>9.0} tasks/s; {:.1} us of CPU each",
        per_second(pending, loaded),
        cpu_each(pending, cpu)
    );
    started.handle.stop();
    started.stopped.await.expect("no panic");
}

async fn restart(_: Load, folder: &Path) {
    let began = Instant::now();
    let gate = gate(folder);
    let job = job(&gate, folder);
    let opened = began.elapsed();
    let (started, work) = start(&gate, job, 64);
    while work.first.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    let first = Duration::from_nanos(work.first.load(Ordering::Relaxed));
    // What is waiting must be told while it loads, too.
    let asked = Instant::now();
    let queued = started.handle.look(0).await.expect("an answer").queued;
    println!(
        "restart          {:>9.3} s to the first call: {:.3} s to open the store, {:.3} s from there; \
         {queued} queued then, known after {:.3} s",
        (opened + first).as_secs_f64(),
        opened.as_secs_f64(),
        first.as_secs_f64(),
        asked.elapsed().as_secs_f64()
    );
    started.handle.stop();
    started.stopped.await.expect("no panic");
}

async fn dispatch(load: Load, folder: &Path) {
    let gate = gate(folder);
    let job = job(&gate, folder);
    let (before, cpu) = (job.record().results, cpu_micros());
    let (mut started, work) = start(&gate, job.clone(), CONCURRENCY);
    started.handle.seal();
    while started.completed.recv().await.is_some() {}
    let took = work.began.elapsed();
    let stop = started.stopped.await.expect("no panic");
    assert_eq!(stop, Stop::Done, "all of it was done");
    assert_eq!(job.record().results, load.tasks, "each has its result");
    let done = load.tasks - before;
    println!(
        "dispatch         {:>9.0} tasks/s from the store to a durable result, {CONCURRENCY} at once; \
         {:.1} us of CPU each",
        per_second(done, took),
        cpu_each(done, cpu)
    );
    println!("peak             {:>9} kB resident", status("VmHWM"));
}

/// CPU time of this process, in microseconds a task: the neighbours of a shared
/// machine change it less than they change the time by the clock.
fn cpu_each(count: u64, before: u64) -> f64 {
    cpu_micros().saturating_sub(before) as f64 / count as f64
}

/// From proc(5): `stat`, fields 14 and 15, in hundredths of a second.
fn cpu_micros() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
    let spent = fields.split_whitespace().skip(14 - 3).take(2);
    spent
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum::<u64>()
        * 10_000
}

fn per_second(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

fn resident() -> u64 {
    status("VmRSS") * 1024
}

/// A number of `/proc/self/status`; 0 where there is none.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = values
        .next()
        .and_then(|value| value.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The restart comes first after the intake: the next opening finds a database
/// that has been put in order by the one before.
const STAGES: [&str; 4] = ["accept", "restart", "memory", "dispatch"];

fn stage(name: &str, load: Load, folder: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match name {
        "accept" => accept(load, folder),
        "memory" => runtime.block_on(memory(load, folder)),
        "restart" => runtime.block_on(restart(load, folder)),
        _ => runtime.block_on(dispatch(load, folder)),
    }
}

fn main() {
    // cargo adds `--bench`.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let number = |at: usize, default: u64| {
        let word = words.get(at);
        word.map_or(default, |word| {
            word.parse()
                .expect("a number of tasks, a number of targets")
        })
    };
    let load = Load {
        tasks: number(0, 1_000_000),
        targets: number(1, 10_000),
    };
    if let (Some(name), Some(folder)) = (words.get(2), words.get(3)) {
        return stage(name, load, folder.as_ref());
    }
    let folder = tempfile::tempdir().expect("a folder");
    println!(
        "{} tasks over {} targets, in {}",
        load.tasks,
        load.targets,
        folder.path().display()
    );
    for name in STAGES {
        let itself = std::env::current_exe().expect("its own path");
        let status = Command::new(itself)
            .args([
                load.tasks.to_string(),
                load.targets.to_string(),
                name.to_owned(),
            ])
            .arg(folder.path())
            .status();
        assert!(status.expect("it starts again").success(), "{name} failed");
    }
}
