//! `tasks`: counted and listed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Site, text};
use crate::{prompt, rule};

/// A store with tasks of two targets, in several states.
fn worked_on() -> (Site, Target, Target) {
    let open = Target::start(Script::by_path([
        ("/yes", Script::always(Answer::status(200))),
        ("/gone", Script::always(Answer::status(404))),
        ("/cut", Script::always(Answer::CloseAfterRequest)),
        ("/down", Script::always(Answer::status(500))),
    ]));
    let paused = Target::start(Script::always(
        Answer::status(429).header("retry-after", "3600"),
    ));
    let site = Site::new(&format!(
        "{}{}",
        rule(&open, "100/s", 10),
        rule(&paused, "100/s", 1)
    ));
    site.tasks([
        json!({"id": "yes", "url": open.url("/yes"), "agent": "scout"}),
        json!({"id": "gone", "url": open.url("/gone")}),
        json!({"id": "cut", "url": open.url("/cut"), "method": "POST"}),
        json!({"id": "failed", "url": open.url("/cut"), "max_attempts": 1}),
        json!({"id": "later", "url": open.url("/yes?later"), "not_before": "2199-01-01T00:00:00Z"}),
        json!({"id": "blocked", "url": "http://10.0.0.1/"}),
        json!({"id": "p1", "url": paused.url("/1")}),
        json!({"id": "p2", "url": paused.url("/2")}),
    ]);
    site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "2s"])
        .with(75);
    (site, open, paused)
}

fn counts(rows: &[Value]) -> BTreeMap<String, u64> {
    let count = |row: &Value| {
        let state = [text(row, "state"), text(row, "outcome")].join(" ");
        (state.trim().to_owned(), row["tasks"].as_u64().unwrap())
    };
    rows.iter().map(count).collect()
}

#[test]
fn tasks_are_counted_by_state_and_outcome_and_listed_by_any_of_them() {
    let (site, open, paused) = worked_on();
    let expected = [
        ("backoff", 1),
        ("complete ambiguous", 1),
        ("complete answered", 1),
        ("complete failed", 1),
        ("complete refused", 1),
        ("complete succeeded", 1),
        ("queued", 2),
    ];
    let expected: BTreeMap<_, _> = expected
        .map(|(state, count)| (state.to_owned(), count))
        .into();
    let found = counts(&site.rows(&["tasks"]));
    assert_eq!(found, expected);

    let listed = |filter: &[&str]| {
        let args = [&["tasks", "--list"], filter].concat();
        let rows = site.rows(&args);
        let mut ids: Vec<_> = rows.iter().map(|row| text(row, "id").to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(listed(&[]).len(), 8);
    assert_eq!(listed(&["--state", "queued"]), ["p1", "p2"]);
    assert_eq!(listed(&["--state", "backoff"]), ["later"]);
    assert_eq!(listed(&["--state", "complete"]).len(), 5);
    assert_eq!(listed(&["--outcome", "ambiguous"]), ["cut"]);
    assert_eq!(listed(&["--outcome", "refused"]), ["blocked"]);
    assert_eq!(listed(&["--target", &paused.origin()]), ["p1", "p2"]);
    assert_eq!(
        listed(&["--target", &open.origin(), "--state", "complete"]),
        ["cut", "failed", "gone", "yes"]
    );
    assert_eq!(listed(&["--state", "running"]), [""; 0]);
    assert_eq!(
        site.rows(&["tasks", "--state", "running"]),
        [Value::Null; 0]
    );

    let rows = site.rows(&["tasks", "--list"]);
    let by_id = |id| rows.iter().find(|row| text(row, "id") == id).unwrap();
    assert_eq!(text(by_id("yes"), "agent"), "scout");
    assert_eq!(text(by_id("later"), "until"), "2199-01-01T00:00:00.000Z");
    assert_eq!(text(by_id("p1"), "target"), paused.origin());
    let table = site.say(&["tasks"]).with(0);
    assert!(table.out.starts_with("STATE"), "{}", table.out);
    let table = site
        .say(&["tasks", "--list", "--outcome", "failed"])
        .with(0);
    assert!(
        table.out.starts_with("ID") && table.out.contains("failed"),
        "{}",
        table.out
    );
    assert_eq!(table.out.lines().count(), 2, "{}", table.out);
}

#[test]
fn results_are_had_from_the_store_while_a_run_works_and_after_the_file_is_gone() {
    let target = prompt();
    let site = Site::new(&rule(&target, "200/s", 10));
    site.tasks((0..20).map(|n| target.url(&format!("/{n}"))));
    site.run().end().with(0);
    let file = std::fs::read_to_string(site.path("out/results.jsonl")).unwrap();
    std::fs::remove_file(site.path("out/results.jsonl")).unwrap();
    let said = site.say(&["results", "--out", "out", "--json"]).with(0);
    assert_eq!(said.out, file, "line by line, byte by byte");
    let table = site.say(&["results", "--out", "out"]).with(0).out;
    assert!(
        table.starts_with("ID") && table.lines().count() == 21,
        "{table}"
    );

    let slow = crate::patient(std::time::Duration::from_secs(60));
    site.configure(&rule(&slow, "200/s", 10));
    site.tasks([slow.url("/slow")]);
    let mut run = site.run();
    site.until_open(&mut run);
    let said = site.say(&["results", "--out", "out", "--json"]).with(0);
    assert_eq!(said.out, file, "asked of the gate that runs");
    let said = site
        .say(&["results", "--out", "elsewhere", "--json"])
        .with(1);
    assert!(
        said.err.contains("elsewhere") && said.err.contains("/out"),
        "{}",
        said.err
    );
    assert!(run.kill());
}
