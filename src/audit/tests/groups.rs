use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::bench::*;
use super::views::envelope_of_github;
use crate::audit::*;
use crate::budget::{Cause, Revision};
use crate::clock::Moment;
use crate::outcome::End;
use crate::store::{Space, numbered};

fn at(seconds: u64) -> Moment {
    START.after(Duration::from_secs(seconds))
}

fn call(target: &str, seconds: u64, end: End) -> Call {
    ended(intent(target, "scout", at(seconds)), at(seconds + 1), end)
}

fn windows(width: Duration, events: impl IntoIterator<Item = Event>) -> Windows {
    let mut windows = Windows::new(width);
    events
        .into_iter()
        .for_each(|event| windows.add(&found(event)));
    windows
}

#[test]
fn each_end_of_a_call_is_counted_for_what_it_is() {
    for (end, calls, throttled, failed, abandoned, tokens) in [
        (End::Answered, 1, 0, 0, 0, 3),
        (End::Throttled, 1, 1, 0, 0, 3),
        (End::Partial, 1, 0, 1, 0, 3),
        (End::Unanswered, 1, 0, 1, 0, 3),
        (End::Interrupted, 1, 0, 1, 0, 3),
        (End::NotSent, 0, 0, 1, 0, 3),
        (End::Abandoned, 0, 0, 0, 1, 0),
    ] {
        let mut call = call("https://a.test", 0, end);
        call.intent.cost = 3;
        let windows = windows(MINUTE, [Event::Call(call)]);
        let (start, target, row) = windows.iter().next().unwrap();
        assert_eq!((start, target), (START, "https://a.test"));
        let counted = (
            row.calls,
            row.throttled,
            row.failed,
            row.abandoned,
            row.tokens,
        );
        assert_eq!(
            counted,
            (calls, throttled, failed, abandoned, tokens),
            "{end}"
        );
        assert_eq!(row.bytes, 100);
    }
}

#[test]
fn a_call_counts_in_the_window_of_its_departure() {
    let mut waited = call("https://a.test", 59, End::Answered);
    waited.settlement.departed = Some(at(60));
    waited.settlement.ended = at(300);
    let given_back = call("https://a.test", 59, End::Abandoned);
    let windows = windows(MINUTE, [Event::Call(waited), Event::Call(given_back)]);
    let rows: Vec<_> = windows
        .iter()
        .map(|(start, _, row)| (start, row.calls, row.abandoned))
        .collect();
    assert_eq!(rows, [(at(0), 0, 1), (at(60), 1, 0)]);
}

#[test]
fn windows_are_listed_by_start_and_target_with_the_limits_of_then() {
    let bench = Bench::new();
    let envelope = envelope_of_github();
    bench.change(|changes| changes.put(Space::Envelope, &numbered(2), &envelope));
    let mut under_other = call("https://a.test", 5, End::Answered);
    under_other.intent.revision = Revision(2);
    let held_back = Deferred {
        count: 40,
        ..deferred("https://a.test", "scout", Cause::Held, at(7))
    };
    let windows = windows(
        MINUTE,
        [
            Event::Call(call("https://b.test", 61, End::Answered)),
            Event::Call(call("https://b.test", 1, End::Answered)),
            Event::Call(under_other),
            Event::Deferred(held_back),
            Event::Refused(refused("", "scout", at(8))),
            Event::Closed { gate: 1, at: at(9) },
        ],
    );
    let rows = windows.rows(bench.store()).unwrap();
    let heads: Vec<_> = rows
        .iter()
        .map(|row| (row["start"].clone(), row["target"].clone()))
        .collect();
    let noon = json!("2025-12-01T12:00:00.000Z");
    let later = json!("2025-12-01T12:01:00.000Z");
    assert_eq!(
        heads,
        [
            (noon.clone(), json!("")),
            (noon.clone(), json!("https://a.test")),
            (noon.clone(), json!("https://b.test")),
            (later.clone(), json!("https://b.test")),
        ]
    );
    assert_eq!(
        rows[1],
        json!({
            "start": noon, "end": later, "target": "https://a.test", "calls": 1, "throttled": 0,
            "failed": 0, "abandoned": 0, "deferrals": 40, "refusals": 0, "bytes": 100, "tokens": 1,
            "envelopes": [
                {"envelope_revision": 1, "limits": []},
                {"envelope_revision": 2, "limits": limits_in_words(&envelope)},
            ],
        })
    );
    assert_eq!(
        (&rows[0]["refusals"], &rows[0]["envelopes"]),
        (&json!(1), &json!([]))
    );
}

#[test]
fn windows_begin_on_the_wall_clock_and_a_step_of_it_folds_none_into_another() {
    let by = 40_500_000_000;
    let recorded = |seconds, offset| Recorded {
        wall_offset: offset,
        begun_offset: offset,
        ..found(Event::Call(call("https://a.test", seconds, End::Answered)))
    };
    let mut windows = Windows::new(MINUTE);
    windows.add(&recorded(0, by));
    windows.add(&recorded(19, by));
    windows.add(&recorded(20, by));
    // An hour back: the same minute on the wall, another one in truth.
    windows.add(&recorded(3600, by - 3_600_000_000_000));
    let bench = Bench::new();
    let rows = windows.rows(bench.store()).unwrap();
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (row["start"].as_str().unwrap(), &row["calls"]))
        .collect();
    assert_eq!(
        shown,
        [
            ("2025-12-01T12:00:00.000Z", &json!(2)),
            ("2025-12-01T12:01:00.000Z", &json!(1)),
            ("2025-12-01T12:00:00.000Z", &json!(1)),
        ]
    );
}

#[test]
fn windows_of_any_width_hold_every_call_once() {
    for width in [Duration::ZERO, Duration::from_secs(7), HOUR, Duration::MAX] {
        let calls = (0..100).map(|n| Event::Call(call("https://a.test", n, End::Answered)));
        let windows = windows(width, calls);
        assert_eq!(
            windows.iter().map(|(_, _, row)| row.calls).sum::<u64>(),
            100
        );
        let bench = Bench::new();
        assert_eq!(
            windows.rows(bench.store()).unwrap().len(),
            windows.iter().count()
        );
    }
}

fn by(by: By, events: &[Event]) -> Who {
    let mut who = Who::new(by);
    events
        .iter()
        .for_each(|event| who.add(&found(event.clone())));
    who
}

fn caused(call: Call, [agent, trajectory, step, goal]: [&str; 4]) -> Event {
    let step = crate::step::Step::new(agent, trajectory, step, goal);
    Event::Call(Call {
        intent: Intent {
            step,
            ..call.intent
        },
        ..call
    })
}

#[test]
fn calls_are_grouped_at_every_level() {
    let events = [
        caused(
            call("https://a.test", 0, End::Answered),
            ["scout", "run-1", "1", "map"],
        ),
        caused(
            call("https://a.test", 1, End::Answered),
            ["scout", "run-1", "2", "map"],
        ),
        caused(
            call("https://a.test", 2, End::Answered),
            ["scout", "run-2", "1", "map"],
        ),
        caused(
            call("https://b.test", 3, End::Answered),
            ["miner", "run-1", "1", "map"],
        ),
        caused(
            call("https://b.test#x", 4, End::Answered),
            ["miner", "run-1", "1", "dig"],
        ),
    ];
    let named = |level| -> Vec<(String, u64)> {
        let who = by(level, &events);
        let groups = who.groups();
        groups
            .iter()
            .map(|(names, group)| (names.join("/"), group.calls))
            .collect()
    };
    let is = |level, expected: &[(&str, u64)]| {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect();
        assert_eq!(named(level), expected);
    };
    is(By::Agent, &[("scout", 3), ("miner", 2)]);
    is(
        By::Trajectory,
        &[("miner/run-1", 2), ("scout/run-1", 2), ("scout/run-2", 1)],
    );
    is(
        By::Step,
        &[
            ("miner/run-1/1", 2),
            ("scout/run-1/1", 1),
            ("scout/run-1/2", 1),
            ("scout/run-2/1", 1),
        ],
    );
    is(By::Goal, &[("map", 4), ("dig", 1)]);
    is(
        By::Target,
        &[
            ("https://a.test", 3),
            ("https://b.test", 1),
            ("https://b.test#x", 1),
        ],
    );
    let row = by(By::Step, &events).rows().remove(0);
    assert_eq!(
        (&row["agent"], &row["trajectory"], &row["step"]),
        (&json!("miner"), &json!("run-1"), &json!("1"))
    );
    assert_eq!(
        by(By::Target, &events).rows()[0]["target"],
        "https://a.test"
    );
    assert_eq!(by(By::Goal, &events).rows()[0]["goal"], "map");
}

#[test]
fn what_an_agent_did_is_told_in_one_row() {
    let again = |attempt, hop, seconds| {
        let mut call = call("https://a.test", seconds, End::Answered);
        (call.intent.attempt, call.intent.hop) = (attempt, hop);
        Event::Call(call)
    };
    let mut other_method = call("https://a.test", 4, End::Throttled);
    other_method.intent.method = "HEAD".into();
    let events = [
        again(1, 0, 0),
        again(2, 0, 1),
        again(3, 0, 2),
        again(1, 1, 3),
        Event::Call(other_method),
        again(1, 0, 5),
        again(1, 0, 6),
        Event::Call(call("https://b.test", 7, End::Abandoned)),
        Event::Deferred(Deferred {
            count: 30,
            ..deferred("https://c.test", "scout", Cause::Held, at(8))
        }),
        Event::Refused(Refused {
            count: 2,
            ..refused("http://10.0.0.1", "scout", at(9))
        }),
        Event::Closed {
            gate: 1,
            at: at(10),
        },
    ];
    assert_eq!(
        by(By::Agent, &events).rows(),
        [json!({
            "agent": "scout", "calls": 7, "throttled": 1, "deferrals": 30, "refusals": 2, "bytes": 700,
            "retries": 2, "attempts_per_call": 1.5, "redirects": 1, "repeats": 2, "targets": 3,
            "capped": false, "first": "2025-12-01T12:00:00.000Z", "last": "2025-12-01T12:00:09.000Z",
        })]
    );
}

#[test]
fn the_greatest_pressure_comes_first_and_deferrals_are_pressure() {
    let mut events = vec![
        Event::Deferred(Deferred {
            count: 9,
            ..deferred("https://a.test", "eager", Cause::Held, at(0))
        }),
        Event::Refused(Refused {
            count: 99,
            ..refused("", "blocked", at(0))
        }),
    ];
    events.extend((0..5).map(|n| Event::Call(call("https://a.test", n, End::Answered))));
    let who = by(By::Agent, &events);
    let order: Vec<_> = who
        .groups()
        .into_iter()
        .map(|(names, group)| (&*names[0], group.pressure()))
        .collect();
    assert_eq!(order, [("eager", 9), ("scout", 5), ("blocked", 0)]);
    assert_eq!(who.rows()[2]["attempts_per_call"], Value::Null);
}

#[test]
fn what_cannot_be_remembered_is_said_to_be_a_lower_bound() {
    let mut who = Who::remembering(By::Agent, 10);
    let path = |n: u64| {
        let mut call = call("https://a.test", n, End::Answered);
        call.intent.path = format!("/items/{n}").into();
        found(Event::Call(call))
    };
    (0..10).chain(0..10).for_each(|n| who.add(&path(n)));
    let row = who.rows().remove(0);
    assert_eq!(
        (&row["repeats"], &row["capped"]),
        (&json!(10), &json!(false))
    );
    (20..30)
        .chain(20..30)
        .chain(0..10)
        .for_each(|n| who.add(&path(n)));
    let row = who.rows().remove(0);
    assert_eq!(
        (&row["repeats"], &row["capped"]),
        (&json!(20), &json!(true))
    );
    assert_eq!(row["calls"], 50);
    let names: Vec<Arc<str>> = vec!["scout".into()];
    assert_eq!(who.groups()[0].1.counted, Counted::AtLeast);
    assert_eq!(who.groups()[0].0, names);
}

#[test]
fn windows_of_a_time_hold_nothing_that_counts_outside_of_it() {
    let filter = Filter {
        from: Some(at(60)),
        to: Some(at(120)),
        ..Filter::default()
    };
    let mut windows = Windows::new(MINUTE).within(&filter);
    for seconds in [59, 60, 118, 119, 120] {
        let event = Event::Call(call("https://a.test", seconds, End::Abandoned));
        windows.add(&found(event));
    }
    let late = deferred("https://a.test", "scout", Cause::Held, at(121));
    windows.add(&found(Event::Deferred(late)));
    let rows: Vec<_> = windows
        .iter()
        .map(|(start, _, row)| (start, row.abandoned))
        .collect();
    assert_eq!(rows, [(at(60), 3)]);
}
