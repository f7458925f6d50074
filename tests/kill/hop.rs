//! A redirect whose next hop waits is not asked for again.

use std::time::Duration;

use serde_json::json;

use crate::neighbour::{Neighbour, Tolerated};
use crate::support::loopback::{Answer, Request, Script, Target};
use crate::support::site::{Site, eventually, text};

#[test]
fn a_hop_that_waits_when_the_gate_is_killed_is_sent_once_and_from_where_it_was() {
    let far = Neighbour::new(
        Tolerated::Max {
            most: 1,
            seconds: 3,
            burst: 1,
        },
        Duration::ZERO,
    );
    let onward = far.target.origin();
    let near = Target::start(Script::new(move |request: &Request, _| {
        let status = if request.method == "POST" { 307 } else { 302 };
        Answer::status(status).header("location", &format!("{onward}{}", request.path))
    }));
    let site = Site::new(&format!(
        "[[target]]\nmatch = \"{}\"\nrate = \"50/s\"\nburst = 5\n{}",
        near.origin(),
        far.rule()
    ));
    site.tasks([
        json!({"id": "first", "url": far.target.url("/first"), "priority": 1}),
        json!({"id": "read", "url": near.url("/read")}),
        json!({"id": "write", "url": near.url("/write"), "method": "POST", "body": "twelve bytes"}),
    ]);

    let run = site.run();
    eventually("both were redirected, and wait", || {
        let listed = site.say(&["tasks", "--list", "--json"]);
        let waits = |id| {
            listed.out.lines().any(|line| {
                let row: serde_json::Value = serde_json::from_str(line).unwrap();
                text(&row, "id") == id && text(&row, "target") == far.target.origin()
            })
        };
        waits("read") && waits("write")
    });
    assert!(run.kill());
    assert_eq!(far.arrivals().len(), 1);
    site.run().end().with(0);

    let paths = |target: &Target| {
        let mut paths: Vec<_> = target
            .arrivals()
            .into_iter()
            .map(|arrival| (arrival.method, arrival.path, arrival.body_len))
            .collect();
        paths.sort();
        paths
    };
    let call = |method: &str, path: &str, body| (method.to_owned(), path.to_owned(), body);
    let redirected = [call("GET", "/read", 0), call("POST", "/write", 12)];
    assert_eq!(paths(&near), redirected);
    far.arrivals();
    let all = [&[call("GET", "/first", 0)][..], &redirected].concat();
    assert_eq!(paths(&far.target), all);
    for result in site.results() {
        assert_eq!(text(&result, "outcome"), "succeeded", "{result}");
        assert_eq!(result["attempts"], 1, "{result}");
    }
}
