//! Redirects to where a call may not go: followed through the gate, and refused there.

use std::net::IpAddr;

use serde_json::json;
use tidegate::audit::{Event, Refused};
use tidegate::outcome::Outcome;

use crate::opening;
use crate::support::gate::{names, task};
use crate::support::loopback::{Answer, Script, Target};

#[tokio::test]
async fn a_redirect_is_refused_at_the_hop_that_may_not_be() {
    let behind = IpAddr::from([127, 0, 0, 2]);
    let closed = Target::on(behind, Script::always(Answer::status(200)));
    let port = closed.addr().port();
    for (location, reason) in [
        ("http://10.0.0.1/", "address_blocked"),
        (
            "http://169.254.169.254/latest/meta-data/",
            "address_blocked",
        ),
        ("http://2852039166/", "address_blocked"),
        ("//[::1]/", "address_blocked"),
        ("http://[::ffff:10.0.0.1]/", "address_blocked"),
        ("https://192.168.1.1/", "address_blocked"),
        (&format!("http://127.0.0.2:{port}/"), "address_blocked"),
        (&format!("http://behind.test:{port}/"), "address_blocked"),
        ("ftp://127.0.0.1/", "unsupported_scheme"),
        ("file:///etc/passwd", "unsupported_scheme"),
        ("http://a..test/", "invalid_target"),
    ] {
        let reply = Answer::status(302).header("location", location);
        let here = Target::start(Script::always(reply));
        let mut setup = opening("127.0.0.1/32");
        setup.wire.lookup = names([("behind.test", &[behind])]);
        let gate = setup.open();
        let before = gate.left("http://behind.test/");
        let line = json!({"url": here.url("/"), "agent": "scout"});
        let results = gate.run(vec![task(&line)]).await;
        let [result] = &results[..] else {
            panic!("{location}: {results:?}");
        };
        assert_eq!(result.outcome, Outcome::Refused, "{location}");
        let error = result.error.as_deref().unwrap_or_default();
        assert!(error.contains(reason), "{location}: {error}");
        assert_eq!(here.arrivals().len(), 1, "{location}");
        assert_eq!(closed.connections(), 0, "{location}");
        assert_eq!(gate.left("http://behind.test/"), before, "{location}");
        let on_record = gate.events().await.into_iter().any(|event| {
            matches!(event, Event::Refused(Refused { reason: why, step, .. })
                if *why == *reason && &*step.agent == "scout")
        });
        assert!(on_record, "{location}");
    }
}
