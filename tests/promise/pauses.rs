//! What a target's own word does, with a clock moved by hand.
#![cfg(test)]

use std::time::Duration;

use tidegate::admission::{Chosen, Ending, Operator, Permit, Word};
use tidegate::audit::Event;
use tidegate::budget::Cause;
use tidegate::outcome::End;

use super::house::{House, SECOND, book, rate, rule, sent};

const URL: &str = "http://a.test/";

fn house() -> House {
    House::of(book(vec![rule("http://a.test", &[rate("10/s", 20)])]))
}

/// The call leaves and is told: not now.
fn refused(mut permit: Permit, seconds: Option<u64>) {
    permit.dial().unwrap().mark();
    let asked = seconds.map(Duration::from_secs);
    permit.hear(Word::NotNow(asked, "429".into()));
    drop(
        permit
            .settle(Ending {
                status: Some(429),
                ..Ending::of(End::Throttled)
            })
            .commit(),
    );
}

#[test]
fn five_agents_told_seven_seconds_come_back_one_by_one() {
    let house = house();
    let calls: Vec<Permit> = (0..5).map(|_| house.grant(URL)).collect();
    let told = house.now();
    calls.into_iter().for_each(|call| refused(call, Some(7)));
    let deferral = house.defer(URL);
    assert_eq!(
        (deferral.cause, deferral.ready),
        (Cause::Paused, Some(told.after(7 * SECOND)))
    );
    house.clock.advance(7 * SECOND - Duration::from_nanos(1));
    house.defer(URL);
    house.clock.advance(Duration::from_nanos(1));
    let probe = house.grant(URL);
    assert!(probe.is_probe());
    for _ in 0..10 {
        house.clock.advance(Duration::from_millis(10));
        assert_eq!(
            house.defer(URL).cause,
            Cause::Paused,
            "one probe, nothing else before its head"
        );
    }
    let mut probe = probe;
    probe.dial().unwrap().mark();
    probe.hear(Word::Open);
    drop(probe.settle(Ending::of(End::Answered)).commit());
    // From an empty bucket at the envelope's rate: never a herd.
    let mut went = 0;
    for _ in 0..100 {
        went += house.send_all(URL);
        house.clock.advance(Duration::from_millis(10));
    }
    assert!((8..=10).contains(&went), "{went} in the first second");
}

#[test]
fn eight_refusals_in_flight_together_are_one_step_of_backoff() {
    let house = house();
    let calls: Vec<Permit> = (0..8).map(|_| house.grant(URL)).collect();
    calls.into_iter().for_each(|call| refused(call, None));
    let wait = house.defer(URL).ready.unwrap().since(house.now());
    assert!(wait <= SECOND, "{wait:?}");
    house.clock.advance(wait);
    refused(house.grant(URL), None);
    let wait = house.defer(URL).ready.unwrap().since(house.now());
    assert!(
        wait > Duration::from_millis(900) && wait <= 2 * SECOND,
        "the second step: {wait:?}"
    );
}

#[test]
fn an_hour_asked_for_is_an_hour_whatever_our_own_cap_and_survives_a_kill() {
    let rules = || book(vec![rule("http://a.test", &[rate("10/s", 20)])]);
    let mut house = house();
    refused(house.grant(URL), Some(3600));
    house.gate.store().settle().unwrap();
    house.kill(vec![], rules());
    house.clock.advance(Duration::from_secs(3599));
    let deferral = house.defer(URL);
    assert_eq!(deferral.cause, Cause::Paused);
    let listed = house.gate.levels(&house.lane(URL));
    let pause = listed.iter().find_map(|level| level.pause.clone()).unwrap();
    assert_eq!(
        (&*pause.reason, pause.until),
        ("429", deferral.ready.unwrap())
    );
    house.clock.advance(SECOND);
    assert!(house.grant(URL).is_probe());
}

#[test]
fn a_later_shorter_refusal_and_a_success_in_flight_change_no_pause() {
    let house = house();
    let (first, second, third) = (house.grant(URL), house.grant(URL), house.grant(URL));
    refused(first, Some(60));
    let until = house.defer(URL).ready;
    refused(second, Some(1));
    sent(third);
    assert_eq!(house.defer(URL).ready, until);
}

#[test]
fn a_call_granted_before_a_pause_is_called_off_and_a_probe_is_not() {
    let house = house();
    let (first, waiting) = (house.grant(URL), house.grant(URL));
    assert!(!waiting.is_called_off());
    refused(first, Some(5));
    assert!(waiting.is_called_off());
    drop(waiting.abandon("paused"));
    house.clock.advance(5 * SECOND);
    assert!(!house.grant(URL).is_called_off());
}

#[test]
fn a_deferral_of_an_hour_is_an_answer_at_once_with_a_place_in_line() {
    let house = house();
    refused(house.grant(URL), Some(3600));
    let deferral = house.defer(URL);
    assert_eq!(deferral.retry_after(), Some(3600 * SECOND));
}

#[test]
fn an_operators_hold_ends_when_it_says_or_when_it_is_lifted() {
    let house = house();
    let target = || Chosen::Target("http://a.test".parse().unwrap());
    let ana = || Operator {
        by: "ana".into(),
        note: "their operator called".into(),
    };
    let end = house.now().after(60 * SECOND);
    assert!(house.gate.hold(&target(), Some(end), ana()).unwrap());
    assert_eq!(
        (house.defer(URL).cause, house.defer(URL).ready),
        (Cause::Held, Some(end))
    );
    house.clock.advance_to(end);
    assert!(house.send(URL));
    assert!(house.gate.hold(&target(), None, ana()).unwrap());
    assert_eq!(house.defer(URL).ready, None);
    assert!(!house.gate.release(&target(), ana()).unwrap().is_empty());
    assert!(house.send(URL));
    let by_hand = |event: &Event| matches!(event, Event::Held { .. } | Event::Released { .. });
    assert_eq!(
        house.record().iter().filter(|event| by_hand(event)).count(),
        3
    );
}
