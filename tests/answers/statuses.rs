//! Answers without a body, and answers whose head says odd things.

use serde_json::json;
use tidegate::outcome::{End, Outcome};

use crate::run_one;
use crate::support::gate::{Setup, counted, task};
use crate::support::handmade::{hear, raw};
use crate::support::loopback::{Answer, Reply, Script, Target};
use tokio::io::AsyncWriteExt;

/// What a task shows of its answer: status, bytes, media type, and whether there is a body.
type Shown<'a> = (Option<u16>, Option<u64>, Option<&'a str>, bool);

#[tokio::test]
async fn answers_without_a_body_leave_no_file() {
    let plain = || Answer::status(200).header("content-type", "text/plain");
    let cases: Vec<(&str, Reply, Outcome, Shown<'_>)> = vec![
        (
            "HEAD",
            plain().body("seven"),
            Outcome::Succeeded,
            (Some(200), Some(0), Some("text/plain"), false),
        ),
        (
            "HEAD",
            plain().header("content-length", "9999999999999"),
            Outcome::Succeeded,
            (Some(200), Some(0), Some("text/plain"), false),
        ),
        (
            "GET",
            plain(),
            Outcome::Succeeded,
            (Some(200), Some(0), Some("text/plain"), false),
        ),
        (
            "GET",
            Answer::status(204),
            Outcome::Succeeded,
            (Some(204), Some(0), None, false),
        ),
        (
            "GET",
            Answer::status(304),
            Outcome::Succeeded,
            (Some(304), Some(0), None, false),
        ),
        (
            "GET",
            Answer::status(304).header("content-length", "77"),
            Outcome::Succeeded,
            (Some(304), Some(0), None, false),
        ),
        (
            "GET",
            Answer::status(404),
            Outcome::Answered,
            (Some(404), Some(0), None, false),
        ),
        (
            "GET",
            Answer::status(410).body("gone"),
            Outcome::Answered,
            (Some(410), Some(4), None, true),
        ),
        (
            "GET",
            Answer::status(206).body("part"),
            Outcome::Succeeded,
            (Some(206), Some(4), None, true),
        ),
        (
            "OPTIONS",
            Answer::status(200),
            Outcome::Succeeded,
            (Some(200), Some(0), None, false),
        ),
        (
            "QUERY",
            Answer::status(200).body("rows"),
            Outcome::Succeeded,
            (Some(200), Some(4), None, true),
        ),
    ];
    for (method, reply, outcome, shown) in cases {
        let target = Target::start(Script::always(reply.clone()));
        let gate = Setup::default()
            .rule(&target.origin(), vec![counted()])
            .open();
        let result = run_one(
            &gate,
            &json!({"url": target.url("/x?y=1"), "method": method}),
        )
        .await;
        let place = format!("{method} {reply:?}");
        assert_eq!(result.outcome, outcome, "{place}");
        assert_eq!(result.error, None, "{place}");
        let found: Shown<'_> = (
            result.status,
            result.bytes,
            result.content_type.as_deref(),
            result.body_path.is_some(),
        );
        assert_eq!(found, shown, "{place}");
        assert_eq!(
            (result.attempts, target.arrivals().len()),
            (1, 1),
            "{place}"
        );
        assert_eq!(gate.spent(&target.origin()), 1, "{place}");
        let [arrival] = target.arrivals().try_into().unwrap();
        assert_eq!((&*arrival.method, &*arrival.path), (method, "/x?y=1"));
        // The record knows the answer, and not the query.
        let [call] = gate.calls().await.try_into().unwrap();
        assert_eq!(call.settlement.end, End::Answered, "{place}");
        assert_eq!(call.settlement.status, result.status);
        assert_eq!(call.settlement.peer, Some(target.addr().ip()));
        assert_eq!((&*call.intent.method, &*call.intent.path), (method, "/x"));
        assert!(
            call.settlement.departed >= Some(call.intent.decided),
            "{place}"
        );
        assert!(
            Some(call.settlement.ended) >= call.settlement.departed,
            "{place}"
        );
    }
}

#[tokio::test]
async fn a_media_type_is_shown_as_it_is_and_never_longer_than_a_line_bears() {
    let long = format!("text/{}", "x".repeat(5000));
    for (sent, shown) in [
        ("text/html; charset=utf-8", "text/html; charset=utf-8"),
        ("no/such; type=\u{b0}", "no/such; type=\u{b0}"),
        ("\"quoted\"\\", "\"quoted\"\\"),
        (";;;", ";;;"),
        (&long, long.split_at(200).0),
    ] {
        let reply = Answer::status(200).header("content-type", sent).body("x");
        let target = Target::start(Script::always(reply));
        let result = run_one(&Setup::default().open(), &json!({"url": target.url("/")})).await;
        assert_eq!(result.outcome, Outcome::Succeeded, "{sent}");
        assert_eq!(result.content_type.as_deref(), Some(shown));
    }
}

#[tokio::test]
async fn whatever_a_url_holds_can_be_sent() {
    let target = Target::start(Script::always(Answer::status(200)));
    let gate = Setup::default().open();
    let signs = (' '..='~').filter(|sign| !sign.is_ascii_alphanumeric());
    let signs = signs.chain(['\u{7f}', '\u{80}', '\u{e4}', '\u{4e2d}', '\u{1f600}']);
    let urls = signs.flat_map(|sign| {
        [
            format!("/a{sign}b"),
            format!("/?a{sign}b"),
            format!("/?q=1&x={sign}"),
            format!("/#{sign}"),
        ]
    });
    let tasks = urls.map(|path| task(&json!({"url": target.url(&path), "max_attempts": 1})));
    let tasks: Vec<_> = tasks.collect();
    let count = tasks.len();
    let results = gate.run(tasks).await;
    for result in &results {
        assert_eq!(
            result.outcome,
            Outcome::Succeeded,
            "{}: {:?}",
            result.url,
            result.error
        );
    }
    assert_eq!((results.len(), target.arrivals().len()), (count, count));
}

#[tokio::test]
async fn interim_answers_are_passed_over_and_the_final_one_counts() {
    let target = raw("http", |mut tcp, log, _| async move {
        hear(&mut tcp, &log).await?;
        tcp.write_all(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
              HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        )
        .await
    });
    let result = run_one(&Setup::default().open(), &json!({"url": target.url("/")})).await;
    assert_eq!(
        (result.outcome, result.status, result.bytes),
        (Outcome::Succeeded, Some(200), Some(2))
    );
}

#[tokio::test]
async fn a_body_that_ends_with_its_connection_is_whole() {
    let target = raw("http", |mut tcp, log, _| async move {
        hear(&mut tcp, &log).await?;
        tcp.write_all(b"HTTP/1.0 200 OK\r\n\r\nuntil the end").await
    });
    let result = run_one(&Setup::default().open(), &json!({"url": target.url("/")})).await;
    assert_eq!(
        (result.outcome, result.bytes),
        (Outcome::Succeeded, Some(13))
    );
}

#[tokio::test]
async fn what_the_record_says_of_the_user_agent_is_what_the_target_saw() {
    let target = Target::start(Script::always(Answer::status(200)));
    let gate = Setup::default().open();
    for (id, headers) in [("a", json!({})), ("b", json!({"user-agent": "another/1"}))] {
        run_one(
            &gate,
            &json!({"id": id, "url": target.url("/"), "headers": headers}),
        )
        .await;
    }
    let seen: Vec<_> = target
        .arrivals()
        .iter()
        .map(|seen| seen.header("user-agent").unwrap().to_owned())
        .collect();
    let recorded: Vec<_> = gate
        .calls()
        .await
        .iter()
        .map(|call| call.intent.user_agent.to_string())
        .collect();
    assert_eq!(
        seen,
        ["tidegate/test", "another/1"],
        "{:?}",
        target.arrivals()
    );
    assert_eq!(recorded, seen);
}
