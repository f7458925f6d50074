//! The targets behind TLS, seen by an independent client.

use std::error::Error;
use std::time::Duration;

use crate::PATIENCE;
use crate::support::loopback::{Answer, Script, Target, Tolerance};
use crate::support::tls::{self, H2Script, StreamAnswer, TestCa};

fn trusting(ca: &TestCa) -> reqwest::Client {
    let certificate = reqwest::Certificate::from_pem(ca.ca_pem.as_bytes()).expect("a certificate");
    crate::client()
        .tls_certs_only([certificate])
        .build()
        .expect("a client")
}

/// The cause that HTTP/2 gives for a failed request.
fn cause(error: &reqwest::Error) -> &h2::Error {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref() {
            return found;
        }
        source = error.source();
    }
    panic!("{error:?} is no failure of HTTP/2");
}

fn verdicts(target: &Target) -> Vec<u16> {
    target.arrivals().iter().map(|seen| seen.verdict).collect()
}

#[tokio::test]
async fn an_https_target_answers_and_logs_like_a_plain_one() {
    let ca = TestCa::new();
    let target = tls::https(
        &ca,
        Script::tolerant(Tolerance::bucket(0.001, 1), Duration::ZERO),
    );
    let client = trusting(&ca);
    for (origin, expected) in [
        (target.origin(), 200),
        (format!("https://localhost:{}", target.addr().port()), 429),
    ] {
        let response = client
            .post(format!("{origin}/x?y"))
            .body("four")
            .send()
            .await
            .expect("a response");
        assert_eq!(response.status().as_u16(), expected);
        assert_eq!(response.version(), http::Version::HTTP_11);
    }
    let seen = target.arrivals();
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter()
            .all(|seen| seen.path == "/x?y" && seen.body_len == 4)
    );
    assert_eq!(verdicts(&target), [200, 429]);
    assert_eq!(target.over_envelope(), 1);
}

#[tokio::test]
async fn hostile_answers_work_behind_tls() {
    let ca = TestCa::new();
    let client = trusting(&ca);
    let hostile = [
        Answer::CloseAfterRequest,
        Answer::ResetAfterRequest,
        Answer::Garbage(b"?".to_vec()),
    ];
    for answer in hostile {
        let target = tls::https(&ca, Script::always(answer.clone()));
        let sent = client.get(target.url("/")).send().await;
        assert!(sent.is_err(), "{answer:?}");
        assert_eq!((target.arrivals().len(), verdicts(&target)), (1, vec![0]));
    }
}

#[tokio::test]
async fn an_h2_target_answers_and_logs_each_stream() {
    let ca = TestCa::new();
    let body = vec![7; 300_000];
    let target = tls::h2(
        &ca,
        H2Script::by_path([(
            "/x",
            Script::always(
                Answer::status(200)
                    .header("x-kind", "tea")
                    .body(body.clone()),
            ),
        )]),
    );
    let client = trusting(&ca);
    for path in ["/x?n=1", "/none"] {
        let response = client
            .post(target.url(path))
            .header("x-agent", "a")
            .body(vec![0; 200_000])
            .send()
            .await
            .expect("a response");
        assert_eq!(response.version(), http::Version::HTTP_2);
        if response.status().as_u16() == 200 {
            assert_eq!(response.headers()["x-kind"], "tea");
            assert_eq!(response.bytes().await.expect("a body"), body);
        }
    }
    let seen = target.arrivals();
    let seen: Vec<_> = seen
        .iter()
        .map(|seen| {
            (
                seen.method.as_str(),
                seen.path.as_str(),
                seen.body_len,
                seen.connection,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("POST", "/x?n=1", 200_000, 0),
            ("POST", "/none", 200_000, 0)
        ]
    );
    assert_eq!(verdicts(&target), [200, 404]);
    assert!(
        target
            .arrivals()
            .iter()
            .all(|seen| seen.header("x-agent") == Some("a"))
    );
    assert_eq!(target.connections(), 1);
}

#[tokio::test]
async fn streams_of_one_connection_are_in_flight_together() {
    let ca = TestCa::new();
    let target = tls::h2(
        &ca,
        Script::always(Answer::status(200).after(Duration::from_millis(500))),
    );
    let client = trusting(&ca);
    client
        .get(target.url("/first"))
        .send()
        .await
        .expect("a response");
    let (one, other) = tokio::join!(
        client.get(target.url("/")).send(),
        client.get(target.url("/")).send(),
    );
    assert!(one.is_ok() && other.is_ok());
    let in_flight: Vec<_> = target
        .arrivals()
        .iter()
        .map(|seen| seen.in_flight)
        .collect();
    assert_eq!(in_flight, [1, 1, 2]);
    assert_eq!(target.connections(), 1);
}

#[tokio::test]
async fn goaway_disowns_a_first_stream() {
    let ca = TestCa::new();
    let target = tls::h2(&ca, Script::always(StreamAnswer::GoAway));
    let error = trusting(&ca)
        .get(target.url("/"))
        .send()
        .await
        .expect_err("disowned");
    let cause = cause(&error);
    assert!(cause.is_go_away() && cause.is_remote(), "{cause:?}");
    assert_eq!(cause.reason(), Some(h2::Reason::NO_ERROR));
    assert_eq!(verdicts(&target), [0]);
}

#[tokio::test]
async fn goaway_disowns_its_stream_and_no_earlier_one() {
    let ca = TestCa::new();
    let target = tls::h2(
        &ca,
        Script::list(vec![
            Answer::status(200).into(),
            Answer::status(200)
                .body("late")
                .after(Duration::from_millis(300))
                .into(),
            StreamAnswer::GoAway,
            Answer::status(200).into(),
        ]),
    );
    let client = trusting(&ca);
    client
        .get(target.url("/1"))
        .send()
        .await
        .expect("a response");
    let earlier = tokio::spawn(client.get(target.url("/2")).send());
    let arrives = async {
        while target.arrivals().len() < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, arrives)
        .await
        .expect("the earlier request arrives");
    let disowned = client
        .get(target.url("/3"))
        .send()
        .await
        .expect_err("disowned");
    assert!(cause(&disowned).is_go_away());
    assert!(!earlier.is_finished());
    let earlier = earlier.await.expect("no panic").expect("a response");
    assert_eq!(earlier.text().await.expect("a body"), "late");
    client
        .get(target.url("/4"))
        .send()
        .await
        .expect("a response");

    assert_eq!(verdicts(&target), [200, 200, 0, 200]);
    let connections: Vec<_> = target
        .arrivals()
        .iter()
        .map(|seen| seen.connection)
        .collect();
    assert_eq!(connections, [0, 0, 0, 1]);
}

#[tokio::test]
async fn a_refused_stream_is_reset_and_its_connection_lives_on() {
    let ca = TestCa::new();
    let target = tls::h2(
        &ca,
        Script::list(vec![StreamAnswer::Refuse, Answer::status(200).into()]),
    );
    let client = trusting(&ca);
    let refused = client
        .get(target.url("/"))
        .send()
        .await
        .expect_err("refused");
    assert_eq!(cause(&refused).reason(), Some(h2::Reason::REFUSED_STREAM));
    assert!(cause(&refused).is_reset() && cause(&refused).is_remote());
    client
        .get(target.url("/"))
        .send()
        .await
        .expect("a response");
    assert_eq!(verdicts(&target), [0, 200]);
    assert_eq!(target.connections(), 1);
}

#[tokio::test]
async fn a_client_that_repeats_by_itself_is_seen_to_do_so() {
    let ca = TestCa::new();
    for answer in [StreamAnswer::GoAway, StreamAnswer::Refuse] {
        let target = tls::h2(&ca, Script::list(vec![answer, Answer::status(200).into()]));
        let certificate = reqwest::Certificate::from_pem(ca.ca_pem.as_bytes());
        let client = crate::repeating_client()
            .tls_certs_only(certificate)
            .build()
            .expect("a client");
        client
            .get(target.url("/"))
            .send()
            .await
            .expect("a response");
        assert_eq!(verdicts(&target), [0, 200]);
    }
}

#[tokio::test]
async fn a_stream_that_the_client_abandons_is_over() {
    let ca = TestCa::new();
    let target = tls::h2(
        &ca,
        Script::list(vec![
            Answer::status(200).after(Duration::from_secs(3600)),
            Answer::status(200),
        ]),
    );
    let client = trusting(&ca);
    let impatient = client
        .get(target.url("/"))
        .timeout(Duration::from_millis(200))
        .send();
    assert!(impatient.await.expect_err("a timeout").is_timeout());
    let over = async {
        loop {
            client
                .get(target.url("/"))
                .send()
                .await
                .expect("a response");
            if target
                .arrivals()
                .last()
                .is_some_and(|seen| seen.in_flight == 1)
            {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, over)
        .await
        .expect("the abandoned request ends");
    assert_eq!(target.arrivals()[0].verdict, 0);
}

#[tokio::test]
async fn a_handshake_fails_when_the_authority_is_unknown_or_the_target_closes() {
    let ca = TestCa::new();
    let client = trusting(&ca);
    for target in [tls::unknown_ca(), tls::closing_in_handshake()] {
        let error = client
            .get(target.url("/"))
            .send()
            .await
            .expect_err("no handshake");
        assert!(error.is_connect(), "{error:?}");
        assert!(target.arrivals().is_empty());
        assert_eq!(target.connections(), 1);
    }
}

#[tokio::test]
async fn an_authority_is_trusted_only_by_those_who_were_given_it() {
    let (ours, theirs) = (TestCa::new(), TestCa::new());
    let target = tls::https(&ours, Script::always(Answer::status(200)));
    let refused = trusting(&theirs).get(target.url("/")).send().await;
    assert!(refused.expect_err("no handshake").is_connect());
    trusting(&ours)
        .get(target.url("/"))
        .send()
        .await
        .expect("a response");
    assert_eq!((target.connections(), target.arrivals().len()), (2, 1));
}
