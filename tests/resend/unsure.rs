//! Faults of which nobody can say beforehand how far the request came.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::json;
use tidegate::egress::{Fault, Request, Sent};
use tidegate::outcome::{End, Outcome};
use tidegate::step::Step;
use tokio::io::AsyncWriteExt;

use crate::support::gate::{Setup, counted, task};
use crate::support::handmade::{hear, raw};
use crate::support::loopback::{Answer, Script, Target};

#[tokio::test]
async fn a_reset_at_accept_is_sent_again_only_where_nothing_was_sent() {
    let targets: Vec<_> = (0..16).map(|_| Target::resetting_at_accept()).collect();
    let setup = targets.iter().fold(Setup::default(), |setup, target| {
        setup.rule(&target.origin(), vec![counted()])
    });
    let gate = setup.open();
    let tasks = targets.iter().enumerate().map(|(id, target)| {
        let id = format!("{id:02}");
        task(&json!({"id": id, "url": target.url("/"), "method": "POST", "max_attempts": 2}))
    });
    let results = gate.run(tasks.collect()).await;
    for (target, result) in targets.iter().zip(results) {
        let ends = gate.ends(&target.origin()).await;
        let expected = match ends[..] {
            [End::NotSent, End::NotSent] => Outcome::Failed,
            [End::Unanswered] | [End::NotSent, End::Unanswered] => Outcome::Ambiguous,
            _ => panic!("{ends:?}"),
        };
        assert_eq!(result.outcome, expected, "{ends:?}");
        assert_eq!(target.connections(), ends.len(), "each was decided");
        assert_eq!(gate.spent(&target.origin()), ends.len() as u64, "and paid");
        assert!(target.arrivals().is_empty());
    }
}

#[tokio::test]
async fn an_answer_before_the_upload_is_over_is_an_answer_or_leaves_doubt() {
    // Reads the head, answers, and closes over what it has not read, which resets.
    let target = raw("http", |mut tcp, log, _| async move {
        hear(&mut tcp, &log).await?;
        tcp.write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n")
            .await
    });
    let gate = Setup::default()
        .rule(&target.origin(), vec![counted()])
        .open();
    let body = "b".repeat(4 << 20);
    let line = json!({"url": target.url("/"), "method": "POST", "body": body});
    let results = gate.run(vec![task(&line)]).await;
    let expected = match results[0].status {
        Some(413) => (Outcome::Answered, End::Answered),
        _ => (Outcome::Ambiguous, End::Unanswered),
    };
    let ends = gate.ends(&target.origin()).await;
    assert_eq!((results[0].outcome, ends), (expected.0, vec![expected.1]));
    assert_eq!((target.arrivals().len(), target.connections()), (1, 1));
}

#[tokio::test]
async fn an_upload_that_the_target_takes_no_more_of_is_ambiguous() {
    let target = Target::start(Script::always(Answer::StallUpload));
    let setup = Setup::default().ruled(&target.origin(), vec![counted()], |conduct| {
        conduct.timeout = std::time::Duration::from_secs(1);
    });
    let gate = setup.open();
    let request = Request {
        method: "POST".into(),
        url: target.url("/"),
        headers: HeaderMap::new(),
        // More than the buffers on the way take in.
        body: Bytes::from(vec![0; 64 << 20]),
    };
    let sent = gate.egress.send(&request, &Step::default()).await.unwrap();
    assert!(
        matches!(sent, Sent::Failed(Fault::Unanswered(_))),
        "{sent:?}"
    );
    assert_eq!(target.arrivals().len(), 1);
    assert_eq!(gate.ends(&target.origin()).await, [End::Unanswered]);
    assert_eq!(gate.spent(&target.origin()), 1);
}
