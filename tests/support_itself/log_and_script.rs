//! The count of open requests, the scripts, and the life of a target.

use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crate::eventually;
use crate::raw::{Ended, Raw, ask, get, status};
use crate::support::loopback::{Answer, Script, Target, refusing_port};

#[test]
fn requests_in_flight_are_counted_from_head_to_the_end_of_the_answer() {
    let barrier = Arc::new(Barrier::new(3));
    let target = Target::start(Script::always(
        Answer::status(200).after(Duration::from_millis(500)),
    ));
    let addr = target.addr();
    let clients = [(); 3].map(|()| {
        let barrier = Arc::clone(&barrier);
        thread::spawn(move || {
            barrier.wait();
            ask(addr, "/")
        })
    });
    for client in clients {
        assert_eq!(status(&client.join().expect("no panic")), 200);
    }
    ask(addr, "/alone");
    let in_flight: Vec<_> = target
        .arrivals()
        .iter()
        .map(|seen| seen.in_flight)
        .collect();
    assert_eq!(in_flight, [1, 2, 3, 1]);
}

#[test]
fn requests_one_after_the_other_never_overlap() {
    let target = Target::start(Script::always(Answer::status(200).body("x")));
    for _ in 0..300 {
        // The next connection opens as soon as the answer is there, not when this one has ended.
        let mut raw = Raw::connect(target.addr());
        raw.send(get("/"));
        raw.hear("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx".len());
    }
    let arrivals = target.arrivals();
    assert_eq!(arrivals.len(), 300);
    assert!(arrivals.iter().all(|seen| seen.in_flight == 1));
    assert!(arrivals.is_sorted_by_key(|seen| seen.at));
}

#[test]
fn a_request_whose_client_leaves_is_over_and_has_no_verdict() {
    let target = Target::start(Script::list(vec![
        Answer::status(200).after(Duration::from_secs(3600)),
        Answer::status(200),
    ]));
    let mut raw = Raw::connect(target.addr());
    raw.send(get("/left"));
    eventually("the request arrives", || target.arrivals().len() == 1);
    drop(raw);
    eventually("a request is alone again", || {
        ask(target.addr(), "/");
        target
            .arrivals()
            .last()
            .is_some_and(|seen| seen.in_flight == 1)
    });
    assert_eq!(target.arrivals().first().map(|seen| seen.verdict), Some(0));
}

#[test]
fn a_list_gives_each_request_its_answer_and_repeats_the_last() {
    let target = Target::start(Script::list(vec![
        Answer::status(503).into(),
        Answer::CloseAfterRequest,
        Answer::status(200).into(),
    ]));
    assert_eq!(status(&ask(target.addr(), "/")), 503);
    assert!(ask(target.addr(), "/").bytes.is_empty());
    assert_eq!(status(&ask(target.addr(), "/")), 200);
    assert_eq!(status(&ask(target.addr(), "/")), 200);
    let verdicts: Vec<_> = target.arrivals().iter().map(|seen| seen.verdict).collect();
    assert_eq!(verdicts, [503, 0, 200, 200]);
}

#[test]
fn each_path_has_a_script_and_a_count_of_its_own() {
    let target = Target::start(Script::by_path([
        (
            "/a",
            Script::list(vec![Answer::status(500), Answer::status(200)]),
        ),
        (
            "/b",
            Script::list(vec![Answer::status(501), Answer::status(200)]),
        ),
    ]));
    let rows = [
        ("/a", 500),
        ("/b?x=/a", 501),
        ("/a?again", 200),
        ("/c", 404),
        ("/a/", 404),
        ("/b", 200),
    ];
    for (path, expected) in rows {
        assert_eq!(status(&ask(target.addr(), path)), expected, "{path}");
    }
}

#[test]
fn a_script_sees_the_request_and_how_many_came_before() {
    let target = Target::start(Script::new(|request, earlier| {
        let agent = request.header("host").unwrap_or("none").to_owned();
        Answer::status(200).body(format!(
            "{} {} {agent} {earlier}",
            request.method, request.path
        ))
    }));
    ask(target.addr(), "/first");
    assert!(
        ask(target.addr(), "/next?q")
            .text()
            .ends_with("\r\n\r\nGET /next?q t 1")
    );
}

#[test]
fn a_dropped_target_closes_its_connections_and_its_port() {
    let target = Target::start(Script::always(Answer::Silence));
    let addr = target.addr();
    let mut idle = Raw::connect(addr);
    let mut asking = Raw::connect(addr);
    asking.send(get("/"));
    eventually("both are there", || {
        target.connections() == 2 && target.arrivals().len() == 1
    });
    drop(target);
    assert!(TcpStream::connect(addr).is_err());
    for raw in [&mut idle, &mut asking] {
        assert_eq!(raw.hear_out().ended, Ended::Closed);
    }
}

#[test]
fn a_panic_of_the_script_comes_out_when_the_target_is_dropped() {
    let target = Target::start(Script::new(|_, _| -> Answer { panic!("as intended") }));
    assert!(ask(target.addr(), "/").bytes.is_empty());
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(target)));
    let panic = dropped.expect_err("the drop panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as intended"));
}

#[test]
fn nothing_listens_on_a_refusing_port() {
    let refused = TcpStream::connect(refusing_port()).expect_err("refused");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}
