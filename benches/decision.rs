//! A decision beside governor's own keyed check: key against key, and URL
//! against URL. What is compared takes turns in one run, in short rounds, and
//! is timed by the CPU time of its thread; compare ratios, not times.
//!
//! `cargo bench --bench decision`; about a minute.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::mem_forget,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot be set up has nothing to report"
)]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::{Quota, RateLimiter};
use rustix::time::{ClockId, clock_gettime};
use tidegate::admission::{Admission, Ask, Lane, Policy, Verdict};
use tidegate::budget::{Conduct, Defaults, Limit, Line, Provenance, Rulebook, TargetRule};
use tidegate::step::Step;
use tidegate::store::{IfMissing, Store};
use tidegate::target::TargetKey;
use url::Url;

const TARGETS: [usize; 3] = [100, 10_000, 100_000];
const ROUNDS: usize = 41;
/// Decisions of one contender in one round.
const TURN: usize = 5_000;

fn main() {
    println!("ns of CPU a decision: least and median of {ROUNDS} rounds of {TURN}");
    for count in TARGETS {
        let urls = urls(count);
        println!("\n{count} targets, each with a rule of its own: one bucket");
        deferrals(&urls, ruled(&urls));
        println!("\n{count} targets without a rule: the bucket of the domain and the host's");
        deferrals(&urls, Rulebook::default());
    }
    grants(&urls(TARGETS[1]));
}

fn urls(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| format!("https://host{n}.example{n}.org/repos/o{n}/issues?page=2"))
        .collect()
}

struct Gate {
    _folder: tempfile::TempDir,
    admission: Arc<Admission>,
    lanes: Vec<Arc<Lane>>,
    step: Step,
}

impl Gate {
    fn open(urls: &[String], rules: Rulebook) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), IfMissing::Create, 0).expect("a store");
        let store = Arc::new(store);
        let clock = store.clock();
        let admission = Admission::open(store, clock, rules, Policy::default()).expect("a gate");
        let step = Step::new("scout", "run-17", "4", "map the field");
        let lane = |url: &String| admission.route(url, "GET", &step).expect("a route").lane;
        let lanes = urls.iter().map(lane).collect();
        Self {
            _folder: folder,
            admission,
            lanes,
            step,
        }
    }

    /// A gate whose every target has spent its one token.
    fn exhausted(urls: &[String], rules: Rulebook) -> Self {
        let gate = Self::open(urls, rules);
        for lane in &gate.lanes {
            let Verdict::Granted(permit) = gate.ask(lane, "/") else {
                panic!("the first call of a target is granted");
            };
            // Never settled: its token stays a debt, and the bucket empty.
            std::mem::forget(permit);
        }
        gate.admission.store().settle().expect("a record");
        gate
    }

    fn ask(&self, lane: &Arc<Lane>, path: &str) -> Verdict {
        let ask = Ask::new("GET", path, &self.step);
        let verdict = self.admission.admit(lane, &ask, Line::Watch);
        verdict.expect("a record that can be written")
    }

    fn by_key(&self, key: &TargetKey) -> Verdict {
        let lane = self.admission.lane(key).expect("a lane");
        self.ask(&lane, "/")
    }

    fn by_url(&self, url: &str) -> Verdict {
        let route = self.admission.route(url, "GET", &self.step);
        let route = route.expect("a route");
        self.ask(&route.lane, route.located.url.path())
    }
}

/// The decision and governor's, against exhausted targets.
fn deferrals(urls: &[String], rules: Rulebook) {
    let gate = Gate::exhausted(urls, rules);
    let keys: Vec<_> = gate.lanes.iter().map(|lane| lane.key().clone()).collect();
    let quota = Quota::per_hour(NonZeroU32::MIN);
    let (keyed, hosts) = (RateLimiter::dashmap(quota), RateLimiter::dashmap(quota));
    let host = |url: &str| {
        let url = Url::parse(url).expect("a URL");
        url.host_str().expect("a host").to_owned()
    };
    for (key, url) in keys.iter().zip(urls) {
        keyed.check_key(key).expect("the first is let through");
        let first = hosts.check_key(&host(url));
        first.expect("the first is let through");
    }
    let looked = |at: usize| {
        let lane = gate.admission.lane(&keys[at]).expect("a lane");
        black_box(gate.admission.wait(&lane, NonZeroU32::MIN));
    };
    let asked = |at: usize| {
        let _ = black_box(gate.by_key(&keys[at]));
    };
    let checked = |at: usize| {
        black_box(keyed.check_key(&keys[at]).is_err());
    };
    let from_url = |at: usize| {
        let _ = black_box(gate.by_url(&urls[at]));
    };
    let checked_from_url = |at: usize| {
        black_box(hosts.check_key(&host(&urls[at])).is_err());
    };
    let count = urls.len();
    let times = in_turns(
        count,
        [
            &|next| turn(next, looked),
            &|next| turn(next, asked),
            &|next| turn(next, checked),
            &|next| turn(next, from_url),
            &|next| turn(next, checked_from_url),
        ],
    );
    let [looks, asks, checks, urls, plain] = times;
    row(
        "key -> when there is room",
        &looks,
        &checks,
        allocations(|| looked(0)),
    );
    row(
        "key -> deferral, on record",
        &asks,
        &checks,
        allocations(|| asked(0)),
    );
    row(
        "governor: key",
        &checks,
        &checks,
        allocations(|| checked(0)),
    );
    row(
        "URL -> deferral, on record",
        &urls,
        &plain,
        allocations(|| from_url(0)),
    );
    row(
        "url::Url + governor: host",
        &plain,
        &plain,
        allocations(|| checked_from_url(0)),
    );
    println!("{:>8.0} deferrals/s a core from URLs", 1e9 / urls.median());
}

/// Grants, each on record as an intent; their tokens are given back.
fn grants(urls: &[String]) {
    let gate = Gate::open(urls, wide());
    println!(
        "\n{} targets with room, the intent handed to the record",
        urls.len()
    );
    let granted = |at: usize| {
        let Verdict::Granted(permit) = gate.by_url(&urls[at]) else {
            panic!("there is room");
        };
        // Not settled: only the way there is timed.
        std::mem::forget(permit);
    };
    let times = in_turns(
        urls.len(),
        [&|next| {
            let spent = turn(next, granted);
            gate.admission.store().settle().expect("a record");
            spent
        }],
    );
    let [urls] = times;
    row("URL -> permit", &urls, &urls, allocations(|| granted(0)));
}

/// One token an hour for each.
fn ruled(urls: &[String]) -> Rulebook {
    let rule = |url: &String| {
        let url = Url::parse(url).expect("a URL");
        let origin = url.origin().ascii_serialization();
        let frequency = "1/h".parse().expect("a frequency");
        let limit = Limit::rate(frequency, NonZeroU32::MIN).expect("a limit");
        TargetRule::new(origin.parse().expect("a pattern"), vec![limit])
    };
    Rulebook::of(urls.iter().map(rule).collect()).expect("rules")
}

/// Rules under which nothing is deferred.
fn wide() -> Rulebook {
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
    Rulebook::new(defaults, Vec::new(), Vec::new()).expect("rules")
}

/// Nanoseconds a decision, one of each round, sorted.
struct Times(Vec<f64>);

impl Times {
    fn least(&self) -> f64 {
        self.0[0]
    }

    fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }
}

type Next<'a> = &'a mut dyn FnMut() -> usize;

/// Lets the contenders take turns.
fn in_turns<const N: usize>(
    count: usize,
    contenders: [&dyn Fn(Next<'_>) -> Duration; N],
) -> [Times; N] {
    let mut next = strides(count);
    let mut times = [const { Vec::new() }; N];
    // The first round is for the caches.
    for round in 0..=ROUNDS {
        for (times, contender) in times.iter_mut().zip(&contenders) {
            let spent = contender(&mut next);
            if round > 0 {
                times.push(spent.as_nanos() as f64 / TURN as f64);
            }
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        Times(times)
    })
}

fn turn(next: Next<'_>, decide: impl Fn(usize)) -> Duration {
    let places: Vec<usize> = (0..TURN).map(|_| next()).collect();
    let began = cpu_time();
    places.into_iter().for_each(decide);
    cpu_time().saturating_sub(began)
}

fn cpu_time() -> Duration {
    let at = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(at).expect("a time that does not go back")
}

/// Numbers that visit all of `0..count` in no order a cache would like.
fn strides(count: usize) -> impl FnMut() -> usize {
    let mut at = 0;
    move || {
        at = (at + 61_803) % count;
        at
    }
}

fn allocations(mut decide: impl FnMut()) -> u64 {
    const MANY: u64 = 100;
    decide();
    let counted = allocation_counter::measure(|| (0..MANY).for_each(|_| decide()));
    counted.count_total / MANY
}

fn row(what: &str, own: &Times, other: &Times, allocations: u64) {
    println!(
        "{what:<28} {:>7.0} {:>7.0} ns {:>6.2} {:>6.2} x {allocations:>3} allocations",
        own.least(),
        own.median(),
        own.least() / other.least(),
        own.median() / other.median(),
    );
}
