//! A gate as a program sets it up: a store in a folder of its own, calls over real sockets.
//!
//! What a test says of a target is what it found in the target's log; the gate's own record is read
//! only to see that it tells the same story.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tidegate::admission::{Admission, Policy};
use tidegate::audit::{Call, Event, Filter, TaskRef, events};
use tidegate::budget::{
    Conduct, Defaults, Limit, LimitLevel, Provenance, Reset, Rulebook, TargetRule,
};
use tidegate::clock::{Clock, ManualClock, wall_offset};
use tidegate::egress::guard::{Guard, Lookup, pinned_lookup};
use tidegate::egress::{Bodies, Egress, Request, Sent, Wire};
use tidegate::outcome::End;
use tidegate::schedule::list::{Context, read_line};
use tidegate::schedule::{
    Completed, Fetch, Handle, Job, NewTask, ResultLine, Schedule, Settings, Started, Stop,
};
use tidegate::step::Step;
use tidegate::store::{Changes, IfMissing, Store};
use tidegate::target::TargetKey;

use super::tls::TestCa;
pub use super::wait::{PATIENCE, breath, stopwatch, until};

/// Tokens of [`counted`].
pub const MANY: u64 = 1_000_000;

/// A limit that never holds anything back and never refills, so that what is left of it tells how
/// many tokens were spent.
pub fn counted() -> Limit {
    Limit::quota(
        format!("{MANY}/day").parse().expect("a frequency"),
        Reset::Rolling,
    )
}

/// A token bucket such as `("20/s", 5)`.
pub fn rate(frequency: &str, burst: u32) -> Limit {
    let burst = burst.try_into().expect("a burst");
    Limit::rate(frequency.parse().expect("a frequency"), burst).expect("a limit")
}

/// A task as a line of a task file says it.
pub fn task(line: &Value) -> NewTask {
    let context = Context {
        env: &|name| std::env::var(name).ok(),
        wall_offset: 0,
        template: None,
        wanted: None,
    };
    read_line(&line.to_string(), 1, &context)
        .expect("a good line")
        .expect("a task")
}

/// Finds these names, and no others.
pub fn names<const N: usize>(pins: [(&str, &[IpAddr]); N]) -> Lookup {
    let pins: HashMap<_, _> = pins
        .into_iter()
        .map(|(name, addresses)| (name.to_owned(), addresses.to_vec()))
        .collect();
    let nobody: Lookup =
        Arc::new(|_| Box::pin(std::future::ready(Err(io::Error::other("no such name")))));
    pinned_lookup(pins, nobody)
}

/// How a gate is to be.
pub struct Setup {
    pub defaults: Defaults,
    pub rules: Vec<TargetRule>,
    pub wire: Wire,
    /// The machine's clock where there is none.
    pub clock: Option<Arc<ManualClock>>,
    pub settings: Settings,
    kept: Vec<TempDir>,
}

impl Default for Setup {
    /// Every target has the budget of [`counted`] and exact arrivals, and all of 127.0.0.0/8 is
    /// open. There are no names.
    fn default() -> Self {
        let conduct = Conduct {
            concurrency: 64.try_into().expect("not zero"),
            arrival_margin: Duration::ZERO,
            ..Conduct::default()
        };
        Self {
            defaults: Defaults {
                limits: vec![counted()],
                conduct,
                provenance: Provenance::by("test"),
            },
            rules: Vec::new(),
            wire: Wire {
                guard: Arc::new(Guard::new(vec!["127.0.0.0/8".parse().expect("a range")])),
                lookup: names([]),
                ca_file: None,
                user_agent: "tidegate/test".into(),
            },
            clock: None,
            settings: Settings::default(),
            kept: Vec::new(),
        }
    }
}

impl Setup {
    /// Adds a rule: `pattern` is an origin or a host.
    #[must_use]
    pub fn rule(self, pattern: &str, limits: Vec<Limit>) -> Self {
        self.ruled(pattern, limits, |_| {})
    }

    /// Adds a rule with a conduct of its own.
    #[must_use]
    pub fn ruled(
        mut self,
        pattern: &str,
        limits: Vec<Limit>,
        amend: impl FnOnce(&mut Conduct),
    ) -> Self {
        let mut rule = TargetRule::new(pattern.parse().expect("a pattern"), limits);
        rule.conduct = self.defaults.conduct.clone();
        amend(&mut rule.conduct);
        self.rules.push(rule);
        self
    }

    /// Trusts a test's own authority as well.
    #[must_use]
    pub fn trusting(mut self, ca: &TestCa) -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, &ca.ca_pem).expect("a file");
        self.wire.ca_file = Some(path);
        self.kept.push(folder);
        self
    }

    /// Opens a gate with a new store.
    pub fn open(&self) -> Gate {
        self.open_in(Arc::new(TempDir::new().expect("a folder")))
    }

    /// Opens a gate over what a gate before left in `folder`.
    pub fn open_in(&self, folder: Arc<TempDir>) -> Gate {
        let mut gate = self.open_at(folder.path());
        gate.kept = Some(folder);
        gate
    }

    /// Opens a gate in a folder that is somebody else's to remove.
    pub fn open_at(&self, folder: &Path) -> Gate {
        let store = Store::open(&folder.join("store"), IfMissing::Create, 0);
        let store = Arc::new(store.expect("a store"));
        let clock: Arc<dyn Clock> = match &self.clock {
            Some(clock) => clock.clone(),
            None => store.clock(),
        };
        let rulebook = Rulebook::new(self.defaults.clone(), self.rules.clone(), Vec::new());
        let policy = Policy {
            user_agent: self.wire.user_agent.clone(),
            ..Policy::default()
        };
        let rulebook = rulebook.expect("rules that can hold");
        let admission = Admission::open(store, clock, rulebook, policy).expect("a record");
        let egress = Arc::new(Egress::new(admission.clone(), &self.wire).expect("a client"));
        Gate {
            folder: folder.to_owned(),
            kept: None,
            admission,
            egress,
            settings: self.settings,
        }
    }
}

/// An open gate.
pub struct Gate {
    pub folder: PathBuf,
    kept: Option<Arc<TempDir>>,
    pub admission: Arc<Admission>,
    pub egress: Arc<Egress>,
    pub settings: Settings,
}

impl Gate {
    /// Where results and bodies go.
    pub fn out(&self) -> PathBuf {
        self.folder.join("out")
    }

    /// One call, as a program makes it.
    pub async fn send(&self, method: &str, url: &str) -> Sent {
        let request = Request {
            method: method.to_owned(),
            ..Request::get(url)
        };
        let sent = self.egress.send(&request, &Step::of("caller")).await;
        sent.expect("the record can be written")
    }

    /// Starts the schedule over what is queued.
    pub fn start(&self) -> Run {
        let store = self.admission.store().clone();
        let job = Arc::new(Job::of(store, &self.out()).expect("a job"));
        let bodies = Bodies::in_folder(&self.out()).expect("a folder for bodies");
        let schedule = Schedule {
            admission: self.admission.clone(),
            job,
            work: Arc::new(Fetch::new(self.egress.clone(), bodies)),
            settings: self.settings,
        };
        let Started {
            handle,
            completed,
            stopped,
        } = schedule.start().expect("a queue that can be read");
        Run {
            handle,
            completed,
            stopped,
        }
    }

    /// Runs these tasks to their end; their results in the order of their ids.
    pub async fn run(&self, tasks: Vec<NewTask>) -> Vec<ResultLine> {
        let run = self.start();
        run.submit(tasks).await;
        run.finish().await
    }

    /// What is left of each limit for a URL.
    fn levels(&self, url: &str) -> Vec<LimitLevel> {
        let route = self.admission.route(url, "GET", &Step::default());
        let levels = self.admission.levels(&route.expect("a target").lane);
        levels.into_iter().flat_map(|level| level.limits).collect()
    }

    /// How many tokens of the tightest limit are left for a URL.
    pub fn left(&self, url: &str) -> u64 {
        let left = self.levels(url).into_iter().map(|limit| limit.left);
        left.min().expect("a limit")
    }

    /// How many tokens of [`counted`] were spent on a URL's target.
    pub fn spent(&self, url: &str) -> u64 {
        let mut levels = self.levels(url).into_iter();
        let counted = levels.find(|level| level.limit == counted());
        MANY - counted.expect("a limit that counts").left
    }

    /// Everything on record.
    pub async fn events(&self) -> Vec<Event> {
        let store = self.admission.store();
        let written = store.write(Changes::default()).wait().await;
        written.expect("the record can be written");
        let all = events(store, Filter::default()).expect("a record");
        all.map(|entry| entry.expect("a good entry").event)
            .collect()
    }

    /// The calls on record that are over, in the order of their ends.
    pub async fn calls(&self) -> Vec<Call> {
        let events = self.events().await.into_iter();
        events
            .filter_map(|event| match event {
                Event::Call(call) => Some(call),
                _ => None,
            })
            .collect()
    }

    /// How the calls to a target ended, by the record.
    pub async fn ends(&self, target: &str) -> Vec<End> {
        let target: TargetKey = target.parse().expect("a target");
        let calls = self.calls().await.into_iter();
        calls
            .filter(|call| call.intent.target.origin == target.origin)
            .map(|call| call.settlement.end)
            .collect()
    }

    /// Nanoseconds from the gate's moments to the wall clock.
    pub fn wall_offset(&self) -> i64 {
        wall_offset(&**self.admission.clock())
    }

    /// Ends everything, so that the store can be opened again.
    pub fn into_folder(self) -> Arc<TempDir> {
        self.kept.expect("a folder of the gate's own")
    }
}

/// A running schedule.
pub struct Run {
    pub handle: Handle,
    completed: tokio::sync::mpsc::UnboundedReceiver<Completed>,
    stopped: tokio::task::JoinHandle<Stop>,
}

impl Run {
    /// Hands tasks over, all of them new.
    pub async fn submit(&self, tasks: Vec<NewTask>) {
        let count = tasks.len() as u64;
        let submitted = self.handle.submit(tasks).await.expect("a running schedule");
        assert_eq!((submitted.new, submitted.conflicts.len()), (count, 0));
    }

    /// The next result.
    pub async fn next(&mut self) -> ResultLine {
        let next = tokio::time::timeout(PATIENCE, self.completed.recv()).await;
        line(&next.expect("a result in time").expect("a result"))
    }

    /// Results that are there already.
    pub fn so_far(&mut self) -> Vec<ResultLine> {
        std::iter::from_fn(|| self.completed.try_recv().ok())
            .map(|done| line(&done))
            .collect()
    }

    /// Waits until every task is complete; the results that were not taken, in the order of their
    /// ids.
    pub async fn finish(mut self) -> Vec<ResultLine> {
        self.handle.seal();
        let stop = tokio::time::timeout(PATIENCE, &mut self.stopped).await;
        let stop = stop.expect("an end in time").expect("no panic");
        assert_eq!(stop, Stop::Done);
        // All of them have been handed over by now.
        let mut lines = self.so_far();
        lines.sort_by(|a, b| a.id.cmp(&b.id));
        lines
    }

    /// Stops it where it is.
    pub async fn stop(self) {
        self.handle.stop();
        let stop = tokio::time::timeout(PATIENCE, self.stopped).await;
        assert_eq!(
            stop.expect("an end in time").expect("no panic"),
            Stop::Asked
        );
    }

    /// The number of a task by its place in the order of acceptance.
    pub fn task(&self, number: u64) -> TaskRef {
        TaskRef {
            job: self.handle.job().number(),
            number,
        }
    }
}

fn line(done: &Completed) -> ResultLine {
    serde_json::from_str(&done.line).expect("a line of results")
}
