//! The gate itself under a script: admissions over a store.
#![cfg(test)]

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidegate::admission::{Admission, Ask, Chosen, Departure, Operator, Permit, Verdict};
use tidegate::budget::{
    ClassTerms, Conduct, Defaults, Frequency, Limit, Line, PauseScope, PoolRule, Provenance, Reset,
    Rulebook, Scope, TargetRule,
};
use tidegate::clock::{ManualClock, Moment};
use tidegate::target::{Class, ClassRule, Template};

use super::drive::{Answer, Gate};
use super::house::{answered, open, step};
use super::judge::{Kind, Policy};
use super::script::{Rules, SCOPES, Script};

/// The URLs of each lane: their scopes are those of [`super::script::LANES`].
const URLS: [&[&str]; 5] = [
    &["http://a.test/"],
    &["http://a.test/x/1"],
    &["https://b.g.test/", "http://c.g.test:81/"],
    &["https://b.g.test/x/1", "http://c.g.test:81/x/2"],
    &[
        "https://d1.d.test/",
        "http://d2.d.test/",
        "http://d.test:8080/",
    ],
];

/// What an operator calls each scope.
const SCOPE_NAMES: [&str; SCOPES] = [
    "pool:p",
    "http://a.test",
    "http://a.test#x",
    "group://*.g.test",
    "group://*.g.test#x",
    "group:d.test",
];

pub struct Live {
    folder: TempDir,
    clock: Arc<ManualClock>,
    /// None only while the one before is let go.
    admission: Option<Arc<Admission>>,
    margin: Duration,
    concurrency: NonZeroU32,
    calls: HashMap<usize, (Permit, Option<Departure>)>,
}

impl Live {
    pub fn new(script: &Script) -> Self {
        let clock = Arc::new(ManualClock::at(Moment::from_nanos(script.start)));
        let mut live = Self {
            folder: tempfile::tempdir().unwrap(),
            clock,
            admission: None,
            margin: Duration::from_nanos(script.margin),
            concurrency: NonZeroU32::new(script.concurrency).unwrap(),
            calls: HashMap::new(),
        };
        live.open(&script.rules[0]);
        live
    }

    fn open(&mut self, rules: &Rules) {
        let rulebook = self.rulebook(rules);
        self.admission = Some(open(self.folder.path(), self.clock.clone(), rulebook));
    }

    /// Puts these limits in place of the rulebook's, as an operator would.
    fn set(&mut self, rules: &Rules, base: &Rules) {
        for ((name, policies), base) in SCOPE_NAMES.iter().zip(&rules.0).zip(&base.0) {
            let chosen = match name.parse::<Scope>() {
                Ok(scope) => Chosen::Scope(scope),
                Err(_) => Chosen::Target(name.parse().unwrap()),
            };
            let operator = Operator {
                by: "ana".into(),
                note: "".into(),
            };
            let admission = self.admission();
            if policies.is_empty() || policies == base {
                admission.release(&chosen, operator).unwrap();
            } else {
                let limits = policies.iter().copied().map(limit).collect();
                assert!(admission.set(&chosen, limits, None, operator).unwrap());
            }
        }
    }

    fn admission(&self) -> &Arc<Admission> {
        self.admission.as_ref().unwrap()
    }

    fn rulebook(&self, rules: &Rules) -> Rulebook {
        let [pool, host, class, pattern, class_of_pattern, unnamed] = rules
            .0
            .clone()
            .map(|policies| policies.into_iter().map(limit).collect::<Vec<_>>());
        let conduct = Conduct {
            concurrency: self.concurrency,
            arrival_margin: self.margin,
            ..Conduct::default()
        };
        let rule = |hosts: &str, limits, class| TargetRule {
            conduct: conduct.clone(),
            pool: Some("p".into()),
            classes: vec![x(class)],
            ..TargetRule::new(hosts.parse().unwrap(), limits)
        };
        let pool = PoolRule {
            name: "p".into(),
            limits: pool,
            arrival_margin: self.margin,
            provenance: Provenance::default(),
        };
        let defaults = Defaults {
            limits: unnamed,
            conduct: conduct.clone(),
            provenance: Provenance::default(),
        };
        let rules = vec![
            rule("http://a.test", host, class),
            rule("*.g.test", pattern, class_of_pattern),
        ];
        Rulebook::new(defaults, rules, vec![pool]).unwrap()
    }
}

fn x(limits: Vec<Limit>) -> ClassTerms {
    ClassTerms {
        rule: ClassRule {
            name: Class::new("x").unwrap(),
            template: Template::parse("/x/{*rest}").unwrap(),
            methods: Vec::new(),
            query: Vec::new(),
        },
        limits,
        pause: PauseScope::Host,
    }
}

fn limit(policy: Policy) -> Limit {
    let n = |n: u32| NonZeroU32::new(n).unwrap();
    let frequency = Frequency::new(n(policy.count), Duration::from_nanos(policy.period)).unwrap();
    match policy.kind {
        Kind::Rate => Limit::rate(frequency, n(policy.burst)).unwrap(),
        Kind::Max => Limit::max(frequency, n(policy.burst)).unwrap(),
        Kind::Utc => Limit::quota(frequency, Reset::Utc),
        Kind::Rolling => Limit::quota(frequency, Reset::Rolling),
    }
}

impl Gate for Live {
    fn at(&mut self, now: u64) {
        self.clock.advance_to(Moment::from_nanos(now));
    }

    fn ask(&mut self, call: usize, lane: usize, cost: u32) -> Answer {
        let url = URLS[lane][call % URLS[lane].len()];
        let step = step();
        let route = self.admission().route(url, "GET", &step).unwrap();
        let ask = Ask {
            cost: NonZeroU32::new(cost).unwrap(),
            ..Ask::new("GET", "/", &step)
        };
        match self
            .admission()
            .admit(&route.lane, &ask, Line::Watch)
            .unwrap()
        {
            Verdict::Granted(permit) => {
                self.calls.insert(call, (permit, None));
                Answer::Granted
            }
            Verdict::Deferred(deferral) => Answer::Wait(deferral.ready.map(Moment::as_nanos)),
            Verdict::Refused(_) => Answer::Never,
        }
    }

    fn depart(&mut self, call: usize) {
        let (permit, departure) = self.calls.get_mut(&call).unwrap();
        let dialled = permit.dial().unwrap();
        dialled.mark();
        *departure = Some(dialled);
    }

    fn end(&mut self, call: usize) {
        let (permit, departure) = self.calls.remove(&call).unwrap();
        answered(permit);
        // A straggler's second word changes nothing.
        departure.unwrap().mark();
    }

    fn abandon(&mut self, call: usize) {
        let (permit, _) = self.calls.remove(&call).unwrap();
        permit.abandon("cancelled").commit().detach();
    }

    fn revise(&mut self, rules: &Rules) {
        self.admission().adopt(self.rulebook(rules)).unwrap();
    }

    fn stop_the_record(&mut self) {
        self.admission().store().close();
    }

    fn reopen(&mut self, now: u64, rules: &Rules) -> u64 {
        self.calls.clear();
        self.admission = None;
        self.at(now);
        self.open(rules);
        now
    }

    fn step_wall(&mut self, nanos: i64) {
        self.clock.step_wall(nanos);
    }

    fn sweep(&mut self) {
        self.admission().sweep(Duration::ZERO);
    }
}

/// The same gate under the rules it was opened with for ever: whatever changes is changed by an
/// operator, and outlives the gate.
pub struct ByHand {
    live: Live,
    base: Rules,
}

impl ByHand {
    pub fn new(script: &Script) -> Self {
        let base = script.rules[0].clone();
        let live = Live::new(script);
        Self { live, base }
    }
}

impl Gate for ByHand {
    fn at(&mut self, now: u64) {
        self.live.at(now);
    }

    fn ask(&mut self, call: usize, lane: usize, cost: u32) -> Answer {
        self.live.ask(call, lane, cost)
    }

    fn depart(&mut self, call: usize) {
        self.live.depart(call);
    }

    fn end(&mut self, call: usize) {
        self.live.end(call);
    }

    fn abandon(&mut self, call: usize) {
        self.live.abandon(call);
    }

    fn revise(&mut self, rules: &Rules) {
        self.live.set(rules, &self.base);
    }

    fn stop_the_record(&mut self) {
        self.live.stop_the_record();
    }

    fn reopen(&mut self, now: u64, rules: &Rules) -> u64 {
        // The gate is there before an operator can change anything.
        let opened = self.live.reopen(now - 1, &self.base);
        self.at(now);
        self.live.set(rules, &self.base);
        opened
    }

    fn step_wall(&mut self, nanos: i64) {
        self.live.step_wall(nanos);
    }

    fn sweep(&mut self) {
        self.live.sweep();
    }
}
