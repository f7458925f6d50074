//! Two processes and one store: a command asks the gate that runs, and a second gate is told no.

use std::time::Duration;

use crate::support::site::{Site, eventually, text};
use crate::{arrived, patient, prompt, rule};

#[test]
fn commands_ask_the_gate_that_holds_the_store() {
    let target = patient(Duration::from_millis(300));
    let site = Site::new(&rule(&target, "20/s", 5));
    site.tasks((0..60).map(|number| target.url(&format!("/{number}"))));
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("calls are under way", || target.arrivals().len() >= 3);

    let status = site.row(&["status"]);
    let job = &status["jobs"][0];
    let count = |name: &str| job[name].as_u64().unwrap();
    assert_eq!((&status["running"], count("tasks")), (&true.into(), 60));
    // Calls may end between the two counts.
    let states = count("queued") + count("running") + count("backoff");
    assert!(states.abs_diff(count("pending")) <= 10, "{job}");
    assert_eq!(text(&job["targets"][0], "target"), target.origin());
    let words = site.say(&["status"]).with(0);
    assert!(
        words.out.contains("a run is working on it"),
        "{}",
        words.out
    );

    let row = site.row(&["targets"]);
    assert!(
        row["tasks_waiting"].as_u64().unwrap() > 0 && row["calls"].as_u64().unwrap() > 0,
        "{row}"
    );
    eventually("a task is seen running", || {
        !site
            .rows(&["tasks", "--list", "--state", "running"])
            .is_empty()
    });
    assert_eq!(site.rows(&["budget", &target.origin()]).len(), 1);
    assert_eq!(
        text(&site.row(&["explain", &target.url("/x")]), "target"),
        target.origin()
    );
    assert!(!site.rows(&["audit", "events"]).is_empty());
    let said = site.say(&["budget", "nonsense"]).with(1);
    assert!(said.err.contains("nonsense"), "{}", said.err);
    assert!(run.is_running());
    run.end().with(0);
    assert_eq!(arrived(&target).len(), 60);
}

#[test]
fn a_second_run_on_the_same_store_is_told_no_and_disturbs_nothing() {
    let target = prompt();
    let site = Site::new(&rule(&target, "20/s", 1));
    site.tasks((0..60).map(|number| target.url(&format!("/{number}"))));
    let mut run = site.run();
    site.until_open(&mut run);
    for out in ["out", "other"] {
        let said = site.say(&["run", "tasks.jsonl", "--out", out]).with(1);
        assert!(said.err.contains("in use"), "{}", said.err);
    }
    assert!(run.is_running());
    run.end().with(0);
    assert_eq!((arrived(&target).len(), site.results().len()), (60, 60));
}

#[test]
fn two_stores_cannot_write_the_same_results() {
    let target = prompt();
    let site = Site::new(&rule(&target, "20/s", 1));
    site.tasks((0..60).map(|number| target.url(&format!("/{number}"))));
    let mut run = site.run();
    site.until_open(&mut run);
    let other = ["run", "tasks.jsonl", "--out", "out", "--store", "other"];
    let said = site.say(&other).with(1);
    assert!(said.err.contains("another run"), "{}", said.err);
    run.end().with(0);
    assert_eq!((arrived(&target).len(), site.results().len()), (60, 60));
}

#[test]
fn a_question_at_any_moment_of_a_run_has_an_answer() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks((0..60).map(|number| target.url(&format!("/{number}"))));
    site.write("none.jsonl", "");
    site.say(&["run", "none.jsonl", "--out", "none"]).with(0);
    let mut run = site.run();
    let mut asked = 0;
    while run.is_running() {
        site.row(&["status"]);
        asked += 1;
    }
    run.end().with(0);
    assert!(asked > 3, "{asked}");
}
