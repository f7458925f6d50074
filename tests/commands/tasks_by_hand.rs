//! `tasks cancel` and `tasks retry`, with and without a gate that runs.

use serde_json::{Value, json};

use crate::support::loopback::{Answer, Request, Script, Target};
use crate::support::site::{Site, eventually, text};
use crate::{arrived, prompt, rule};

fn site_of(target: &Target, rate: &str, tasks: usize) -> Site {
    let site = Site::new(&rule(target, rate, 1));
    let line =
        |number| json!({"id": format!("t{number}"), "url": target.url(&format!("/{number}"))});
    site.tasks((0..tasks).map(line));
    site
}

/// How many tasks came to what.
fn counts(rows: &[Value]) -> Vec<(&str, u64)> {
    let count = |row: &'_ Value| row["tasks"].as_u64().unwrap();
    rows.iter()
        .map(|row| (text(row, "result"), count(row)))
        .collect()
}

fn outcomes(site: &Site, outcome: &str) -> usize {
    let results = site.results();
    results
        .iter()
        .filter(|row| text(row, "outcome") == outcome)
        .count()
}

#[test]
fn tasks_that_wait_are_called_off_and_no_call_of_theirs_arrives() {
    let target = prompt();
    let site = site_of(&target, "1/day", 6);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("one task is complete", || site.results().len() == 1);
    let rows = site.rows(&["tasks", "cancel", "t1", "t2", "t0"]);
    assert_eq!(counts(&rows), [("cancelled", 2), ("complete", 1)]);
    let said = site.say(&["tasks", "cancel", "nobody", "t3"]).with(1);
    assert!(said.err.contains("nobody"), "{}", said.err);
    let rows = site.rows(&["tasks", "cancel", "--target", &target.origin()]);
    assert_eq!(counts(&rows), [("cancelled", 2)]);
    run.end().with(3);
    assert_eq!(arrived(&target), ["GET /0"]);
    assert_eq!(outcomes(&site, "cancelled"), 5);
    let what = site.rows(&["audit", "events"]);
    let cancelled = what.iter().filter(|row| text(row, "what") == "cancelled");
    assert_eq!(cancelled.count(), 5);
}

#[test]
fn what_waits_is_counted_as_it_is_listed_and_thousands_are_called_off() {
    let target = prompt();
    let site = site_of(&target, "1/day", 2500);
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("one task is complete, and the list is read", || {
        let job = &site.row(&["status"])["jobs"][0];
        (&job["complete"], &job["tasks"]) == (&json!(1), &json!(2500))
    });
    let listed = site.rows(&["tasks", "--list"]);
    for row in site.rows(&["tasks"]) {
        let alike = |other: &&Value| other["state"] == row["state"];
        let alike = listed.iter().filter(alike).count() as u64;
        assert_eq!(row["tasks"], alike, "{row}");
    }
    let counted = |words: &[&str]| -> u64 {
        let rows = site.rows(words);
        rows.iter().map(|row| row["tasks"].as_u64().unwrap()).sum()
    };
    assert_eq!(counted(&["tasks"]), 2500);
    let queued = counted(&["tasks", "--state", "queued"]);
    let backoff = counted(&["tasks", "--state", "backoff"]);
    assert_eq!(queued + backoff, 2499);
    assert_eq!(counted(&["tasks", "--target", &target.origin()]), 2500);
    let rows = site.rows(&["tasks", "cancel", "--all"]);
    assert_eq!(counts(&rows), [("cancelled", 2499)]);
    run.end().with(3);
    assert_eq!(outcomes(&site, "cancelled"), 2499);
}

#[test]
fn a_task_that_may_not_begin_yet_has_not_failed() {
    let target = prompt();
    let failing = Target::start(Script::always(Answer::status(500)));
    let site = Site::new(&(rule(&target, "50/s", 1) + &rule(&failing, "50/s", 1)));
    site.tasks([
        json!({"id": "later", "url": target.url("/"), "not_before": "2100-01-01T00:00:00Z"}),
        json!({"id": "fails", "url": failing.url("/"), "max_attempts": 50}),
    ]);
    let causes = || -> Vec<(String, String)> {
        let rows = site.rows(&["tasks", "--list", "--state", "backoff"]);
        let cause = |row: &Value| (text(row, "id").to_owned(), text(row, "cause").to_owned());
        let mut causes: Vec<_> = rows.iter().map(cause).collect();
        causes.sort();
        causes
    };
    let [fails, later] = [("fails", "failed"), ("later", "not_before")]
        .map(|(id, cause)| (id.to_owned(), cause.to_owned()));
    let mut run = site.run();
    site.until_open(&mut run);
    eventually("both wait", || causes() == [fails.clone(), later.clone()]);
    run.signal("TERM");
    run.end().with(143);
    assert!(causes().contains(&later), "{:?}", causes());
}

#[test]
fn on_a_store_that_nobody_runs_they_are_called_off_as_well() {
    let target = prompt();
    let site = site_of(&target, "1/day", 5);
    site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "500ms"])
        .with(75);
    let rows = site.rows(&["tasks", "cancel", "--all"]);
    assert_eq!(counts(&rows), [("cancelled", 4)]);
    assert_eq!(
        counts(&site.rows(&["tasks", "cancel", "--all"])),
        [("none", 0)]
    );
    let status = site.row(&["status"]);
    assert_eq!(status["jobs"][0]["pending"], 0, "{status}");
    site.run().end().with(3);
    assert_eq!(
        (arrived(&target).len(), outcomes(&site, "cancelled")),
        (1, 4)
    );
}

#[test]
fn a_task_that_failed_is_done_again_by_the_next_run_of_its_list() {
    let answer = |request: &Request, earlier: usize| match (request.path.as_str(), earlier) {
        ("/1", 0) => Answer::status(404),
        _ => Answer::status(200),
    };
    let times = std::sync::Mutex::new(std::collections::HashMap::<String, usize>::new());
    let target = Target::start(Script::new(move |request: &Request, _| {
        let mut times = times.lock().unwrap();
        let earlier = times.entry(request.path.clone()).or_default();
        *earlier += 1;
        answer(request, *earlier - 1)
    }));
    let site = site_of(&target, "50/s", 3);
    site.run().end().with(0);
    assert_eq!(outcomes(&site, "answered"), 1);
    let rows = site.rows(&["tasks", "retry", "--all"]);
    assert_eq!(counts(&rows), [("again", 1), ("succeeded already", 2)]);
    assert_eq!(
        counts(&site.rows(&["tasks", "retry", "t1", "t2"])),
        [("again already", 1), ("succeeded already", 1)]
    );
    let words = ["tasks", "retry", "t2", "--outcome", "failed"];
    assert_eq!(counts(&site.rows(&words)), [("does not match", 1)]);
    let status = site.row(&["status"]);
    let job = &status["jobs"][0];
    assert_eq!(
        (&job["again"], &job["outcomes"]["answered"]),
        (&json!(1), &json!(0)),
        "{status}"
    );

    // A list without it changes nothing; the list with it does it once.
    site.write("none.jsonl", "");
    site.say(&["run", "none.jsonl", "--out", "out"]).with(0);
    assert_eq!(arrived(&target).len(), 3);
    for _ in 0..2 {
        site.run().end().with(0);
        assert_eq!(arrived(&target).len(), 4);
    }
    let lines: Vec<_> = site
        .results()
        .into_iter()
        .filter(|row| text(row, "id") == "t1")
        .collect();
    let told: Vec<_> = lines
        .iter()
        .map(|row| (text(row, "outcome"), &row["attempts"]))
        .collect();
    assert_eq!(told, [("answered", &json!(1)), ("succeeded", &json!(1))]);
    let status = site.row(&["status"]);
    let job = &status["jobs"][0];
    assert_eq!(
        (&job["tasks"], &job["complete"], &job["pending"]),
        (&json!(3), &json!(3), &json!(0))
    );
    assert!(job["again"].is_null());
    let listed = site.rows(&["tasks", "--list", "--state", "complete"]);
    assert_eq!(listed.len(), 3, "the last line of an id counts");
    assert!(listed.iter().all(|row| text(row, "outcome") == "succeeded"));
}

#[test]
fn a_mark_outlives_a_kill_and_another_call_of_that_id_is_still_a_conflict() {
    let target = Target::start(Script::always(Answer::status(404)));
    let site = site_of(&target, "50/s", 2);
    site.run().end().with(0);
    site.row(&["tasks", "retry", "t0"]);
    let other = json!({"id": "t0", "url": target.url("/other")});
    site.write("other.jsonl", &format!("{other}\n"));
    site.say(&["run", "other.jsonl", "--out", "out"]).with(2);
    let mut run = site.run();
    site.until_open(&mut run);
    run.kill();
    site.run().end().with(0);
    assert!((3..=4).contains(&arrived(&target).len()));
    assert_eq!(site.results().len(), 3);
}

#[test]
fn what_may_have_been_executed_is_repeated_only_by_a_persons_word() {
    let target = Target::start(Script::always(Answer::CloseAfterRequest));
    let site = Site::new(&rule(&target, "50/s", 1));
    site.tasks([json!({"id": "p", "method": "POST", "url": target.url("/p"), "body": "x"})]);
    site.run().end().with(3);
    assert_eq!(outcomes(&site, "ambiguous"), 1);
    for words in [&["tasks", "retry", "--all"][..], &["tasks", "retry", "p"]] {
        let rows = site.rows(words);
        assert_eq!(counts(&rows), [("ambiguous: only with --ambiguous", 1)]);
    }
    site.run().end().with(3);
    assert_eq!(arrived(&target).len(), 1);
    let rows = site.rows(&["tasks", "retry", "p", "--ambiguous"]);
    assert_eq!(counts(&rows), [("again", 1)]);
    site.run().end().with(3);
    assert_eq!(arrived(&target), ["POST /p", "POST /p"]);
}

#[test]
fn everything_is_meant_only_where_it_is_said() {
    let site = Site::new("");
    for words in [&["tasks", "cancel"][..], &["tasks", "retry"]] {
        let said = site.say(words).with(2);
        assert!(said.err.contains("--all"), "{}", said.err);
        let help = site.say(&[words, &["--help"]].concat()).with(0);
        assert!(help.out.contains("Example:"), "{}", help.out);
    }
    site.say(&["tasks", "cancel", "--all"]).with(1);
}

#[test]
fn a_call_that_was_cut_by_a_kill_is_not_called_off_and_not_made_again() {
    let target = crate::patient(std::time::Duration::from_secs(60));
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([
        json!({"id": "post", "url": target.url("/post"), "method": "POST", "body": "b"}),
        json!({"id": "get", "url": target.url("/get")}),
    ]);
    let run = site.run();
    eventually("both arrived", || arrived(&target).len() == 2);
    assert!(run.kill());
    let rows = site.rows(&["tasks", "cancel", "--all"]);
    assert_eq!(counts(&rows), [("ambiguous", 1), ("cancelled", 1)]);
    let rows = site.rows(&["tasks", "retry", "--all"]);
    assert!(counts(&rows).contains(&("again", 1)), "{rows:?}");
    let run = site.run();
    eventually("the one that may be is made again", || {
        arrived(&target).len() == 3
    });
    assert!(run.kill());
    let posts = arrived(&target)
        .into_iter()
        .filter(|call| call == "POST /post");
    assert_eq!(posts.count(), 1);
}

#[test]
fn a_gate_that_runs_is_asked_and_stopped_whatever_became_of_the_file() {
    let target = prompt();
    let site = site_of(&target, "1/day", 3);
    let mut run = site.run();
    site.until_open(&mut run);
    site.write("tidegate.toml", "bogus = 3\n");
    let said = site.say(&["status"]).with(2);
    assert!(
        said.err.contains("bogus") && said.err.contains("--store"),
        "{}",
        said.err
    );
    site.say(&["status", "--store", "store"]).with(0);
    let held = [&*target.origin(), "--by", "ana", "--store", "store"];
    site.say(&[&["hold"], &held[..]].concat()).with(0);
    assert!(run.kill());
    site.say(&["status", "--store", "store"]).with(2);
}
