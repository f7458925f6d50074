//! `set` and `deny`: other limits or none at all, by an operator's word, with and without a gate
//! that runs.

use serde_json::Value;

use crate::support::loopback::Target;
use crate::support::site::{Site, eventually, text};
use crate::{arrived, prompt, rule};

/// A site whose store is there and whose tasks are all of one target.
fn site_of(target: &Target, rate: &str, tasks: usize) -> Site {
    let site = Site::new(&rule(target, rate, 1));
    site.tasks((0..tasks).map(|number| target.url(&format!("/{number}"))));
    site.write("none.jsonl", "");
    site.say(&["run", "none.jsonl", "--out", "none"]).with(0);
    site
}

const SIGNED: [&str; 4] = ["--by", "ana", "--note", "their operator called"];

fn set(site: &Site, target: &str, limits: &[&str]) -> Value {
    let words = [&["set", target], limits, &SIGNED].concat();
    site.row(&words)
}

fn kinds(site: &Site) -> Vec<String> {
    let events = site.rows(&["audit", "events"]);
    events
        .iter()
        .map(|row| text(row, "kind").to_owned())
        .collect()
}

#[test]
fn limits_set_before_a_run_hold_in_it_and_in_the_next_until_they_are_released() {
    let target = prompt();
    let site = site_of(&target, "50/s", 5);
    let url = target.url("/some/path");
    let row = set(&site, &url, &["--max", "1/h", "--for", "7d"]);
    assert_eq!(
        text(&row, "target"),
        target.origin(),
        "the key, not the URL"
    );
    assert_eq!(text(&row, "state"), "set");
    assert_eq!(row["limits"], serde_json::json!(["1/h burst 1"]));
    assert_eq!(
        row["instead_of"],
        serde_json::json!(["rate 50/s burst 1"]),
        "{row}"
    );
    for _ in 0..2 {
        site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "800ms"])
            .with(75);
        assert_eq!(arrived(&target).len(), 1);
    }
    let explained = site.row(&["explain", &url]);
    let limit = &explained["limits"][0];
    assert_eq!(
        (
            text(limit, "limit"),
            text(limit, "author"),
            text(limit, "note")
        ),
        ("1/h", "operator:ana", SIGNED[3])
    );
    for command in [&["explain", &url][..], &["budget", &url], &["targets"]] {
        let row = site.row(command);
        let set = &row["set"][0];
        assert_eq!(
            (text(set, "by"), text(set, "note"), text(set, "scope")),
            ("ana", SIGNED[3], "host"),
            "{row}"
        );
        assert_eq!(text(set, "until"), text(&row["set"][0], "until"));
        assert!(text(set, "until").ends_with('Z'), "{row}");
        let table = site.say(command).with(0).out;
        assert!(table.contains("ana") && table.contains("1/h"), "{table}");
    }

    let released = site.row(&["release", &url, "--by", "bob", "--note", "agreed"]);
    assert_eq!(released["lifted"], serde_json::json!(["set"]));
    site.run().end().with(0);
    assert_eq!(arrived(&target).len(), 5);
    let events = site.rows(&["audit", "events", "--target", &target.origin()]);
    let found = events.iter().find(|row| text(row, "kind") == "set");
    let found = found.expect("the change is on record");
    assert_eq!((text(found, "by"), text(found, "note")), ("ana", SIGNED[3]));
    assert!(text(found, "until") > text(found, "at"), "{found}");
    let envelopes = site.rows(&["audit", "envelopes"]);
    let by_hand = envelopes
        .iter()
        .filter(|row| row.to_string().contains("operator:ana"));
    assert_eq!(by_hand.count(), 1, "{envelopes:?}");
    let decisions = site.rows(&["audit", "decisions"]);
    assert!(decisions.iter().any(|row| text(row, "decision") == "set"));
}

#[test]
fn a_run_hears_of_limits_at_once_and_a_kill_does_not_lift_them() {
    let target = prompt();
    let site = site_of(&target, "20/s", 60);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("calls go out", || arrived(&target).len() >= 3);
    set(&site, &target.origin(), &["--max", "1/day", "--for", "7d"]);
    let budget = site.row(&["budget", &target.origin()]);
    assert_eq!(text(&budget["limits"][0], "limit"), "1/day");
    assert_eq!(text(&budget, "state"), "budget_empty", "spent stays spent");
    let running = ["tasks", "--list", "--state", "running"];
    eventually("what was granted before has ended", || {
        site.rows(&running).is_empty()
    });
    let before = arrived(&target).len();
    assert!(run.kill());
    site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "800ms"])
        .with(75);
    assert_eq!(arrived(&target).len(), before);
    assert!(before < 60);
    // Without a gate they can be taken back as well.
    site.row(&["release", &target.origin()]);
    site.run().end().with(0);
    assert_eq!(site.results().len(), 60);
}

#[test]
fn limits_set_for_a_while_end_by_themselves() {
    let target = prompt();
    let site = site_of(&target, "50/s", 10);
    set(&site, &target.origin(), &["--max", "1/day", "--for", "2s"]);
    // The run waits for a token of tomorrow; its upkeep sees that the word has ended.
    site.run().end().with(0);
    assert_eq!(arrived(&target).len(), 10);
    assert!(kinds(&site).contains(&"lapsed".to_owned()));
    assert!(site.row(&["targets"])["set"].is_null());
}

#[test]
fn tasks_of_a_denied_target_end_as_refused_and_others_go_on() {
    let (denied, free) = (prompt(), prompt());
    let site = Site::new(&format!(
        "{}{}",
        rule(&denied, "20/s", 1),
        rule(&free, "20/s", 1)
    ));
    site.tasks((0..30).flat_map(|number| {
        let path = format!("/{number}");
        [denied.url(&path), free.url(&path)]
    }));
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("calls go out", || arrived(&denied).len() >= 3);
    let origin = denied.origin();
    let words = [&["deny", &*origin], &SIGNED[..]].concat();
    assert_eq!(text(&site.row(&words), "state"), "denied");
    run.end().with(3);
    assert!(arrived(&denied).len() < 30);
    assert_eq!(arrived(&free).len(), 30);
    let results = site.results();
    let refused = |row: &&Value| text(row, "outcome") == "refused";
    let refused: Vec<_> = results.iter().filter(refused).collect();
    assert_eq!(refused.len(), 30 - arrived(&denied).len());
    for row in refused {
        let error = text(row, "error");
        assert!(
            error.contains("denied") && error.contains(SIGNED[3]),
            "{row}"
        );
    }
    let explained = site.row(&["explain", &denied.url("/x")]);
    assert!(
        text(&explained, "blocked").starts_with("denied"),
        "{explained}"
    );
    assert_eq!(
        text(&site.row(&["budget", &denied.origin()]), "state"),
        "denied"
    );
    assert!(kinds(&site).contains(&"denied".to_owned()));
    site.row(&["release", &denied.origin()]);
    assert_eq!(
        text(&site.row(&["budget", &denied.origin()]), "state"),
        "open"
    );
}

#[test]
fn what_cannot_be_set_says_what_would_be_right() {
    let target = prompt();
    let site = site_of(&target, "20/s", 1);
    let origin = target.origin();
    for (words, right) in [
        (&["--for", "1h"][..], "--max"),
        (&["--max", "6/min"], "--for"),
        (
            &["--max", "6/min", "--rate", "1/s", "--for", "1h"],
            "--rate",
        ),
        (&["--quota", "6/day", "--for", "1h"], "--reset"),
        (
            &[
                "--quota", "6/day", "--reset", "UTC", "--burst", "2", "--for", "1h",
            ],
            "--burst",
        ),
        (&["--max", "6/min", "--burst", "7", "--for", "1h"], "burst"),
        (&["--max", "0/min", "--for", "1h"], "at least 1"),
        (&["--max", "6/min", "--for", "0s"], "--for"),
        (&["--max", "6/min", "--for", "soon"], "7d"),
    ] {
        let said = site.say(&[&["set", &origin], words].concat()).with(2);
        assert!(said.err.contains(right), "{words:?}: {}", said.err);
    }
    for target in ["pool:none", &format!("{origin}#none")] {
        let said = site
            .say(&["set", target, "--max", "1/s", "--for", "1h"])
            .with(1);
        assert!(said.err.contains(target), "{}", said.err);
    }
    for command in ["set", "deny", "release"] {
        let help = site.say(&[command, "--help"]).with(0).out;
        assert!(help.contains("Example:"), "{help}");
    }
}
