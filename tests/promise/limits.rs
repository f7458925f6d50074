//! Limits, one named case each, with a clock moved by hand.
#![cfg(test)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::admission::Verdict;
use tidegate::audit::Event;
use tidegate::budget::{Limit, Never, Reset, Revision};
use tidegate::clock::Moment;
use tidegate::outcome::End;
use tidegate::step::Step;

use super::house::{House, SECOND, book, max, rate, rule, sent};

const URL: &str = "http://a.test/";

fn quota(frequency: &str) -> Limit {
    Limit::quota(frequency.parse().unwrap(), Reset::Utc)
}

/// Full demand for `span`: the instants at which calls left.
fn demand(house: &House, url: &str, span: Duration) -> Vec<Moment> {
    let end = house.now().after(span);
    let mut left = Vec::new();
    while house.now() < end {
        match house.ask(url) {
            Verdict::Granted(permit) => {
                left.push(house.now());
                sent(permit);
            }
            Verdict::Deferred(deferral) => house.clock.advance_to(deferral.ready.unwrap()),
            Verdict::Refused(refusal) => panic!("{refusal}"),
        }
    }
    left
}

fn worst_window(times: &[Moment], window: Duration) -> usize {
    let within = |from: &Moment| {
        times
            .iter()
            .filter(|at| *at >= from && at.since(*from) < window)
            .count()
    };
    times.iter().map(within).max().unwrap_or(0)
}

#[test]
fn twelve_jobs_of_two_calls_over_several_paths_start_at_most_three_a_second() {
    let house = House::of(book(vec![rule("a.test", &[max("3/s", 3)])]));
    let mut left = Vec::new();
    while left.len() < 24 {
        let url = format!("http://a.test/path{}", left.len() % 5);
        match house.ask(&url) {
            Verdict::Granted(permit) => {
                left.push(house.now());
                sent(permit);
            }
            Verdict::Deferred(deferral) => house.clock.advance_to(deferral.ready.unwrap()),
            Verdict::Refused(refusal) => panic!("{refusal}"),
        }
    }
    assert_eq!(worst_window(&left, SECOND), 3);
}

#[test]
fn a_full_burst_spent_and_the_gate_killed_ten_times_is_one_burst() {
    let rules = || book(vec![rule("a.test", &[rate("1/min", 5)])]);
    let mut house = House::of(rules());
    let mut sent = 0;
    for _ in 0..10 {
        sent += house.send_all(URL);
        let under_way = vec![];
        house.kill(under_way, rules());
        house.clock.advance(Duration::from_millis(20));
    }
    assert!((4..=5).contains(&sent), "{sent} at once in 200 ms");
}

#[test]
fn a_call_under_way_when_the_gate_is_killed_counts_as_sent() {
    let rules = || book(vec![rule("a.test", &[rate("1/min", 1)])]);
    let mut house = House::of(rules());
    let mut permit = house.grant(URL);
    permit.dial().unwrap().mark();
    house.gate.store().settle().unwrap();
    house.kill(vec![permit], rules());
    assert!(house.defer(URL).ready.unwrap().since(house.now()) >= Duration::from_secs(59));
    let interrupted = |event: &Event| matches!(event, Event::Call(call) if call.settlement.end == End::Interrupted);
    assert_eq!(
        house
            .record()
            .iter()
            .filter(|event| interrupted(event))
            .count(),
        1
    );
}

#[test]
fn steps_of_the_wall_clock_change_no_budget_and_are_on_record() {
    let house = House::of(book(vec![rule("a.test", &[rate("1/s", 3)])]));
    let first = house.send_all(URL);
    for seconds in [-100_i64, 3_600, -31_536_000] {
        house.clock.step_wall(seconds * 1_000_000_000);
        // As the schedule does every few seconds.
        house.gate.sweep(Duration::MAX);
        assert_eq!(house.send_all(URL), 0, "after {seconds} s");
        let wait = house.defer(URL).ready.unwrap().since(house.now());
        assert!(wait <= 3 * SECOND + Duration::from_millis(25));
    }
    assert!((2..=3).contains(&first));
    let steps = house
        .record()
        .iter()
        .filter(|event| matches!(event, Event::ClockStepped { .. }))
        .count();
    assert_eq!(steps, 3);
}

#[test]
fn another_rate_keeps_what_was_spent_and_its_calls_name_another_revision() {
    let house = House::of(book(vec![rule("a.test", &[rate("100/s", 100)])]));
    (0..30).for_each(|_| assert!(house.send(URL)));
    house
        .gate
        .adopt(book(vec![rule("a.test", &[rate("50/s", 50)])]))
        .unwrap();
    let left = house.send_all(URL);
    assert!(
        (15..=18).contains(&left),
        "50 less 30, less what a margin brings at either rate: {left}"
    );
    let revisions: Vec<Revision> = house
        .record()
        .into_iter()
        .filter_map(|event| match event {
            Event::Call(call) => Some(call.intent.revision),
            _ => None,
        })
        .collect();
    let count = |number| {
        revisions
            .iter()
            .filter(|revision| revision.0 == number)
            .count()
    };
    assert_eq!((count(1), count(2)), (30, left));
}

#[test]
fn a_call_refused_by_one_limit_takes_nothing_from_the_other() {
    let house = House::of(book(vec![rule(
        "a.test",
        &[rate("10/s", 10), quota("3/day")],
    )]));
    assert_eq!(house.send_all(URL), 3);
    let before = house.gate.levels(&house.lane(URL));
    for _ in 0..100 {
        house.defer(URL);
    }
    let left = |levels: &[tidegate::budget::Level]| -> Vec<u64> {
        levels
            .iter()
            .flat_map(|level| level.limits.iter().map(|limit| limit.left))
            .collect()
    };
    let after = house.gate.levels(&house.lane(URL));
    assert_eq!(left(&before), left(&after));
}

#[test]
fn a_hundred_thousand_hosts_called_once_are_forgotten_but_for_what_matters() {
    const HOSTS: u32 = 100_000;
    let house = House::of(book(vec![rule("held.test", &[rate("1/s", 1)])]));
    for host in 0..HOSTS {
        assert!(house.send(&format!("http://h{host}.example{host}.org/")));
    }
    let debt = house.grant("http://debt.example.net/");
    let chosen = tidegate::admission::Chosen::Target("http://held.test".parse().unwrap());
    let operator = tidegate::admission::Operator {
        by: "ana".into(),
        note: "test".into(),
    };
    assert!(house.gate.hold(&chosen, None, operator).unwrap());
    house.clock.advance(Duration::from_secs(120));
    let left = house.gate.sweep(Duration::from_secs(60));
    assert!(left <= 8, "{left} buckets are left");
    house.gate.store().settle().unwrap();
    // What was spent is forgotten; that a host has answered once is kept.
    let kept = house
        .gate
        .store()
        .scan_bytes(tidegate::store::Space::Bucket, ..);
    let groups = kept
        .filter(|entry| entry.as_ref().unwrap().0.starts_with(b"group"))
        .count();
    assert!(groups <= 8, "{groups} spent budgets are on disk");
    house.defer("http://debt.example.net/");
    house.defer("http://held.test/");
    drop(debt);
}

#[test]
fn a_cost_above_the_burst_is_never_and_not_later() {
    let house = House::of(book(vec![rule("a.test", &[rate("10/s", 5)])]));
    for cost in [6, 213_505, u32::MAX] {
        match house.ask_for(URL, cost) {
            Verdict::Refused(refusal) => assert_eq!(refusal.reason, Never::CostTooLarge),
            other => panic!("{cost}: {other:?}"),
        }
    }
    assert!(matches!(house.ask_for(URL, 5), Verdict::Granted(_)));
}

#[test]
fn what_is_called_off_before_it_leaves_comes_back_and_the_record_says_so() {
    let house = House::of(book(vec![rule("a.test", &[rate("1/min", 1)])]));
    for _ in 0..5 {
        drop(house.grant(URL).abandon("called off").commit());
    }
    let ended: Vec<End> = house
        .record()
        .iter()
        .filter_map(|event| match event {
            Event::Call(call) => Some(call.settlement.end),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [End::Abandoned; 5]);
    assert!(house.send(URL));
}

#[test]
fn what_is_left_is_what_is_granted_even_to_many_threads_at_once() {
    let house = House::of(book(vec![rule(
        "a.test",
        &[rate("1/day", 40), max("30/day", 30)],
    )]));
    let lane = house.lane(URL);
    let left = || -> u64 {
        let levels = house.gate.levels(&lane);
        levels
            .iter()
            .flat_map(|level| level.limits.iter().map(|limit| limit.left))
            .min()
            .unwrap()
    };
    let said = left();
    let granted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    left();
                    if house.send(URL) {
                        granted.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(said, granted.into_inner() as u64);
    assert!((29..=30).contains(&said), "{said}");
    assert_eq!(left(), 0);
}

#[test]
fn a_cap_of_thirty_a_minute_is_kept_in_any_minute_and_used() {
    let house = House::of(book(vec![rule("a.test", &[max("30/min", 5)])]));
    let left = demand(&house, URL, Duration::from_secs(600));
    assert!(worst_window(&left, Duration::from_secs(60)) <= 30);
    assert!(left.len() >= 260, "{} in ten minutes", left.len());
}

#[test]
fn a_daily_quota_holds_over_restarts_and_starts_anew_at_midnight() {
    let rules = || book(vec![rule("a.test", &[quota("1000/day")])]);
    let mut house = House::of(rules());
    assert_eq!(house.send_all(URL), 1000);
    for _ in 0..3 {
        house.kill(vec![], rules());
        house.clock.advance(Duration::from_secs(3600));
        assert_eq!(house.send_all(URL), 0);
    }
    let midnight = house.defer(URL).ready.unwrap();
    assert_eq!(midnight.as_nanos() % 86_400_000_000_000, 0);
    house.clock.advance_to(midnight);
    assert_eq!(house.send_all(URL), 1000);
}

#[test]
fn ten_thousand_subdomains_two_schemes_and_three_ports_are_one_neighbour() {
    let house = House::of(book(vec![]));
    let mut sent = 0;
    for host in 0..10_000 {
        let url = match host % 4 {
            0 => format!("http://h{host}.neighbour.org/"),
            1 => format!("https://h{host}.neighbour.org/"),
            2 => format!("http://h{host}.neighbour.org:8080/"),
            _ => format!("https://h{host}.neighbour.org:8443/"),
        };
        sent += usize::from(house.send(&url));
    }
    assert_eq!(sent, 1);
}

#[test]
fn a_call_without_an_agent_is_unattributed_on_record() {
    let house = House::of(book(vec![]));
    let nobody = Step::default();
    let ask = tidegate::admission::Ask::new("GET", "/", &nobody);
    let verdict = house
        .gate
        .admit(&house.lane(URL), &ask, tidegate::budget::Line::Watch)
        .unwrap();
    let Verdict::Granted(permit) = verdict else {
        panic!("{verdict:?}")
    };
    sent(permit);
    let agents: Vec<_> = house
        .record()
        .into_iter()
        .filter_map(|event| match event {
            Event::Call(call) => Some(call.intent.step.agent),
            _ => None,
        })
        .collect();
    assert_eq!(agents, ["unattributed".into()]);
}

#[test]
fn calls_under_way_at_a_kill_count_in_a_pool_that_is_new() {
    let host = || rule("a.test", &[rate("100/s", 100)]);
    let mut house = House::of(book(vec![host()]));
    let under_way = vec![house.grant(URL), house.grant(URL)];
    let mut pooled = host();
    pooled.pool = Some("p".into());
    let pool = tidegate::budget::PoolRule {
        name: "p".into(),
        limits: vec![rate("1/h", 3)],
        arrival_margin: Duration::ZERO,
        provenance: Default::default(),
    };
    let rules = tidegate::budget::Rulebook::new(Default::default(), vec![pooled], vec![pool]);
    house.kill(under_way, rules.unwrap());
    assert_eq!(house.send_all(URL), 1, "of three, two may have arrived");
}
