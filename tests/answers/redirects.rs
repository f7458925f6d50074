//! A redirect is another call: to another target perhaps, on a token of its own, with what may go
//! along and nothing else.

use serde_json::json;
use tidegate::outcome::{End, Outcome};

use crate::run_one;
use crate::support::gate::{Gate, Setup, counted};
use crate::support::loopback::{Answer, Arrival, Script, Target};

fn to(status: u16, location: &str) -> Answer {
    Answer::status(status).header("location", location).into()
}

fn gate(targets: &[&Target], max_redirects: u32) -> Gate {
    let setup = targets.iter().fold(Setup::default(), |setup, target| {
        setup.ruled(&target.origin(), vec![counted()], |conduct| {
            conduct.max_redirects = max_redirects;
        })
    });
    setup.open()
}

fn paths(target: &Target) -> Vec<String> {
    target
        .arrivals()
        .into_iter()
        .map(|seen| seen.path)
        .collect()
}

#[tokio::test]
async fn a_loop_ends_at_the_last_allowed_hop() {
    let target = Target::start(Script::always(to(302, "/again")));
    let gate = gate(&[&target], 3);
    let result = run_one(&gate, &json!({"url": target.url("/"), "max_attempts": 9})).await;
    assert_eq!(
        (result.outcome, result.status),
        (Outcome::Answered, Some(302))
    );
    assert_eq!(result.error.as_deref(), Some("more than 3 redirects"));
    assert_eq!(paths(&target), ["/", "/again", "/again", "/again"]);
    assert_eq!(gate.spent(&target.origin()), 4);
    let hops: Vec<_> = gate
        .calls()
        .await
        .iter()
        .map(|call| call.intent.hop)
        .collect();
    assert_eq!(hops, [0, 1, 2, 3]);
}

#[tokio::test]
async fn two_targets_that_send_a_call_back_and_forth_are_each_charged_for_what_they_saw() {
    let there = Target::start(Script::new(|request, _| {
        let back = request.header("referer").unwrap_or("none").to_owned();
        assert_eq!(back, "none", "nobody is told where a call came from");
        let here = request.path.split("back=").nth(1).unwrap_or_default();
        to(307, here)
    }));
    let location = there.url("/?back=");
    let here = Target::start(Script::new(move |request, _| {
        let host = request.header("host").unwrap_or_default();
        to(307, &format!("{location}http://{host}/"))
    }));
    let gate = gate(&[&here, &there], 4);
    let result = run_one(&gate, &json!({"url": here.url("/")})).await;
    assert_eq!(result.outcome, Outcome::Answered);
    let seen =
        [&here, &there].map(|target| (target.arrivals().len(), gate.spent(&target.origin())));
    assert_eq!(seen, [(3, 3), (2, 2)]);
}

#[tokio::test]
async fn no_redirects_means_that_the_first_is_the_answer() {
    let target = Target::start(Script::always(to(301, "/elsewhere")));
    let result = run_one(&gate(&[&target], 0), &json!({"url": target.url("/")})).await;
    assert_eq!(
        (result.outcome, result.status),
        (Outcome::Answered, Some(301))
    );
    assert_eq!(target.arrivals().len(), 1);
}

#[tokio::test]
async fn a_refusal_at_the_last_allowed_hop_is_waited_for_and_not_another_hop() {
    let target = Target::start(Script::new(|request, earlier| match &*request.path {
        "/0" => to(302, "/1"),
        "/1" => to(302, "/2"),
        _ if earlier == 2 => Answer::status(429).header("retry-after-ms", "100").into(),
        _ => Answer::status(200).body("there").into(),
    }));
    let gate = gate(&[&target], 2);
    let result = run_one(&gate, &json!({"url": target.url("/0"), "max_attempts": 1})).await;
    assert_eq!((result.outcome, result.attempts), (Outcome::Succeeded, 1));
    assert_eq!(result.final_url, Some(target.url("/2")));
    assert_eq!(paths(&target), ["/0", "/1", "/2", "/2"]);
    assert_eq!(gate.spent(&target.origin()), 4);
    let ends = gate.ends(&target.origin()).await;
    use End::{Answered, Throttled};
    assert_eq!(ends, [Answered, Answered, Throttled, Answered]);
}

/// What the second target saw of a call by this method and status.
async fn hop(method: &str, status: u16, to_another: bool) -> Arrival {
    let there = Target::start(Script::always(Answer::status(200)));
    let location = if to_another {
        there.url("/to")
    } else {
        "/to".into()
    };
    let here = Target::start(Script::new(move |request, _| match &*request.path {
        "/to" => Answer::status(200).into(),
        _ => to(status, &location),
    }));
    let gate = gate(&[&here, &there], 5);
    let line = json!({
        "url": format!("http://ada:hunter2@{}/from", here.addr()),
        "method": method,
        "body": "seven",
        "idempotency_key": "key-1",
        "headers": {
            "accept": "text/html",
            "accept-language": "en",
            "content-type": "text/plain",
            "cookie": "session=hunter2",
            "x-api-key": "hunter2",
            "x-trace": "1",
        },
    });
    let result = run_one(&gate, &line).await;
    assert_eq!(result.outcome, Outcome::Succeeded);
    let first = &here.arrivals()[0];
    // RFC 7617: ada:hunter2
    assert_eq!(
        first.header("authorization"),
        Some("Basic YWRhOmh1bnRlcjI=")
    );
    assert_eq!(
        (first.header("cookie"), first.body_len),
        (Some("session=hunter2"), 5)
    );
    let second = if to_another { &there } else { &here };
    second.arrivals().pop().expect("a second call")
}

#[tokio::test]
async fn secrets_stay_with_the_origin_they_were_given_to() {
    let seen = hop("PUT", 307, true).await;
    assert!(
        !format!("{:?}", seen.headers).contains("hunter2"),
        "{seen:?}"
    );
    let mut names: Vec<_> = seen.headers.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    let public = [
        "accept",
        "accept-language",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "user-agent",
    ];
    assert_eq!(names, public);
    assert_eq!((&*seen.method, seen.body_len), ("PUT", 5));
    assert_eq!(seen.header("idempotency-key"), Some("key-1"));
}

#[tokio::test]
async fn within_an_origin_everything_goes_along() {
    let seen = hop("PUT", 308, false).await;
    for (name, value) in [
        ("authorization", "Basic YWRhOmh1bnRlcjI="),
        ("cookie", "session=hunter2"),
        ("x-api-key", "hunter2"),
        ("x-trace", "1"),
        ("idempotency-key", "key-1"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!((&*seen.method, seen.body_len), ("PUT", 5));
}

#[tokio::test]
async fn a_post_becomes_a_get_without_its_body_where_the_status_says_so() {
    for (status, method, body_len) in [
        (301, "GET", 0),
        (302, "GET", 0),
        (303, "GET", 0),
        (307, "POST", 5),
        (308, "POST", 5),
    ] {
        for to_another in [false, true] {
            let seen = hop("POST", status, to_another).await;
            assert_eq!(
                (&*seen.method, seen.body_len),
                (method, body_len),
                "{status}"
            );
            assert_eq!(
                seen.header("content-type").is_some(),
                body_len > 0,
                "{status}"
            );
        }
    }
}

#[tokio::test]
async fn what_was_left_behind_does_not_come_back_with_the_way() {
    let here = Target::start(Script::new(|request, _| match &*request.path {
        "/home" => Answer::status(200).into(),
        path => to(302, path.trim_start_matches("/?to=")),
    }));
    let there = Target::start(Script::always(to(302, &here.url("/home"))));
    let gate = gate(&[&here, &there], 5);
    let url = here.url(&format!("/?to={}", there.url("/")));
    let line = json!({"url": url, "headers": {"x-api-key": "hunter2"}});
    assert_eq!(run_one(&gate, &line).await.outcome, Outcome::Succeeded);
    let keys: Vec<_> = here
        .arrivals()
        .iter()
        .map(|seen| seen.header("x-api-key").map(str::to_owned))
        .collect();
    assert_eq!(keys, [Some("hunter2".to_owned()), None]);
    assert_eq!(there.arrivals()[0].header("x-api-key"), None);
}

#[tokio::test]
async fn a_place_too_long_to_be_called_is_refused_and_harms_nobody() {
    let there = Target::start(Script::always(Answer::status(200)));
    for length in [65_534, 65_535, 65_536, 65_537, 100_000] {
        let mut location = there.url("/");
        location.push_str(&"x".repeat(length - location.len()));
        let here = Target::start(Script::always(to(302, &location)));
        let gate = gate(&[&here, &there], 5);
        let arrived = there.arrivals().len();
        let line = json!({"url": here.url("/"), "max_attempts": 1});
        let result = run_one(&gate, &line).await;
        let called = there.arrivals().len() - arrived;
        let expected = if called == 1 {
            Outcome::Succeeded
        } else {
            Outcome::Refused
        };
        assert_eq!(result.outcome, expected, "{length}: {:?}", result.error);
        assert_eq!(called == 1, length <= 65_534, "{length}");
        // Whoever else calls there is not held up by it.
        let sent = gate.send("GET", &there.url("/")).await;
        assert!(
            matches!(sent, tidegate::egress::Sent::Answered(_)),
            "{length}: {sent:?}"
        );
    }
}
