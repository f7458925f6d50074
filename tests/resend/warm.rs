//! Faults on a connection that has carried a call before: clients like to send such a call again by
//! themselves, on the theory that the connection was stale.

use serde_json::json;
use tidegate::outcome::{End, Outcome};
use tidegate::schedule::ResultLine;
use tokio::io::AsyncWriteExt;

use crate::support::gate::{Gate, Setup, counted, task};
use crate::support::handmade::{hear, raw};
use crate::support::loopback::{Answer, Script, Target};
use crate::support::tls::{self, H2Script, StreamAnswer, TestCa};

fn gate(target: &Target, ca: &TestCa) -> Gate {
    let setup = Setup::default().trusting(ca);
    setup.rule(&target.origin(), vec![counted()]).open()
}

/// Calls once to warm the connection up, and then by this method.
async fn second(gate: &Gate, target: &Target, method: &str) -> ResultLine {
    let mut run = gate.start();
    run.submit(vec![task(&json!({"url": target.url("/first")}))])
        .await;
    assert_eq!(run.next().await.outcome, Outcome::Succeeded);
    let second = json!({"url": target.url("/second"), "method": method, "max_attempts": 2});
    run.submit(vec![task(&second)]).await;
    let results = run.finish().await;
    let [result] = results.try_into().expect("one result");
    result
}

#[tokio::test]
async fn a_call_on_a_warm_connection_is_not_sent_twice() {
    let ca = TestCa::new();
    for fault in [
        Answer::CloseAfterRequest,
        Answer::ResetAfterRequest,
        Answer::Garbage(b"?".to_vec()),
    ] {
        let script = Script::list(vec![Answer::status(200).into(), fault]);
        let target = Target::start(script);
        let gate = gate(&target, &ca);
        let result = second(&gate, &target, "POST").await;
        assert_eq!(result.outcome, Outcome::Ambiguous);
        assert_eq!(target.arrivals().len(), 2);
        assert_eq!(target.connections(), 1, "the connection was warm");
        let ends = gate.ends(&target.origin()).await;
        assert_eq!(ends, [End::Answered, End::Unanswered]);
    }
}

#[tokio::test]
async fn a_read_on_a_warm_connection_is_repeated_with_a_token_of_its_own() {
    let ca = TestCa::new();
    let answered = || Answer::from(Answer::status(200));
    let script = Script::list(vec![answered(), Answer::CloseAfterRequest, answered()]);
    let target = Target::start(script);
    let gate = gate(&target, &ca);
    let result = second(&gate, &target, "GET").await;
    assert_eq!((result.outcome, result.attempts), (Outcome::Succeeded, 2));
    assert_eq!(target.arrivals().len(), 3);
    assert_eq!(target.connections(), 2);
    assert_eq!(gate.spent(&target.origin()), 3);
}

#[tokio::test]
async fn a_stream_that_is_disowned_on_a_warm_connection_is_not_sent_twice() {
    for fault in [StreamAnswer::GoAway, StreamAnswer::Refuse] {
        let ca = TestCa::new();
        let answered = || StreamAnswer::from(Answer::status(200));
        let script = H2Script::list(vec![answered(), fault.clone(), answered()]);
        let target = tls::h2(&ca, script);
        let gate = gate(&target, &ca);
        let result = second(&gate, &target, "POST").await;
        assert_eq!(result.outcome, Outcome::Ambiguous, "{fault:?}");
        assert_eq!(target.arrivals().len(), 2, "{fault:?}");
        assert_eq!(gate.spent(&target.origin()), 2, "{fault:?}");
    }
}

/// The race that no client can win: the server closes while the next request is on its way.
#[tokio::test]
async fn a_call_that_meets_a_connection_being_closed_arrives_at_most_once() {
    let ca = TestCa::new();
    // Says nothing of closing, and closes.
    let target = raw("http", |mut tcp, log, _| async move {
        hear(&mut tcp, &log).await?;
        tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await
    });
    let gate = gate(&target, &ca);
    let mut run = gate.start();
    for number in 0..60 {
        let url = target.url(&format!("/{number}"));
        run.submit(vec![task(&json!({"url": url, "method": "POST"}))])
            .await;
        let result = run.next().await;
        let arrived = |path: &str| {
            let arrivals = target.arrivals();
            arrivals.iter().filter(|seen| seen.path == path).count()
        };
        let expected = match result.outcome {
            Outcome::Succeeded => 1,
            Outcome::Ambiguous => 0,
            other => panic!("{other}: {:?}", result.error),
        };
        assert_eq!(arrived(&format!("/{number}")), expected, "{number}");
    }
    run.finish().await;
    let connections = target.connections() as u64;
    assert!(
        connections <= gate.spent(&target.origin()),
        "{connections} connections"
    );
}
