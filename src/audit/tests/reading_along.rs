use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::bench::*;
use crate::audit::*;
use crate::budget::Cause;
use crate::clock::Clock as _;
use crate::outcome::End;

const WRITERS: u64 = 8;
const CALLS: u64 = 400;

fn unique(read: &[Recorded]) -> HashSet<u64> {
    let seen: HashSet<u64> = numbers(read).into_iter().collect();
    assert_eq!(seen.len(), read.len(), "an event was read twice");
    seen
}

#[test]
fn a_reader_beside_eight_writers_sees_what_is_acknowledged_and_nothing_twice() {
    let bench = Bench::new();
    let acknowledged: Mutex<HashSet<u64>> = Mutex::default();
    let done = AtomicBool::new(false);
    let (log, clock) = (bench.log(), &bench.clock);
    let write = |writer: u64| {
        for n in 0..CALLS {
            let target = format!("https://w{writer}.test#n{}", n % 11);
            let intent = intent(&target, &format!("agent-{writer}"), clock.now());
            let (number, durable) = log.begin(intent.clone());
            durable.detach();
            clock.advance(Duration::from_millis(n % 5));
            let settled = log.finish(number, ended(intent, clock.now(), End::Answered), |_| {});
            log.defer(deferred(&target, "scout", Cause::BudgetEmpty, clock.now()));
            if n % 4 == 0 {
                settled.wait_blocking().unwrap();
                acknowledged.lock().unwrap().insert(number);
            } else {
                settled.detach();
            }
        }
    };
    let mut reads = 0;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(writer)))
            .collect();
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Acquire) {
                let before = acknowledged.lock().unwrap().clone();
                let read = events(log.store(), Filter::default()).unwrap();
                let seen = unique(&read.map(Result::unwrap).collect::<Vec<_>>());
                let missing: Vec<_> = before.difference(&seen).collect();
                assert!(missing.is_empty(), "acknowledged and not read: {missing:?}");
                reads += 1;
            }
            reads
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        reads = reader.join().unwrap();
    });
    assert!(reads > 0);
    bench.log().close().wait_blocking().unwrap();
    let all = bench.all();
    unique(&all);
    let made: HashSet<_> = calls(&all)
        .into_iter()
        .map(|(_, call)| call.intent.target.clone())
        .collect();
    assert_eq!(made.len() as u64, WRITERS * 11);
    assert_eq!(calls(&all).len() as u64, WRITERS * CALLS);
    let deferrals = all.iter().map(|found| match &found.event {
        Event::Deferred(deferred) => deferred.count,
        _ => 0,
    });
    assert_eq!(deferrals.sum::<u64>(), WRITERS * CALLS);
    assert!(under_way(bench.store()).unwrap().is_empty());
    bench.assert_chained();
}

#[test]
fn a_reading_is_of_the_instant_at_which_it_began() {
    let to = Some(crate::clock::Moment::MAX);
    for filter in [
        Filter::default(),
        Filter {
            to,
            ..Filter::default()
        },
    ] {
        let bench = Bench::new();
        let call = || {
            bench.call(
                intent("https://a.test", "scout", bench.now()),
                Duration::ZERO,
            )
        };
        let before: Vec<u64> = (0..100).map(|_| call()).collect();
        bench.flush();
        let mut reading = events(bench.store(), filter).unwrap();
        let first = reading.next().unwrap().unwrap().number;
        // What was in no segment is packed meanwhile, and more comes behind it.
        assert!((0..100).all(|_| call() > first));
        bench.flush();
        let rest = reading.map(|found| found.unwrap().number);
        let read: Vec<u64> = std::iter::once(first).chain(rest).collect();
        assert_eq!(read, before);
    }
}

#[test]
fn names_written_while_a_reading_goes_on_are_found() {
    let bench = Bench::new();
    let (number, durable) = bench
        .log()
        .begin(intent("https://a.test", "scout", bench.now()));
    durable.detach();
    bench.flush();
    let before = events(bench.store(), Filter::default()).unwrap();
    let done = ended(
        intent("https://a.test", "scout", bench.now()),
        bench.now(),
        End::Answered,
    );
    bench.log().finish(number, done, |_| {}).detach();
    bench.log().close().wait_blocking().unwrap();
    let after = events(bench.store(), Filter::default()).unwrap();
    assert_eq!(before.map(Result::unwrap).count(), 0);
    assert_eq!(after.map(Result::unwrap).count(), 2);
}

#[test]
fn a_log_is_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Log>();
    is_shared::<Arc<Recorded>>();
}
