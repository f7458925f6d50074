//! Every way in which a target misbehaves, as a client sees it.

use std::time::{Duration, Instant};

use crate::eventually;
use crate::raw::{Ended, Heard, Raw, ask, get};
use crate::support::loopback::{Answer, Arrival, Script, Target};

struct Played {
    heard: Heard,
    seen: Arrival,
    took: Duration,
}

/// Posts three bytes to a target that does this, and reads to the end.
fn play(answer: Answer) -> Played {
    let target = Target::start(Script::always(answer));
    let began = Instant::now();
    let mut raw = Raw::connect(target.addr());
    raw.send("POST / HTTP/1.1\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc");
    let heard = raw.hear_out();
    let took = began.elapsed();
    let [seen] = target.arrivals().try_into().expect("one arrival");
    assert_eq!(seen.body_len, 3, "the whole request is read first");
    Played { heard, seen, took }
}

/// Whether the target has no open request but the one that asks.
fn is_idle(target: &Target) -> bool {
    ask(target.addr(), "/idle?");
    target
        .arrivals()
        .last()
        .is_some_and(|seen| seen.in_flight == 1)
}

/// Does this to the first request and answers the others.
fn once(answer: Answer) -> Target {
    Target::start(Script::list(vec![answer, Answer::status(200).into()]))
}

#[test]
fn close_after_request_closes_without_a_byte() {
    let played = play(Answer::CloseAfterRequest);
    assert_eq!(
        (played.heard.bytes.len(), played.heard.ended),
        (0, Ended::Closed)
    );
    assert_eq!(played.seen.verdict, 0);
}

#[test]
fn reset_after_request_resets_without_a_byte() {
    let played = play(Answer::ResetAfterRequest);
    assert_eq!(
        (played.heard.bytes.len(), played.heard.ended),
        (0, Ended::Reset)
    );
    assert_eq!(played.seen.verdict, 0);
}

#[test]
fn a_cut_body_is_shorter_than_declared() {
    let played = play(Answer::CutBody {
        declared: 10,
        sent: 3,
    });
    assert_eq!(
        played.heard.text(),
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\n..."
    );
    assert_eq!(played.heard.ended, Ended::Closed);
    assert_eq!(played.seen.verdict, 200);
}

#[test]
fn a_cut_chunked_body_has_no_terminal_chunk() {
    let played = play(Answer::CutChunked);
    assert_eq!(
        played.heard.text(),
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\nfirst\r\n"
    );
    assert_eq!(played.heard.ended, Ended::Closed);
    assert_eq!(played.seen.verdict, 200);
}

#[tokio::test]
async fn an_independent_client_notices_every_cut() {
    let client = crate::client().build().expect("a client");
    for answer in [
        Answer::CutBody {
            declared: 10,
            sent: 3,
        },
        Answer::CutChunked,
    ] {
        let target = Target::start(Script::always(answer.clone()));
        let response = client.get(target.url("/")).send().await.expect("a head");
        response.bytes().await.expect_err("a cut body");
        assert_eq!(target.arrivals().len(), 1, "{answer:?}");
    }
}

#[test]
fn silence_holds_the_connection_until_the_client_leaves() {
    let target = once(Answer::Silence);
    let mut raw = Raw::connect(target.addr());
    raw.send(get("/"));
    raw.patience(Duration::from_millis(200));
    let heard = raw.hear_out();
    assert_eq!((heard.bytes.len(), heard.ended), (0, Ended::Open));
    assert!(!is_idle(&target));
    drop(raw);
    eventually("the silent request is over", || is_idle(&target));
}

#[test]
fn a_slow_head_comes_one_byte_at_a_time() {
    let every = Duration::from_millis(3);
    let played = play(Answer::SlowHead { every });
    let expected = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_eq!(played.heard.text(), expected);
    assert!(played.took >= every * u32::try_from(expected.len()).expect("short"));
    assert_eq!(played.seen.verdict, 200);
}

#[test]
fn a_drip_sends_its_head_at_once_and_its_body_in_pieces() {
    let every = Duration::from_millis(100);
    let target = Target::start(Script::always(Answer::Drip {
        total: 10,
        every,
        chunk: 4,
    }));
    let began = Instant::now();
    let mut raw = Raw::connect(target.addr());
    raw.send(get("/"));
    raw.hear("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n".len());
    let pieces = [(4, 1), (4, 2), (2, 3)].map(|(length, pauses)| {
        assert_eq!(raw.hear(length), ".".repeat(length));
        began.elapsed() >= every * pauses
    });
    assert_eq!(pieces, [true; 3]);
}

#[test]
fn a_huge_body_is_as_long_as_declared() {
    let length = 3 * 64 * 1024 + 17;
    let played = play(Answer::HugeBody(length));
    let text = played.heard.text();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains(&format!("content-length: {length}")));
    assert_eq!(body.len() as u64, length);
    assert!(body.bytes().all(|byte| byte == 0));
}

#[test]
fn a_huge_body_stops_when_the_client_leaves() {
    let target = once(Answer::HugeBody(u64::MAX));
    let mut raw = Raw::connect(target.addr());
    raw.send(get("/"));
    raw.hear(1024 * 1024);
    assert!(!is_idle(&target));
    drop(raw);
    eventually("the stream is over", || is_idle(&target));
}

#[test]
fn garbage_is_sent_as_it_is() {
    let garbage = b"\x00\xffSSH-2.0-nonsense\r\n\r\n";
    let played = play(Answer::Garbage(garbage.to_vec()));
    assert_eq!(played.heard.bytes, garbage);
    assert_eq!(
        (played.heard.ended, played.seen.verdict),
        (Ended::Closed, 0)
    );
}

#[test]
fn a_stalled_upload_is_not_read_and_fills_up() {
    const DECLARED: usize = 1024 * 1024 * 1024;
    let target = once(Answer::StallUpload);
    let mut raw = Raw::connect(target.addr());
    raw.patience(Duration::from_millis(500));
    raw.send(format!(
        "PUT / HTTP/1.1\r\ncontent-length: {DECLARED}\r\n\r\n"
    ));
    let sent = raw.flood(DECLARED);
    assert!(sent < DECLARED / 8, "{sent} bytes were taken");
    let [seen] = target.arrivals().try_into().expect("one arrival");
    assert_eq!((seen.body_len, seen.verdict), (0, 0));
    assert!(!is_idle(&target));
}

#[test]
fn a_stalled_upload_ends_when_its_client_is_seen_to_leave() {
    for body in ["", "abc"] {
        let target = once(Answer::StallUpload);
        let mut raw = Raw::connect(target.addr());
        raw.send(format!("PUT / HTTP/1.1\r\ncontent-length: 3\r\n\r\n{body}"));
        eventually("the head arrives", || target.arrivals().len() == 1);
        assert!(!is_idle(&target), "{body:?}");
        drop(raw);
        eventually("the upload is over", || is_idle(&target));
    }
}

#[test]
fn a_reset_at_accept_is_counted_as_a_connection_and_no_arrival() {
    let target = Target::resetting_at_accept();
    for connections in 1..=3 {
        let mut raw = Raw::connect(target.addr());
        assert_eq!(raw.hear_out().ended, Ended::Reset);
        assert_eq!(target.connections(), connections);
    }
    assert!(target.arrivals().is_empty());
}

#[test]
fn the_next_connection_is_served_after_a_hostile_one() {
    let hostile = [
        Answer::CloseAfterRequest,
        Answer::ResetAfterRequest,
        Answer::CutChunked,
        Answer::Garbage(b"?".to_vec()),
    ];
    for answer in hostile {
        let target = once(answer.clone());
        ask(target.addr(), "/");
        let text = ask(target.addr(), "/").text();
        assert!(
            text.starts_with("HTTP/1.1 200 OK"),
            "after {answer:?}: {text}"
        );
    }
}
