//! A gate that is really killed: a process of its own, by SIGKILL.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::bench::*;
use crate::audit::*;
use crate::clock::Clock as _;
use crate::outcome::End;

const STORE: &str = "TIDEGATE_TEST_STORE_TO_BE_KILLED";
const NAME: &str = "audit::tests::kill::the_gate_that_is_killed";
const WRITERS: usize = 4;

#[test]
#[ignore = "the other half of the test below, which runs it"]
fn the_gate_that_is_killed() {
    let Ok(folder) = std::env::var(STORE) else {
        return;
    };
    let store = Arc::new(opened(Path::new(&folder)));
    let clock = store.clock();
    let (log, interrupted) = Log::open(store, clock.clone()).unwrap();
    for call in interrupted {
        log.interrupt(call, clock.now(), |_| {}).detach();
    }
    let write = || {
        loop {
            let intent = intent("https://a.test", "scout", clock.now());
            let (number, durable) = log.begin(intent.clone());
            durable.wait_blocking().unwrap();
            let settled = log.finish(number, ended(intent, clock.now(), End::Answered), |_| {});
            if number.is_multiple_of(3) {
                settled.wait_blocking().unwrap();
                writeln!(std::io::stdout().lock(), "acknowledged {number}").unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        (0..WRITERS).for_each(|_| drop(scope.spawn(write)));
    });
}

/// The numbers that the gate had acknowledged before it was killed.
fn killed_after(folder: &Path, acknowledged: usize) -> Vec<u64> {
    let mut gate = Command::new(std::env::current_exe().unwrap())
        .args([
            NAME,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(STORE, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(gate.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let number = |line: String| line.rsplit_once("acknowledged ")?.1.parse().ok();
    let mut lines = lines.filter_map(number);
    let mut numbers: Vec<u64> = lines.by_ref().take(acknowledged).collect();
    gate.kill().unwrap();
    gate.wait().unwrap();
    numbers.extend(lines);
    assert!(
        numbers.len() >= acknowledged,
        "it ended by itself after {}",
        numbers.len()
    );
    numbers
}

#[test]
fn a_killed_gate_loses_nothing_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = HashSet::new();
    for round in 0..8 {
        let kill_after = 20 + 37 * round;
        for number in killed_after(folder.path(), kill_after) {
            assert!(
                acknowledged.insert(number),
                "number {number} was given twice"
            );
        }
        let store = opened(folder.path());
        let read: Vec<_> = events(&store, Filter::default())
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let seen: HashSet<u64> = numbers(&read).into_iter().collect();
        assert_eq!(seen.len(), read.len(), "read twice");
        let lost: Vec<_> = acknowledged.difference(&seen).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        assert!(under_way(&store).unwrap().len() <= WRITERS);
        let (mut last, mut hash) = (0, [0; 32]);
        for segment in segments_of(&store) {
            let place = segment.header.place;
            assert_eq!((place.number, place.previous), (last + 1, hash));
            (last, hash) = (place.number, segment.hash);
        }
        let truncated = read
            .iter()
            .any(|found| matches!(found.event, Event::Truncated { .. }));
        assert!(!truncated, "the head was ahead of the record");
    }
}
