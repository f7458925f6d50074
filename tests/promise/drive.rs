//! Runs a script against a gate, in driven time, and has every scope's arrivals judged.
#![cfg(test)]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use proptest::test_runner::TestCaseError;

use super::judge::{Arrival, Phase, judge};
use super::script::{Act, LANES, Rules, SCOPES, Script, Wish};

/// What a gate says to a wish.
pub enum Answer {
    Granted,
    /// Not before this instant, where one is known.
    Wait(Option<u64>),
    Never,
}

/// A gate under test; calls are named by the driver's numbers.
pub trait Gate {
    /// Time passes.
    fn at(&mut self, now: u64);
    fn ask(&mut self, call: usize, lane: usize, cost: u32) -> Answer;
    fn depart(&mut self, call: usize);
    fn end(&mut self, call: usize);
    fn abandon(&mut self, call: usize);
    fn revise(&mut self, rules: &Rules);
    /// From now on nothing goes on record any more.
    fn stop_the_record(&mut self);
    /// The gate is gone, and another one opens what is on record; at `now` these rules are in
    /// force. Says when what was under way counted as sent.
    fn reopen(&mut self, now: u64, rules: &Rules) -> u64;
    fn step_wall(&mut self, _nanos: i64) {}
    fn sweep(&mut self) {}
}

const MILLI: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Then {
    Leaves,
    IsTold,
    Ends,
    IsAbandoned,
}

struct Run<'a, G> {
    script: &'a Script,
    gate: G,
    now: u64,
    due: BinaryHeap<Reverse<(u64, usize, Then)>>,
    calls: Vec<(Wish, u64)>,
    sent: HashMap<usize, Arrival>,
    phases: Vec<(u64, usize, bool)>,
}

/// What a run came to.
#[derive(Debug, Default)]
#[expect(dead_code, reason = "shown when a property fails")]
pub struct Tally {
    pub granted: usize,
    pub arrived: usize,
}

/// Runs the script and judges it.
pub fn run<G: Gate>(script: &Script, gate: G) -> Result<Tally, TestCaseError> {
    let mut run = Run {
        script,
        gate,
        now: script.start,
        due: BinaryHeap::new(),
        calls: Vec::new(),
        sent: HashMap::new(),
        phases: vec![(0, 0, false)],
    };
    run.gate.at(script.start);
    for act in &script.acts {
        run.act(*act)?;
    }
    while let Some(Reverse((at, ..))) = run.due.peek() {
        run.pass(*at);
    }
    run.verdict()
}

impl<G: Gate> Run<'_, G> {
    fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
        match act {
            Act::Call(wish) => self.call(wish)?,
            Act::Rest(span) => self.pass(self.now + span),
            Act::Revise(index) => {
                self.pass(self.now);
                // What was before and what is after must not share an instant.
                self.go(self.now + 1);
                self.gate.revise(&self.script.rules[index]);
                self.phases.push((self.now, index, false));
            }
            Act::Crash { dying, down, rules } => {
                self.gate.stop_the_record();
                self.pass(self.now + dying);
                self.due.clear();
                // What had not left when the gate died never will.
                self.now += down.max(2);
                let now = self.now;
                let before = self.phases.last().map_or(0, |(_, index, _)| *index);
                let rules = rules.unwrap_or(before);
                let counted = self.gate.reopen(now, &self.script.rules[rules]);
                self.phases.push((now, rules, true));
                for arrival in self
                    .sent
                    .values_mut()
                    .filter(|arrival| arrival.told == u64::MAX)
                {
                    arrival.told = counted;
                }
            }
            Act::StepWall(nanos) => self.gate.step_wall(nanos),
            Act::Sweep => self.gate.sweep(),
        }
        Ok(())
    }

    fn call(&mut self, wish: Wish) -> Result<(), TestCaseError> {
        let call = self.calls.len();
        for times in 0..10_000 {
            self.pass(self.now);
            match self.gate.ask(call, wish.lane, wish.cost) {
                Answer::Granted => {
                    self.granted(call, wish);
                    return Ok(());
                }
                Answer::Never => return Ok(()),
                Answer::Wait(_) if !wish.insists => return Ok(()),
                Answer::Wait(ready) => {
                    if ready.is_some_and(|ready| ready <= self.now) {
                        return Err(TestCaseError::fail(format!(
                            "deferred at {} until {ready:?}",
                            self.now
                        )));
                    }
                    let next = self.due.peek().map(|Reverse((at, ..))| *at);
                    match next.into_iter().chain(ready).min() {
                        // While calls are under way the instant told moves with time.
                        Some(at) if times > 3 => self.pass(at.max(self.now + MILLI)),
                        Some(at) => self.pass(at),
                        None => return Ok(()),
                    }
                }
            }
        }
        Err(TestCaseError::fail("asked 10,000 times in vain"))
    }

    fn granted(&mut self, call: usize, wish: Wish) {
        self.calls.push((wish, self.now));
        let told = self.now + wish.told_after;
        if wish.is_abandoned {
            self.due.push(Reverse((told, call, Then::IsAbandoned)));
            return;
        }
        let left = self.now + wish.told_after * wish.left_at / 100;
        self.due.push(Reverse((left, call, Then::Leaves)));
        self.due.push(Reverse((told, call, Then::IsTold)));
        let end = told + wish.lasts;
        self.due.push(Reverse((end, call, Then::Ends)));
    }

    /// Lets time pass, and everything that is due until then happen.
    fn pass(&mut self, until: u64) {
        while let Some(Reverse((at, call, then))) = self.due.peek().copied()
            && at <= until
        {
            self.due.pop();
            self.go(at);
            let (wish, decided) = self.calls[call];
            match then {
                Then::Leaves => {
                    let way = self.script.way;
                    let arrival = Arrival {
                        decided,
                        told: u64::MAX,
                        at: at + way.base + way.spread * wish.delay / 100,
                        cost: wish.cost,
                    };
                    self.sent.insert(call, arrival);
                }
                Then::IsTold => {
                    if let Some(arrival) = self.sent.get_mut(&call) {
                        arrival.told = at;
                    }
                    self.gate.depart(call);
                }
                Then::Ends => self.gate.end(call),
                Then::IsAbandoned => self.gate.abandon(call),
            }
        }
        self.go(until);
    }

    fn go(&mut self, to: u64) {
        self.now = self.now.max(to);
        self.gate.at(self.now);
    }

    fn verdict(&self) -> Result<Tally, TestCaseError> {
        for scope in 0..SCOPES {
            let phase = |(from, index, is_restart): &(u64, usize, bool)| Phase {
                from: *from,
                policies: self.script.rules[*index].0[scope].clone(),
                is_restart: *is_restart,
            };
            let phases: Vec<Phase> = self.phases.iter().map(phase).collect();
            let of_scope =
                |(call, _): &(&usize, &Arrival)| LANES[self.calls[**call].0.lane].contains(&scope);
            let mut arrivals: Vec<Arrival> = self
                .sent
                .iter()
                .filter(of_scope)
                .map(|(_, arrival)| *arrival)
                .collect();
            arrivals.sort_unstable_by_key(|arrival| (arrival.at, arrival.decided));
            judge(&phases, &arrivals, self.script.way).map_err(|over| {
                let history = phases
                    .iter()
                    .map(|p| format!("{p:?}"))
                    .chain(arrivals.iter().map(|a| format!("{a:?}")))
                    .collect::<Vec<_>>()
                    .join("\n");
                TestCaseError::fail(format!("scope {scope}: {over:?}\n{history}"))
            })?;
        }
        Ok(Tally {
            granted: self.calls.len(),
            arrived: self.sent.len(),
        })
    }
}
