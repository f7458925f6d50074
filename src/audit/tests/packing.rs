use std::collections::HashMap;
use std::time::Duration;

use super::bench::*;
use crate::audit::*;
use crate::budget::Revision;
use crate::outcome::End;
use crate::store::Space;

#[test]
fn what_is_acknowledged_is_there_after_a_restart() {
    let mut bench = Bench::new();
    let mut written = HashMap::new();
    for n in 0..100 {
        let intent = Intent {
            cost: 1 + n,
            ..intent("https://a.test", "scout", bench.now())
        };
        let (number, durable) = bench.log().begin(intent.clone());
        durable.wait_blocking().unwrap();
        bench.clock.advance(Duration::from_millis(10));
        let call = ended(intent, bench.now(), End::Answered);
        bench
            .log()
            .finish(number, call.clone(), |_| {})
            .wait_blocking()
            .unwrap();
        written.insert(number, call);
    }
    assert!(bench.restart().is_empty());
    let all = bench.all();
    let read: HashMap<_, _> = calls(&all)
        .into_iter()
        .map(|(n, call)| (n, call.clone()))
        .collect();
    assert_eq!(read, written);
}

#[test]
fn every_event_is_read_exactly_once_over_segments_and_restarts() {
    let mut bench = Bench::new();
    let mut expected = Vec::new();
    for round in 0..6_u64 {
        for n in 0..131_u64 {
            let decided = bench.now();
            let target = format!("https://h{}.test#c{}", n % 7, n % 3);
            expected.push(bench.call(intent(&target, "scout", decided), Duration::from_millis(n)));
            if n % 10 == 0 {
                let by = format!("{round}/{n}");
                let scope = "pool:github".parse().unwrap();
                let at = bench.now();
                let event = Event::Released {
                    scope,
                    by: by.into(),
                    note: "".into(),
                    at,
                };
                bench.log().note(event).detach();
            }
            if n % 50 == 0 {
                bench.clock.advance(Duration::from_secs(61));
            }
        }
        assert!(bench.restart().is_empty());
        let all = bench.all();
        let mut read: Vec<_> = calls(&all).into_iter().map(|(number, _)| number).collect();
        read.sort_unstable();
        assert_eq!(read, expected);
        assert_eq!(
            all.len() as u64,
            (round + 1) * (131 + 14),
            "none twice, none beside them"
        );
        bench.assert_chained();
    }
    bench.log().close().wait_blocking().unwrap();
    assert_eq!(
        bench.store().scan_bytes(Space::Open, ..).count(),
        0,
        "all is packed at the end"
    );
    let all = bench.all();
    assert_eq!(all.len(), 6 * (131 + 14) + 1);
    assert!(
        all.windows(2)
            .all(|pair| pair[0].event.at() <= pair[1].event.at())
    );
}

#[test]
fn a_call_of_a_killed_gate_is_handed_over_until_it_is_settled() {
    let mut bench = Bench::new();
    let first = intent("https://a.test", "scout", bench.now());
    let (number, durable) = bench.log().begin(first.clone());
    durable.wait_blocking().unwrap();
    let ended_one = bench.call(intent("https://b.test", "scout", bench.now()), HOUR);
    for _ in 0..2 {
        let interrupted = bench.restart();
        assert_eq!(interrupted.len(), 1);
        assert_eq!(
            (interrupted[0].number, &interrupted[0].intent),
            (number, &first)
        );
        assert_eq!(under_way(bench.store()).unwrap(), [(number, first.clone())]);
        assert_eq!(numbers(&bench.all()), [ended_one]);
    }
    bench.clock.advance(HOUR);
    let interrupted = bench.restart().remove(0);
    bench
        .log()
        .interrupt(interrupted, bench.now(), |_| {})
        .wait_blocking()
        .unwrap();
    assert!(
        bench.restart().is_empty(),
        "it is handed over once it is settled"
    );
    assert!(under_way(bench.store()).unwrap().is_empty());
    let all = bench.all();
    let (_, call) = calls(&all).into_iter().find(|(n, _)| *n == number).unwrap();
    assert_eq!(call.intent, first);
    assert_eq!(call.settlement.end, End::Interrupted);
    assert_eq!(call.settlement.ended, bench.now());
}

#[test]
fn numbers_are_never_used_twice() {
    let mut bench = Bench::new();
    let mut last = 0;
    for gate in 1..5 {
        assert_eq!(bench.log().gate(), gate);
        let first = bench.call(intent("https://a.test", "scout", bench.now()), MINUTE);
        assert!(first > last);
        last = bench.call(intent("https://a.test", "scout", bench.now()), MINUTE);
        assert!(last > first);
        bench.log().close().wait_blocking().unwrap();
        bench.restart();
    }
}

#[test]
fn what_follows_from_an_end_is_written_with_it_in_the_order_of_the_log() {
    let bench = Bench::new();
    for n in 0..200_u32 {
        let event = Event::Closed {
            gate: u64::from(n),
            at: bench.now(),
        };
        let also = |changes: &mut crate::store::Changes| changes.put(Space::Job, b"state", &n);
        bench.log().note_with(event, also).detach();
    }
    bench.flush();
    assert_eq!(
        bench.store().get::<u32>(Space::Job, b"state").unwrap(),
        Some(199)
    );
}

#[test]
fn a_segment_is_small_whatever_is_in_it() {
    let bench = Bench::new();
    let long: String = "x".repeat(3000);
    for n in 0..40_u64 {
        let path = format!("/{n}/{long}");
        let intent = intent("https://a.test", "scout", bench.now());
        bench.call(
            Intent {
                path: path.into(),
                ..intent
            },
            Duration::from_millis(1),
        );
        let mut event = refused(&format!("http://10.0.0.{n}"), "scout", bench.now());
        event.detail = long.as_str().into();
        bench.log().refuse(event);
    }
    bench.log().close().wait_blocking().unwrap();
    let segments = bench.segments();
    let largest = segments.iter().map(|segment| segment.bytes).max().unwrap();
    assert!(largest < 8 * 1024, "{largest} bytes in one value");
    assert_eq!(bench.all().len(), 81);
}

#[test]
fn a_segment_spans_little_more_than_a_minute() {
    let bench = Bench::new();
    for _ in 0..20 {
        bench.call(
            intent("https://a.test", "scout", bench.now()),
            Duration::from_secs(1),
        );
        bench.clock.advance(Duration::from_secs(20));
    }
    bench.clock.advance(HOUR);
    bench.call(
        intent("https://a.test", "scout", bench.now()),
        Duration::from_secs(1),
    );
    bench.log().close().wait_blocking().unwrap();
    let segments = bench.segments();
    assert!(segments.len() > 5);
    for segment in segments {
        let last = segment.time;
        let spans = last.since(segment.header.begin);
        assert!(spans <= Duration::from_secs(62), "{spans:?}");
    }
}

/// As a crawl makes them: forty hosts, five agents in twenty trajectories.
fn ordinary(n: u64, decided: crate::clock::Moment) -> Call {
    let host = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let target = format!("https://api{}.example{}.org", host % 40, host % 13);
    let mut intent = intent(&target, &format!("scout-{}", n % 5), decided);
    intent.gate = 12;
    intent.path = format!("/v2/collections/{{id}}/items/{}", host % 90_000).into();
    intent.step.trajectory = format!("run-2025-12-01-{}", n % 20).into();
    intent.step.step = (n / 100).to_string().into();
    intent.step.goal = format!("find what was measured at site {}", n % 20).into();
    intent.revision = Revision(1 + host % 9);
    intent.task = Some(TaskRef { job: 3, number: n });
    intent
        .scopes
        .insert(0, "group:example.org".parse().unwrap());
    let jitter = |most: u64| Duration::from_nanos(host.wrapping_mul(7919) % most);
    let departed = decided.after(Duration::from_millis(1) + jitter(3_000_000));
    let ended = departed.after(Duration::from_millis(40) + jitter(400_000_000));
    let settlement = Settlement {
        departed: Some(departed),
        ended,
        end: End::Answered,
        status: Some(if n.is_multiple_of(9) { 404 } else { 200 }),
        bytes: 900 + host % 150_000,
        peer: Some(std::net::Ipv4Addr::from_bits(u32::try_from(host % 90_000).unwrap()).into()),
        error: None,
    };
    Call { intent, settlement }
}

#[test]
fn an_ordinary_call_costs_at_most_a_hundred_bytes() {
    let bench = Bench::new();
    let mut calls_made = Vec::new();
    for n in 0..10_000 {
        bench.clock.advance(Duration::from_micros(20_011));
        let call = ordinary(n, bench.now());
        let (number, durable) = bench.log().begin(call.intent.clone());
        durable.detach();
        bench.clock.advance_to(call.settlement.ended);
        bench.log().finish(number, call.clone(), |_| {}).detach();
        calls_made.push(call);
    }
    bench.log().close().wait_blocking().unwrap();
    let segments = bench.segments();
    let bytes: usize = segments.iter().map(|segment| segment.bytes).sum();
    let names: usize = bench
        .store()
        .scan_bytes(Space::Name, ..)
        .map(|e| e.unwrap().1.len())
        .sum();
    println!(
        "{} bytes for 10,000 calls in {} segments of {} bytes; the dictionary holds {names} bytes",
        bytes,
        segments.len(),
        bytes / segments.len(),
    );
    assert!(bytes <= 100 * 10_000, "{bytes} bytes for 10,000 calls");
    let all = bench.all();
    let read: Vec<_> = calls(&all)
        .into_iter()
        .map(|(_, call)| call.clone())
        .collect();
    assert_eq!(read, calls_made);
}
