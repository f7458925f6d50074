use std::collections::HashMap;
use std::time::Duration;

use super::bench::*;
use crate::audit::count::{Counts, MOST_KINDS};
use crate::audit::*;
use crate::budget::Cause;

const TARGET: &str = "https://a.test";

fn counts(found: &[Recorded]) -> Vec<u64> {
    let count = |found: &Recorded| match &found.event {
        Event::Deferred(deferred) => Some(deferred.count),
        Event::Refused(refused) => Some(refused.count),
        _ => None,
    };
    found.iter().filter_map(count).collect()
}

#[test]
fn a_flood_within_a_minute_is_two_events_with_its_sum() {
    let bench = Bench::new();
    // Whatever was counted before must not cut the minute in two.
    bench
        .log()
        .defer(deferred(TARGET, "other", Cause::Held, bench.now()));
    bench.clock.advance(Duration::from_millis(500));
    for _ in 0..100_000 {
        bench
            .log()
            .defer(deferred(TARGET, "scout", Cause::BudgetEmpty, bench.now()));
        bench.clock.advance(Duration::from_nanos(590_000));
    }
    bench.log().close().wait_blocking().unwrap();
    let mut all = bench.all();
    all.retain(|found| matches!(&found.event, Event::Deferred(one) if &*one.step.agent == "scout"));
    let counts = counts(&all);
    assert!(counts.len() <= 2, "{counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), 100_000);
}

#[test]
fn a_window_of_a_minute_holds_the_deferrals_of_that_minute() {
    let bench = Bench::new();
    let many = |count: u32| {
        for _ in 0..count {
            bench
                .log()
                .defer(deferred(TARGET, "scout", Cause::Paused, bench.now()));
        }
    };
    // Within sixty seconds of the first, and in another minute.
    bench.clock.advance(Duration::from_secs(40));
    many(10);
    bench.clock.advance(Duration::from_secs(30));
    many(20);
    bench.clock.advance(5 * MINUTE);
    bench.log().turn();
    let mut windows = Windows::new(MINUTE);
    bench.all().iter().for_each(|found| windows.add(found));
    let counts: Vec<_> = windows
        .iter()
        .map(|(start, _, window)| (start.since(START), window.deferrals))
        .collect();
    assert_eq!(counts, [(Duration::ZERO, 10), (MINUTE, 20)]);
}

#[test]
fn the_first_of_a_kind_is_on_record_at_once_and_the_rest_when_its_minute_is_over() {
    let bench = Bench::new();
    for _ in 0..10 {
        bench
            .log()
            .defer(deferred(TARGET, "scout", Cause::Paused, bench.now()));
        bench
            .log()
            .refuse(refused("http://169.254.169.254", "scout", bench.now()));
    }
    assert_eq!(counts(&bench.all()), [1, 1]);
    bench.clock.advance(Duration::from_secs(59));
    bench.log().turn();
    assert_eq!(counts(&bench.all()), [1, 1]);
    bench.clock.advance(Duration::from_secs(2));
    bench.log().turn();
    assert_eq!(counts(&bench.all()), [1, 1, 9, 9]);
    bench.clock.advance(HOUR);
    bench.log().turn();
    assert_eq!(
        counts(&bench.all()),
        [1, 1, 9, 9],
        "a count goes on record once"
    );
}

#[test]
fn any_event_brings_the_counts_that_are_due_with_it() {
    let bench = Bench::new();
    for _ in 0..3 {
        bench
            .log()
            .defer(deferred(TARGET, "scout", Cause::Paused, bench.now()));
    }
    bench.clock.advance(2 * MINUTE);
    bench.call(
        intent("https://b.test", "scout", bench.now()),
        Duration::ZERO,
    );
    assert_eq!(counts(&bench.all()), [1, 2]);
}

#[test]
fn kinds_are_counted_apart() {
    let bench = Bench::new();
    let kinds = [
        (TARGET, "scout", Cause::BudgetEmpty, 5),
        (TARGET, "scout", Cause::Concurrency, 4),
        (TARGET, "miner", Cause::BudgetEmpty, 3),
        ("https://a.test#search", "scout", Cause::BudgetEmpty, 2),
        ("https://b.test", "scout", Cause::BudgetEmpty, 1),
    ];
    for (target, agent, cause, times) in kinds {
        for _ in 0..times {
            bench
                .log()
                .defer(deferred(target, agent, cause, bench.now()));
        }
    }
    bench.log().close().wait_blocking().unwrap();
    let mut sums: HashMap<(String, String, Cause), u64> = HashMap::new();
    for found in bench.all() {
        if let Event::Deferred(Deferred {
            target,
            step,
            cause,
            count,
            ..
        }) = found.event
        {
            *sums
                .entry((target.to_string(), step.agent.to_string(), cause))
                .or_default() += count;
        }
    }
    assert_eq!(sums.len(), kinds.len());
    for (target, agent, cause, times) in kinds {
        assert_eq!(sums[&(target.to_owned(), agent.to_owned(), cause)], times);
    }
}

#[test]
fn more_kinds_than_are_held_are_written_out_early() {
    let kinds = MOST_KINDS as u64;
    let mut counts = Counts::default();
    assert!(counts.due(START).is_empty());
    for n in 0..kinds {
        let agent = format!("agent-{n}");
        for nth in 0..2 {
            let first = counts.defer(deferred(TARGET, &agent, Cause::Held, START));
            assert_eq!(first.is_some(), nth == 0);
        }
    }
    assert_eq!(counts.due(START).len(), MOST_KINDS);
    assert!(counts.flush().is_empty());
    assert!(
        counts
            .defer(deferred(TARGET, "agent-1", Cause::Held, START))
            .is_some()
    );
}
