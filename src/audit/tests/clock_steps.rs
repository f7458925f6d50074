use std::time::Duration;

use super::bench::*;
use crate::audit::*;
use crate::clock::nanos;
use crate::outcome::End;

const YEAR: Duration = Duration::from_hours(365 * 24);

fn signed(span: Duration) -> i64 {
    i64::try_from(nanos(span)).unwrap()
}

fn shown(found: &Recorded, field: &str) -> String {
    event_json(found)[field].as_str().unwrap().to_owned()
}

#[test]
fn a_step_of_the_wall_clock_is_an_event_and_times_stay_right_on_both_sides() {
    for (by, after) in [
        (signed(HOUR), "2025-12-01T13:00:02.000Z"),
        (-signed(YEAR), "2024-12-01T12:00:02.000Z"),
    ] {
        let mut bench = Bench::new();
        let target = "https://a.test";
        let before = bench.call(intent(target, "scout", bench.now()), Duration::from_secs(1));
        bench.clock.step_wall(by);
        let next = bench.call(intent(target, "scout", bench.now()), Duration::from_secs(1));
        for _ in 0..2 {
            let all = bench.all();
            let [first, step, second] = &all[..] else {
                panic!("{all:#?}")
            };
            assert_eq!(
                step.event,
                Event::ClockStepped {
                    nanos: by,
                    at: START.after(Duration::from_secs(1))
                }
            );
            assert_eq!((first.number, second.number), (before, next));
            assert_eq!(shown(first, "decided_at"), "2025-12-01T12:00:00.000Z");
            assert_eq!(shown(first, "ended_at"), "2025-12-01T12:00:01.000Z");
            assert_eq!(shown(second, "ended_at"), after);
            bench.restart();
        }
        bench.log().close().wait_blocking().unwrap();
        let closed = bench.all().pop().unwrap();
        assert_eq!(shown(&closed, "at"), after);
        assert_eq!(bench.all().len(), 4, "the step is noticed once");
        bench.assert_chained();
    }
}

#[test]
fn a_call_that_a_step_falls_into_keeps_both_of_its_times() {
    let mut bench = Bench::new();
    let quiet = bench.call(intent("https://a.test", "scout", bench.now()), MINUTE);
    let around = intent("https://a.test", "scout", bench.now());
    let (number, durable) = bench.log().begin(around.clone());
    durable.detach();
    bench.clock.step_wall(signed(HOUR));
    bench.clock.advance(MINUTE);
    // Granted after the step, though nothing has noticed it yet.
    let (later, durable) = bench
        .log()
        .begin(intent("https://a.test", "scout", bench.now()));
    durable.detach();
    bench.clock.advance(MINUTE);
    let at = bench.now();
    bench
        .log()
        .finish(number, ended(around, at, End::Answered), |_| {})
        .detach();
    let intent = intent("https://a.test", "scout", START.after(2 * MINUTE));
    bench
        .log()
        .finish(later, ended(intent, at, End::Answered), |_| {})
        .detach();
    for _ in 0..2 {
        let all = bench.all();
        let by_number = |number| all.iter().find(|found| found.number == number).unwrap();
        for (number, decided, ended) in [
            (
                quiet,
                "2025-12-01T12:00:00.000Z",
                "2025-12-01T12:01:00.000Z",
            ),
            (
                number,
                "2025-12-01T12:01:00.000Z",
                "2025-12-01T13:03:00.000Z",
            ),
            (
                later,
                "2025-12-01T13:02:00.000Z",
                "2025-12-01T13:03:00.000Z",
            ),
        ] {
            assert_eq!(shown(by_number(number), "decided_at"), decided);
            assert_eq!(shown(by_number(number), "ended_at"), ended);
        }
        bench.log().close().wait_blocking().unwrap();
        bench.restart();
    }
}

#[test]
fn a_call_whose_gate_died_before_the_machine_was_off_keeps_the_time_of_its_grant() {
    let mut bench = Bench::new();
    let (number, durable) = bench
        .log()
        .begin(intent("https://a.test", "scout", bench.now()));
    durable.wait_blocking().unwrap();
    // Decision time stood still while the machine was off; the wall clock did not.
    bench.clock.step_wall(signed(8 * HOUR));
    let interrupted = bench.restart().remove(0);
    bench.clock.advance(MINUTE);
    bench
        .log()
        .interrupt(interrupted, bench.now(), |_| {})
        .detach();
    bench.log().close().wait_blocking().unwrap();
    let all = bench.all();
    let call = all.iter().find(|found| found.number == number).unwrap();
    assert_eq!(shown(call, "decided_at"), "2025-12-01T12:00:00.000Z");
    assert_eq!(shown(call, "ended_at"), "2025-12-01T20:01:00.000Z");
    assert_eq!(
        decision_json(call).unwrap()["at"],
        "2025-12-01T12:00:00.000Z"
    );
}

#[test]
fn drift_below_half_a_second_is_no_step() {
    let bench = Bench::new();
    for by in [400_000_000, -800_000_000, 400_000_000] {
        bench.clock.step_wall(by);
        bench.call(intent("https://a.test", "scout", bench.now()), MINUTE);
    }
    assert_eq!(bench.all().len(), 3);
}

#[test]
fn what_is_in_no_segment_yet_has_the_offset_of_its_own_time() {
    let mut bench = Bench::new();
    bench.clock.step_wall(signed(HOUR));
    bench.restart();
    bench.call(intent("https://a.test", "scout", bench.now()), MINUTE);
    bench.flush();
    // Seen by another process before anybody has noticed it here.
    bench.clock.step_wall(signed(YEAR));
    let all = bench.all();
    assert_eq!(shown(&all[0], "ended_at"), "2025-12-01T13:01:00.000Z");
}

#[test]
fn a_step_is_noticed_while_nothing_is_appended() {
    let bench = Bench::new();
    bench.clock.step_wall(signed(HOUR));
    bench.log().turn();
    bench.log().turn();
    let all = bench.all();
    assert_eq!(all.len(), 1);
    assert_eq!(event_json(&all[0])["by_ms"], 3_600_000);
}
