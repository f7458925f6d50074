use std::time::Duration;

use super::bench::*;
use crate::audit::*;
use crate::budget::{Because, Cause, Hold, Pause};
use crate::clock::Moment;
use crate::step::Step;

fn pause(scope: &str, agent: &str, at: Moment) -> Event {
    let pause = Pause {
        until: at.after(MINUTE),
        because: Because::Throttled,
        reason: "429".into(),
        step: Step::new(agent, "run-1", "", ""),
        since: at,
        streak: 1,
        probing: false,
    };
    Event::Paused {
        scope: scope.parse().unwrap(),
        pause,
        at,
    }
}

fn held(scope: &str, at: Moment) -> Event {
    let hold = Hold {
        until: None,
        by: "ops".into(),
        note: "".into(),
        since: at,
    };
    Event::Held {
        scope: scope.parse().unwrap(),
        hold,
        at,
    }
}

fn call(target: &str, agent: &str) -> Event {
    let done = ended(
        intent(target, agent, START),
        START,
        crate::outcome::End::Answered,
    );
    Event::Call(done)
}

fn target(text: &str) -> Filter {
    Filter {
        target: Some(text.parse().unwrap()),
        ..Filter::default()
    }
}

fn site(text: &str) -> Filter {
    Filter {
        site: Some(text.to_owned()),
        ..Filter::default()
    }
}

fn agent(text: &str) -> Filter {
    Filter {
        agent: Some(text.to_owned()),
        ..Filter::default()
    }
}

fn trajectory(text: &str) -> Filter {
    Filter {
        trajectory: Some(text.to_owned()),
        ..Filter::default()
    }
}

#[test]
fn what_is_asked_for_and_nothing_else_matches() {
    let api = "https://api.example.org";
    let search = "https://api.example.org#search";
    let closed = || Event::Closed { gate: 1, at: START };
    let deferral = || Event::Deferred(deferred(search, "scout", Cause::Held, START));
    let refusal = |target: &str| Event::Refused(refused(target, "scout", START));
    let yes = true;
    let no = false;
    let table: Vec<(Filter, Event, bool)> = vec![
        (Filter::default(), closed(), yes),
        // A target without a class is all of them; with one, only that.
        (target(api), call(api, "scout"), yes),
        (target(api), call(search, "scout"), yes),
        (target(search), call(search, "scout"), yes),
        (target(search), call(api, "scout"), no),
        (
            target(search),
            call("https://api.example.org#other", "scout"),
            no,
        ),
        (target(api), call("http://api.example.org", "scout"), no),
        (
            target(api),
            call("https://api.example.org:8443", "scout"),
            no,
        ),
        (target(search), deferral(), yes),
        (target(api), refusal(api), yes),
        (target(search), refusal(api), no),
        (target(api), refusal(""), no),
        (target(api), closed(), no),
        // What stops the whole host stops its class.
        (
            target(api),
            pause("host:https://api.example.org", "scout", START),
            yes,
        ),
        (
            target(search),
            pause("host:https://api.example.org", "scout", START),
            yes,
        ),
        (
            target(search),
            pause("class:https://api.example.org#search", "scout", START),
            yes,
        ),
        (
            target(search),
            pause("class:https://api.example.org#other", "scout", START),
            no,
        ),
        (
            target(api),
            pause("host:https://www.example.org", "scout", START),
            no,
        ),
        (target(search), held("group:example.org", START), yes),
        (target(search), held("group:example.net", START), no),
        (target(api), held("pool:github", START), no),
        // A site is a name and everything below it.
        (site("example.org"), call(search, "scout"), yes),
        (
            site("example.org"),
            call("http://example.org:8080", "scout"),
            yes,
        ),
        (site("api.example.org"), call(search, "scout"), yes),
        (site("www.example.org"), call(search, "scout"), no),
        (site("ample.org"), call(search, "scout"), no),
        (site("example.org"), held("group:example.org", START), yes),
        (
            site("example.org"),
            held("host:https://api.example.org", START),
            yes,
        ),
        (site("example.org"), refusal("https://api.example.org"), yes),
        (site("example.org"), refusal("nonsense"), no),
        (site("example.org"), closed(), no),
        // Who.
        (agent("scout"), call(api, "scout"), yes),
        (agent("scout"), call(api, "scouts"), no),
        (agent("scout"), deferral(), yes),
        (agent("scout"), refusal(api), yes),
        (
            agent("scout"),
            pause("host:https://a.test", "scout", START),
            yes,
        ),
        (agent("scout"), held("host:https://a.test", START), no),
        (agent("scout"), closed(), no),
        (trajectory("run-17"), call(api, "scout"), yes),
        (
            trajectory("run-17"),
            pause("host:https://a.test", "scout", START),
            no,
        ),
        (
            Filter {
                agent: Some("miner".into()),
                ..target(api)
            },
            call(api, "scout"),
            no,
        ),
        (
            Filter {
                agent: Some("scout".into()),
                ..target(api)
            },
            call(api, "scout"),
            yes,
        ),
        (
            Filter {
                site: Some("example.net".into()),
                ..target(api)
            },
            call(api, "scout"),
            no,
        ),
    ];
    for (filter, event, expected) in table {
        assert_eq!(filter.matches(&event), expected, "{filter:?}\n{event:?}");
    }
}

fn between(from: Option<Moment>, to: Option<Moment>) -> Filter {
    Filter {
        from,
        to,
        ..Filter::default()
    }
}

#[test]
fn a_call_of_ten_minutes_is_found_by_every_time_that_it_spans() {
    let bench = Bench::new();
    let at = |minutes: u32| START.after(MINUTE * minutes);
    let long = intent("https://slow.test", "scout", at(0));
    let (number, durable) = bench.log().begin(long.clone());
    durable.detach();
    // Others fill segments before, while it lasts, and after.
    for _ in 0..600 {
        bench.call(
            intent("https://a.test", "scout", bench.now()),
            Duration::from_secs(1),
        );
    }
    assert_eq!(bench.now(), at(10));
    let done = ended(long, at(10), crate::outcome::End::Answered);
    bench.log().finish(number, done, |_| {}).detach();
    for _ in 0..600 {
        bench.call(
            intent("https://a.test", "scout", bench.now()),
            Duration::from_secs(1),
        );
    }
    for (from, to, is_found) in [
        (None, None, true),
        (None, Some(at(1)), true),
        (None, Some(at(0)), false),
        (Some(at(9)), None, true),
        (Some(at(4)), Some(at(5)), true),
        (Some(at(0)), Some(at(1)), true),
        (Some(at(10)), Some(at(11)), true),
        (Some(at(11)), None, false),
        (Some(at(11)), Some(at(12)), false),
        (Some(at(5)), Some(at(4)), true),
        (Some(at(15)), Some(at(12)), false),
    ] {
        let read = bench.read(between(from, to));
        let is_there = numbers(&read).contains(&number);
        assert_eq!(is_there, is_found, "from {from:?} to {to:?}");
    }
    let minute = bench.read(between(Some(at(15)), Some(at(16))));
    // One ends as the minute begins.
    assert_eq!(minute.len(), 61);
}

#[test]
fn what_lies_before_a_long_silence_is_found() {
    let bench = Bench::new();
    let first = bench.call(
        intent("https://a.test", "scout", bench.now()),
        Duration::from_secs(1),
    );
    bench.clock.advance(5 * HOUR);
    let second = bench.call(
        intent("https://a.test", "scout", bench.now()),
        Duration::from_secs(1),
    );
    bench.log().close().wait_blocking().unwrap();
    let hour = between(None, Some(START.after(HOUR)));
    assert_eq!(numbers(&bench.read(hour)), [first]);
    let later = between(Some(START.after(HOUR)), Some(START.after(6 * HOUR)));
    assert_eq!(numbers(&bench.read(later))[0], second);
}

#[test]
fn a_filter_holds_for_what_is_in_no_segment_yet() {
    let bench = Bench::new();
    let a = bench.call(
        intent("https://a.test", "scout", bench.now()),
        Duration::from_secs(1),
    );
    let b = bench.call(
        intent("https://b.test#x", "miner", bench.now()),
        Duration::from_secs(1),
    );
    assert!(bench.segments().is_empty());
    assert_eq!(numbers(&bench.read(target("https://a.test"))), [a]);
    assert_eq!(numbers(&bench.read(agent("miner"))), [b]);
    assert_eq!(
        numbers(&bench.read(between(
            Some(START.after(Duration::from_millis(1500))),
            None
        ))),
        [b]
    );
    assert_eq!(
        numbers(&bench.read(between(None, Some(START.after(Duration::from_secs(1)))))),
        [a]
    );
}
