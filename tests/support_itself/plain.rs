//! HTTP/1.1 as it should be, and the log of it.

use std::thread;
use std::time::{Duration, Instant};

use crate::raw::{Ended, Raw, ask, get};
use crate::support::loopback::{Answer, Script, Target};

const OK_EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn ok() -> Target {
    Target::start(Script::always(Answer::status(200)))
}

#[test]
fn a_request_is_logged_as_it_was_sent() {
    let before = Instant::now();
    let target = Target::start(Script::always(Answer::status(201).body("made")));
    let mut raw = Raw::connect(target.addr());
    raw.send("POST /a%20b?q=1&q=2 HTTP/1.1\r\nHost: t\r\nX-Two: a\r\nX-Two:  b \r\ncontent-length: 5\r\n\r\nhello");
    let response = "HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\nmade";
    assert_eq!(raw.hear(response.len()), response);

    let [seen] = target.arrivals().try_into().expect("one arrival");
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/a%20b?q=1&q=2")
    );
    let headers = [
        ("host", "t"),
        ("x-two", "a"),
        ("x-two", "b"),
        ("content-length", "5"),
    ];
    assert_eq!(
        seen.headers,
        headers.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(seen.header("x-two"), Some("a"));
    assert_eq!(
        (seen.body_len, seen.connection, seen.in_flight, seen.verdict),
        (5, 0, 1, 201)
    );
    assert!(before < seen.at && seen.at < Instant::now());
    assert!(seen.since_start <= before.elapsed());
    assert_eq!(target.connections(), 1);
}

#[test]
fn a_connection_is_kept_alive_over_bodies_of_both_framings() {
    let target = ok();
    let mut raw = Raw::connect(target.addr());
    let requests = [
        "PUT /length HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc",
        "PUT /chunked HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\nx-trailer: 1\r\n\r\n",
        "GET /none HTTP/1.1\r\n\r\n",
    ];
    for request in requests {
        raw.send(request);
        assert_eq!(raw.hear(OK_EMPTY.len()), OK_EMPTY);
    }
    let seen: Vec<_> = target
        .arrivals()
        .into_iter()
        .map(|seen| (seen.path, seen.body_len, seen.connection))
        .collect();
    let expected = [("/length", 3), ("/chunked", 13), ("/none", 0)];
    assert_eq!(
        seen,
        expected.map(|(path, length)| (path.to_owned(), length, 0))
    );
    assert_eq!(target.connections(), 1);
}

#[test]
fn a_connection_closes_when_the_client_asks_for_it() {
    let rows = [
        ("HTTP/1.1", "", Ended::Open),
        ("HTTP/1.1", "connection: TE, close\r\n", Ended::Closed),
        ("HTTP/1.0", "", Ended::Closed),
        ("HTTP/1.0", "connection: keep-alive\r\n", Ended::Open),
    ];
    let target = ok();
    for (version, header, ended) in rows {
        let mut raw = Raw::connect(target.addr());
        raw.send(format!("GET / {version}\r\n{header}\r\n"));
        assert_eq!(raw.hear(17), "HTTP/1.1 200 OK\r\n");
        if ended == Ended::Open {
            raw.patience(Duration::from_millis(100));
        }
        let heard = raw.hear_out();
        assert_eq!(heard.ended, ended, "{version} {header}");
        let announced = heard.text().contains("connection: close");
        assert_eq!(announced, ended == Ended::Closed);
    }
    assert_eq!(target.connections(), 4);
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    let target = Target::start(Script::list(vec![
        Answer::status(200)
            .body("first")
            .after(Duration::from_millis(20)),
        Answer::status(200).body("other"),
    ]));
    let mut raw = Raw::connect(target.addr());
    raw.send([get("/1"), get("/2")].concat());
    let one = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(
        raw.hear(2 * (one.len() + 5)),
        format!("{one}first{one}other")
    );
    let in_flight: Vec<_> = target
        .arrivals()
        .iter()
        .map(|seen| seen.in_flight)
        .collect();
    assert_eq!(in_flight, [1, 1]);
}

#[test]
fn a_request_arrives_when_its_head_is_complete() {
    let target = ok();
    let mut raw = Raw::connect(target.addr());
    raw.send("GET / HTTP/1.1\r\nhost: t\r\n\r");
    thread::sleep(Duration::from_millis(100));
    assert!(target.arrivals().is_empty());
    let completed = Instant::now();
    raw.send("\n");
    raw.hear(OK_EMPTY.len());
    let [seen] = target.arrivals().try_into().expect("one arrival");
    assert!(seen.at >= completed);
}

#[test]
fn a_response_to_head_and_a_status_without_content_have_no_body() {
    let target = Target::start(Script::by_path([
        ("/head", Script::always(Answer::status(200).body("four"))),
        ("/none", Script::always(Answer::status(204).body("four"))),
    ]));
    let mut raw = Raw::connect(target.addr());
    raw.send("HEAD /head HTTP/1.1\r\n\r\n");
    raw.send("GET /none HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(
        raw.hear_out().text(),
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nHTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
    );
}

#[test]
fn what_cannot_be_read_is_refused_and_still_counted() {
    let heads = [
        "GET /\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET / HTTP/1.1 \r\n\r\n",
        " / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\n: nameless\r\n\r\n",
        "GET / HTTP/1.1\r\nspace : 1\r\n\r\n",
        "GET / HTTP/1.1\r\nlong: 1\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: +1\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length:\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
    ];
    let target = ok();
    for head in heads {
        let mut raw = Raw::connect(target.addr());
        raw.send(head);
        let heard = raw.hear_out();
        assert!(
            heard.text().starts_with("HTTP/1.1 400 "),
            "{head:?}: {}",
            heard.text()
        );
        assert_eq!(heard.ended, Ended::Closed, "{head:?}");
    }
    let arrivals = target.arrivals();
    assert_eq!(arrivals.len(), heads.len());
    assert!(
        arrivals
            .iter()
            .all(|seen| seen.method.is_empty() && seen.verdict == 400)
    );
}

#[test]
fn a_malformed_chunk_ends_the_connection_without_an_answer() {
    for body in ["\r\n", "x\r\n", "+1\r\na\r\n", "1\r\nab\r\n"] {
        let target = ok();
        let mut raw = Raw::connect(target.addr());
        raw.send("PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
        raw.send(body);
        assert!(raw.hear_out().bytes.is_empty(), "{body:?}");
        let [seen] = target.arrivals().try_into().expect("one arrival");
        assert_eq!(seen.verdict, 0, "{body:?}");
    }
}

#[tokio::test]
async fn an_independent_client_reads_the_answer() {
    let target = Target::start(Script::always(
        Answer::status(418)
            .header("X-Kind", "tea")
            .body("short and stout"),
    ));
    let client = crate::client().build().expect("a client");
    let response = client
        .post(target.url("/pot?n=1"))
        .body("water")
        .send()
        .await
        .expect("a response");
    assert_eq!(response.status().as_u16(), 418);
    assert_eq!(response.headers()["x-kind"], "tea");
    assert_eq!(response.text().await.expect("a body"), "short and stout");
    let [seen] = target.arrivals().try_into().expect("one arrival");
    assert_eq!((seen.path.as_str(), seen.body_len), ("/pot?n=1", 5));
    assert_eq!(
        seen.header("host"),
        Some(target.addr().to_string().as_str())
    );
}

#[test]
fn a_target_listens_on_any_address_of_the_loopback_network() {
    let ip = "127.11.12.13".parse().expect("an address");
    let target = Target::on(ip, Script::always(Answer::status(200)));
    assert_eq!(target.addr().ip(), ip);
    assert_eq!(
        target.origin(),
        format!("http://127.11.12.13:{}", target.addr().port())
    );
    assert_eq!(target.url("/x"), format!("{}/x", target.origin()));
    assert!(
        ask(target.addr(), "/")
            .text()
            .starts_with("HTTP/1.1 200 OK")
    );
}
