//! Two threads at once.
#![cfg(test)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use tidegate::admission::{Admission, Ask, Chosen, Lane, Operator, Permit, Verdict};
use tidegate::budget::{Line, Rulebook};
use tidegate::clock::{Clock, ManualClock, Moment};

use super::house::{House, book, noon, open, rate, rule, sent, step};

#[test]
fn two_lanes_of_one_group_are_made_at_once() {
    let house = House::of(book(vec![rule("*.g.test", &[rate("1/s", 1)])]));
    let arrived = AtomicUsize::new(0);
    const ROUNDS: usize = 2000;
    std::thread::scope(|scope| {
        for host in 0..2 {
            let (house, arrived) = (&house, &arrived);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let url = format!("http://h{host}.r{round}.test/");
                    arrived.fetch_add(1, Ordering::SeqCst);
                    while arrived.load(Ordering::SeqCst) < 2 * (round + 1) {
                        std::hint::spin_loop();
                    }
                    house.lane(&url);
                }
            });
        }
    });
}

/// A clock that lets something happen while somebody reads it.
struct Interrupted {
    clock: ManualClock,
    once: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupted")
    }
}

impl Interrupted {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: ManualClock::at(noon()),
            once: Mutex::default(),
        })
    }

    fn next_time(&self, happen: impl FnOnce() + Send + 'static) {
        *self.once.lock().unwrap() = Some(Box::new(happen));
    }
}

impl Clock for Interrupted {
    fn now(&self) -> Moment {
        let now = self.clock.now();
        let once = self.once.lock().unwrap().take();
        if let Some(happen) = once {
            happen();
        }
        now
    }

    fn wall(&self) -> SystemTime {
        self.clock.wall()
    }

    fn utc_offset(&self) -> i64 {
        0
    }
}

fn rules(frequency: &str) -> Rulebook {
    book(vec![rule("http://a.test", &[rate(frequency, 1)])])
}

#[test]
fn a_lane_made_while_the_rules_change_has_the_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Interrupted::new();
    let gate = open(folder.path(), clock.clone(), rules("10/s"));
    let (sender, receiver) = mpsc::channel();
    let adopting = gate.clone();
    clock.next_time(move || {
        let (started, is_done) = mpsc::channel();
        sender
            .send(std::thread::spawn(move || {
                adopting.adopt(rules("1/min")).unwrap();
                started.send(()).ok();
            }))
            .unwrap();
        // It may have to wait for the lane; then it comes after it.
        is_done.recv_timeout(Duration::from_millis(100)).ok();
    });
    let lane = gate.route("http://a.test/", "GET", &step()).unwrap().lane;
    receiver.recv().unwrap().join().unwrap();
    let levels = gate.levels(&lane);
    let limits: Vec<_> = levels.iter().flat_map(|level| &level.limits).collect();
    assert_eq!(limits[0].limit, rate("1/min", 1));
}

#[test]
fn what_leaves_while_new_rules_are_put_in_force_stays_spent() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Interrupted::new();
    let gate = open(folder.path(), clock.clone(), rules("1/s"));
    let lane = gate.route("http://a.test/", "GET", &step()).unwrap().lane;
    let (ticking, sending, on) = (clock.clone(), gate.clone(), lane.clone());
    clock.next_time(move || {
        // Many lanes take a while, and meanwhile calls go on.
        ticking.clock.advance(Duration::from_secs(10));
        sent(go(&sending, &on).unwrap());
    });
    gate.adopt(rules("1/2s")).unwrap();
    assert!(go(&gate, &lane).is_none(), "two at once");
}

fn go(gate: &Arc<Admission>, lane: &Arc<Lane>) -> Option<Permit> {
    let step = step();
    match gate
        .admit(lane, &Ask::new("GET", "/", &step), Line::Watch)
        .unwrap()
    {
        Verdict::Granted(permit) => Some(permit),
        _ => None,
    }
}

#[test]
fn a_bucket_that_only_a_hold_has_made_follows_the_rules_too() {
    let house = House::of(rules("10/s"));
    let operator = || Operator {
        by: "ada".into(),
        note: "maintenance".into(),
    };
    let target = Chosen::Target("http://a.test".parse().unwrap());
    assert!(house.gate.hold(&target, None, operator()).unwrap());
    house.gate.adopt(rules("1/min")).unwrap();
    assert!(!house.gate.release(&target, operator()).unwrap().is_empty());
    let lane = house.lane("http://a.test/");
    let levels = house.gate.levels(&lane);
    let limits: Vec<_> = levels.iter().flat_map(|level| &level.limits).collect();
    assert_eq!(limits[0].limit, rate("1/min", 1));
}
