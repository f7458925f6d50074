//! A gate over a store of its own, with a clock that is moved by hand.
#![cfg(test)]

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidegate::admission::{Admission, Ask, Ending, Lane, Permit, Policy, Verdict};
use tidegate::audit::{Event, Filter, events};
use tidegate::budget::{Deferral, Limit, Line, Rulebook, TargetRule};
use tidegate::clock::{Clock, ManualClock, Moment};
use tidegate::outcome::End;
use tidegate::step::Step;
use tidegate::store::{IfMissing, Store};

pub const SECOND: Duration = Duration::from_secs(1);

/// When the clocks of these tests start: a Monday, at noon.
pub fn noon() -> Moment {
    Moment::ZERO.after(Duration::from_secs(1_800_014_400))
}

pub fn n(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

pub fn max(frequency: &str, burst: u32) -> Limit {
    Limit::max(frequency.parse().unwrap(), n(burst)).unwrap()
}

pub fn rate(frequency: &str, burst: u32) -> Limit {
    Limit::rate(frequency.parse().unwrap(), n(burst)).unwrap()
}

/// A rule of these limits for a pattern of hosts, with room for 64 calls at once.
pub fn rule(pattern: &str, limits: &[Limit]) -> TargetRule {
    let mut rule = TargetRule::new(pattern.parse().unwrap(), limits.to_vec());
    rule.conduct.concurrency = n(64);
    rule
}

pub fn book(rules: Vec<TargetRule>) -> Rulebook {
    Rulebook::new(Default::default(), rules, Vec::new()).unwrap()
}

/// Opens the store of a folder, once whoever held it has let it go.
pub fn store(folder: &Path) -> Arc<Store> {
    let mut failed = None;
    for _ in 0..500 {
        match Store::open(folder, IfMissing::Create, 0) {
            Ok(store) => return Arc::new(store),
            Err(error) => failed = Some(error),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{failed:?}");
}

/// A gate, its folder and its clock.
pub struct House {
    pub folder: TempDir,
    pub clock: Arc<ManualClock>,
    pub gate: Arc<Admission>,
}

impl House {
    pub fn of(rulebook: Rulebook) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(noon()));
        let gate = open(folder.path(), clock.clone(), rulebook);
        Self {
            folder,
            clock,
            gate,
        }
    }

    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    pub fn lane(&self, url: &str) -> Arc<Lane> {
        self.gate.route(url, "GET", &step()).unwrap().lane
    }

    pub fn ask_for(&self, url: &str, cost: u32) -> Verdict {
        let step = step();
        let ask = Ask {
            cost: n(cost),
            ..Ask::new("GET", "/", &step)
        };
        self.gate.admit(&self.lane(url), &ask, Line::Watch).unwrap()
    }

    pub fn ask(&self, url: &str) -> Verdict {
        self.ask_for(url, 1)
    }

    /// A call that must be granted.
    pub fn grant(&self, url: &str) -> Permit {
        match self.ask(url) {
            Verdict::Granted(permit) => permit,
            other => panic!("{url}: {other:?}"),
        }
    }

    /// A call that must be deferred.
    pub fn defer(&self, url: &str) -> Deferral {
        match self.ask(url) {
            Verdict::Deferred(deferral) => deferral,
            other => panic!("{url}: {other:?}"),
        }
    }

    /// Sends one call, if it may go now, to its end. True when it went.
    pub fn send(&self, url: &str) -> bool {
        match self.ask(url) {
            Verdict::Granted(permit) => {
                sent(permit);
                true
            }
            Verdict::Deferred(_) => false,
            Verdict::Refused(refusal) => panic!("{url}: {refusal}"),
        }
    }

    /// How many calls go at once, one after the other.
    pub fn send_all(&self, url: &str) -> usize {
        (0..100_000).take_while(|_| self.send(url)).count()
    }

    /// Kills the gate: nothing of what these permits came to goes on record. Opens another one.
    pub fn kill(&mut self, under_way: Vec<Permit>, rulebook: Rulebook) {
        self.gate.store().close();
        drop(under_way);
        self.reopen(rulebook);
    }

    pub fn reopen(&mut self, rulebook: Rulebook) {
        let nothing = Rulebook::default();
        let idle = tempfile::tempdir().unwrap();
        // The folder is free only when the gate before is gone.
        self.gate = open(idle.path(), self.clock.clone(), nothing);
        self.gate = open(self.folder.path(), self.clock.clone(), rulebook);
    }

    /// All that is on record, in order.
    pub fn record(&self) -> Vec<Event> {
        self.gate
            .log()
            .note(marker(self.now()))
            .wait_blocking()
            .unwrap();
        events(self.gate.store(), Filter::default())
            .unwrap()
            .map(|recorded| recorded.unwrap().event)
            .collect()
    }
}

/// Written last, so that all before it is on disk when it is.
fn marker(at: Moment) -> Event {
    Event::Closed { gate: 0, at }
}

pub fn open(folder: &Path, clock: Arc<dyn Clock>, rulebook: Rulebook) -> Arc<Admission> {
    Admission::open(store(folder), clock, rulebook, Policy::default()).unwrap()
}

pub fn step() -> Step {
    Step::of("scout")
}

/// The call leaves and is answered at once.
pub fn sent(mut permit: Permit) {
    permit.dial().unwrap().mark();
    answered(permit);
}

/// The call is answered.
pub fn answered(permit: Permit) {
    let ending = Ending {
        status: Some(200),
        ..Ending::of(End::Answered)
    };
    permit.settle(ending).commit().detach();
}
