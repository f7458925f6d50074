//! `audit`: the record in its five forms, filtered, from a gate that runs and from a store alone.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Site, text};
use crate::{prompt, rule};

/// A store with calls of two agents to two targets, one of which has refused.
fn recorded() -> (Site, Target, Target) {
    let open = prompt();
    let full = Target::start(Script::always(
        Answer::status(429).header("retry-after", "3600"),
    ));
    let site = Site::new(&format!(
        "{}{}",
        rule(&open, "20/s", 2),
        rule(&full, "20/s", 1)
    ));
    let call = |number: usize, target: &Target, agent: &str| {
        json!({"url": target.url(&format!("/{number}")), "agent": agent, "trajectory": "r1",
               "step": number.to_string(), "goal": "map"})
    };
    let mut tasks: Vec<_> = (0..10).map(|number| call(number, &open, "scout")).collect();
    tasks.extend((10..14).map(|number| call(number, &open, "miner")));
    tasks.extend((14..16).map(|number| call(number, &full, "miner")));
    tasks.push(json!({"url": "http://10.0.0.1/", "agent": "miner"}));
    site.tasks(tasks);
    site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "2s"])
        .with(75);
    (site, open, full)
}

fn kinds(rows: &[Value]) -> BTreeSet<&str> {
    rows.iter().map(|row| text(row, "kind")).collect()
}

#[test]
fn the_record_is_told_in_all_its_forms() {
    let (site, open, full) = recorded();
    let events = site.rows(&["audit", "events"]);
    for row in &events {
        assert!(
            text(row, "at").ends_with('Z') && !text(row, "kind").is_empty(),
            "{row}"
        );
    }
    let expected = [
        "call", "closed", "deferred", "opened", "paused", "refused", "revised", "task",
    ];
    assert_eq!(kinds(&events), expected.into());
    let calls: Vec<_> = events
        .iter()
        .filter(|row| text(row, "kind") == "call")
        .collect();
    assert_eq!(calls.len(), 15);
    for call in calls {
        assert_eq!(
            (text(call, "trajectory"), text(call, "goal")),
            ("r1", "map"),
            "{call}"
        );
        assert!(call["envelope_revision"].as_u64().is_some(), "{call}");
    }

    for (form, more) in [
        ("decisions", &[][..]),
        ("windows", &["--width", "1s"]),
        ("windows", &[]),
        ("who", &["--by", "agent"]),
        ("who", &["--by", "trajectory"]),
        ("who", &["--by", "step"]),
        ("who", &["--by", "goal"]),
        ("who", &["--by", "target"]),
        ("envelopes", &[]),
    ] {
        let args = [&["audit", form], more].concat();
        let rows = site.rows(&args);
        assert!(
            !rows.is_empty() && rows.iter().all(Value::is_object),
            "{args:?}"
        );
        let table = site.say(&args).with(0);
        assert_eq!(
            table.out.lines().count(),
            rows.len() + 1,
            "{args:?}: {}",
            table.out
        );
    }
    let who = site.rows(&["audit", "who", "--by", "agent"]);
    let calls = |agent: &str| {
        let row = who.iter().find(|row| text(row, "agent") == agent);
        row.and_then(|row| row["calls"].as_u64())
    };
    assert_eq!((calls("scout"), calls("miner")), (Some(10), Some(5)));
    let envelopes = site.rows(&["audit", "envelopes"]).len();
    assert!(envelopes >= 1, "two targets may share one");
    let windows = site.rows(&["audit", "windows", "--target", &open.origin()]);
    let sum: u64 = windows.iter().filter_map(|row| row["calls"].as_u64()).sum();
    assert_eq!(sum, 14);
    assert!(
        windows
            .iter()
            .all(|row| text(row, "target") != full.origin())
    );
}

#[test]
fn the_record_can_be_filtered() {
    let (site, open, full) = recorded();
    let calls = |filter: &[&str]| {
        let rows = site.rows(&[&["audit", "events"], filter].concat());
        rows.iter()
            .filter(|row| text(row, "kind") == "call")
            .count()
    };
    assert_eq!(calls(&["--target", &open.origin()]), 14);
    assert_eq!(calls(&["--target", &full.url("/any?thing")]), 1);
    assert_eq!(calls(&["--agent", "scout"]), 10);
    assert_eq!(calls(&["--agent", "miner", "--target", &open.origin()]), 4);
    assert_eq!(calls(&["--trajectory", "r1"]), 15);
    assert_eq!(calls(&["--trajectory", "r2"]), 0);
    assert_eq!(calls(&["--site", "127.0.0.1"]), 15);
    assert_eq!(calls(&["--from", "1h"]), 15);
    assert_eq!(calls(&["--to", "1h"]), 0);
    assert_eq!(calls(&["--from", "2999-01-01"]), 0);
    assert_eq!(
        calls(&["--from", "2020-01-01T00:00:00+02:00", "--to", "2999-01-01"]),
        15
    );
    for args in [
        &["audit", "events", "--from", "yesterday"][..],
        &["audit", "windows", "--width", "wide"],
    ] {
        site.say(args).with(2);
    }
    site.say(&["audit", "events", "--target", "ftp://a.example/"])
        .with(1);
}

#[test]
fn nothing_secret_is_on_record_or_said() {
    let target = prompt();
    let site = Site::new(&rule(&target, "20/s", 2));
    let url = target
        .url("/users/someone@example.org?key=hunter2")
        .replace("//", "//me:pw4me@");
    site.tasks([
        json!({"url": url, "headers": {"authorization": "env:SECRET_TOKEN", "x-key": "hunter3"},
                       "method": "POST", "body": "hunter4"}),
    ]);
    let mut command = site.command(&["run", "tasks.jsonl", "--out", "out"]);
    command
        .env("SECRET_TOKEN", "hunter1")
        .env("RUST_LOG", "trace,sled=info");
    let said = site.launch(command).end().with(0);
    assert_eq!(
        target.arrivals()[0].header("authorization"),
        Some("hunter1")
    );
    let mut told = said.err;
    for form in ["events", "decisions", "windows", "who", "envelopes"] {
        told += &site.say(&["audit", form, "--json"]).with(0).out;
    }
    told += &std::fs::read_to_string(site.path("out/results.jsonl")).unwrap();
    told += &site.say(&["tasks", "--list", "--json"]).with(0).out;
    for secret in ["hunter1", "hunter3", "hunter4", "pw4me"] {
        assert!(!told.contains(secret), "{secret}");
    }
    // Results name the URL as it was asked for; the record does not.
    let audit = site.say(&["audit", "events", "--json"]).out;
    assert!(
        !audit.contains("hunter2") && !audit.contains("someone@example.org"),
        "{audit}"
    );
    let store = std::fs::read(site.path("store/db/db")).unwrap();
    let secret = "hunter1";
    assert!(
        !store
            .windows(secret.len())
            .any(|part| part == secret.as_bytes()),
        "{secret}"
    );
}
