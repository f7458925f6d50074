//! When will it end, and what bounds it: before a run (`run --dry-run`) and during one (`status`).

use serde_json::{Value, json};

use crate::support::site::{Site, eventually, text};
use crate::{arrived, patient, prompt, rule};
use std::time::Duration;

fn seconds_ahead(row: &Value, field: &str) -> i64 {
    let at: jiff::Timestamp = text(row, field).parse().unwrap();
    at.as_second() - jiff::Timestamp::now().as_second()
}

fn predicted(site: &Site) -> Value {
    site.row(&["run", "tasks.jsonl", "--out", "out", "--dry-run"])
}

#[test]
fn a_dry_run_tells_the_end_and_the_budget_that_bounds_it_and_sends_nothing() {
    let (slow, fast) = (prompt(), prompt());
    let site = Site::new(&(rule(&slow, "6/min", 1) + &rule(&fast, "1000/s", 10)));
    let tasks =
        |target: String, count| (0..count).map(move |n| json!({"url": format!("{target}/{n}")}));
    let all = tasks(slow.origin(), 31).chain(tasks(fast.origin(), 200));
    // Asked for twice is done once; what cannot be sent takes no budget.
    let again = tasks(slow.origin(), 5);
    let blocked = [json!({"url": "http://10.1.2.3/"})];
    site.tasks(all.chain(again).chain(blocked));
    let row = predicted(&site);
    assert_eq!(
        (&row["tasks"], &row["new"], &row["targets"]),
        (&json!(232), &json!(232), &json!(2))
    );
    assert_eq!(
        (&row["refused"], &row["done_before"]),
        (&json!(1), &json!(0))
    );
    // Ten seconds apart and a margin of 25 ms each.
    assert!(
        (295..=310).contains(&seconds_ahead(&row, "ends_at")),
        "{row}"
    );
    let by = &row["bound_by"];
    assert_eq!(
        (text(by, "scope"), text(by, "name")),
        ("host", &*slow.origin())
    );
    assert_eq!((text(by, "bound"), &by["calls"]), ("6/min", &json!(31)));
    assert!(arrived(&slow).is_empty() && arrived(&fast).is_empty());
    assert!(
        !site.path("out").exists() && !site.store().exists(),
        "nothing is left behind"
    );

    let said = site.say(&["run", "tasks.jsonl", "--dry-run"]).with(0);
    for words in [
        "232 tasks at 2 targets",
        "at the earliest",
        "6/min",
        "nothing was sent",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
}

#[test]
fn a_dry_run_knows_what_was_done_what_is_left_and_what_was_spent() {
    let target = prompt();
    let site = Site::new(&rule(&target, "6/min", 10));
    site.tasks((0..10).map(|n| target.url(&format!("/{n}"))));
    site.run().end().with(0);
    // Two of those that are done are in the list twice.
    let lines = (0..16).chain(0..2);
    site.tasks(lines.map(|n| target.url(&format!("/{n}"))));
    let row = predicted(&site);
    assert_eq!(
        (&row["done_before"], &row["new"], &row["left_over"]),
        (&json!(10), &json!(6), &json!(0))
    );
    // The burst is spent: the first of the six waits as well.
    assert!((45..=62).contains(&seconds_ahead(&row, "ends_at")), "{row}");
    assert_eq!(arrived(&target).len(), 10);
    // What a run leaves over is counted once.
    let run = site.start(&["run", "tasks.jsonl", "--out", "out", "--deadline", "1s"]);
    run.end().with(75);
    let row = predicted(&site);
    let count = |name: &str| row[name].as_u64().unwrap();
    assert_eq!(
        (count("tasks"), count("new")),
        (count("left_over"), 0),
        "{row}"
    );
    assert_eq!(count("done_before") + count("left_over"), 16);
}

/// The job that is worked on.
fn job(site: &Site) -> Value {
    let jobs = site.row(&["status"])["jobs"].as_array().unwrap().clone();
    let found = jobs
        .into_iter()
        .find(|job| text(job, "out").ends_with("/out"));
    found.expect("the job of the run")
}

#[test]
fn a_status_tells_the_pace_the_end_and_what_waits_for_an_operator() {
    let (slow, held) = (patient(Duration::from_millis(5)), prompt());
    let site = Site::new(&(rule(&slow, "60/min", 1) + &rule(&held, "100/s", 1)));
    let urls = (0..100).map(|n| slow.url(&format!("/{n}")));
    site.tasks(urls.chain((0..3).map(|n| held.url(&format!("/{n}")))));
    // A store must be there to hold anything in.
    site.write("none.jsonl", "");
    site.say(&["run", "none.jsonl", "--out", "none"]).with(0);
    let origin = held.origin();
    site.say(&["hold", &origin, "--by", "ana", "--note", "asked to"])
        .with(0);
    let run = site.run();
    eventually("it works", || arrived(&slow).len() > 1);
    eventually("its list is read", || job(&site)["reading"] == json!(false));
    let row = job(&site);
    assert_eq!(
        (&row["endless"], &row["ends_at"]),
        (&json!(3), &Value::Null),
        "{row}"
    );
    assert_eq!(text(&row["bound_by"], "bound"), "held");
    site.say(&["release", &held.origin(), "--by", "ana", "--note", "agreed"])
        .with(0);
    eventually("the held ones are done", || arrived(&held).len() == 3);
    let row = job(&site);
    let by = &row["bound_by"];
    assert_eq!(
        (text(by, "name"), text(by, "bound")),
        (&*slow.origin(), "60/min")
    );
    let left = row["pending"].as_i64().unwrap();
    assert!(
        (left - 5..=left + 10).contains(&seconds_ahead(&row, "ends_at")),
        "{row}"
    );
    let words = site.say(&["status"]).with(0).out;
    assert!(
        words.contains("at the earliest") && words.contains("60/min"),
        "{words}"
    );
    assert!(run.kill());
}
