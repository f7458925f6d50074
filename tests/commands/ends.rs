//! How a run ends, and that the next one goes on from there.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::loopback::{Answer, Request, Script, Target};
use crate::support::site::{Site, eventually, text};
use crate::{arrived, patient, prompt, rule};

#[test]
fn a_run_whose_every_task_has_an_answer_ends_with_0() {
    let script = Script::by_path([
        (
            "/yes",
            Script::always(Answer::status(200).body("twelve bytes")),
        ),
        ("/gone", Script::always(Answer::status(410))),
    ]);
    let target = Target::start(script);
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([
        json!({"id": "y", "url": target.url("/yes?q=1"), "agent": "scout", "trajectory": "r",
               "step": "4", "goal": "map"}),
        json!({"id": "g", "url": target.url("/gone")}),
    ]);
    let said = site.run().end().with(0);
    assert!(
        said.err
            .contains("2 tasks: 1 succeeded, 1 answered; 0 left"),
        "{}",
        said.err
    );
    assert_eq!(said.out, "");

    let results = site.results();
    let by_id = |id| {
        results
            .iter()
            .find(|result| text(result, "id") == id)
            .unwrap()
    };
    let yes = by_id("y");
    let names = "id url final_url target class agent trajectory step outcome status attempts \
                 deferrals queued_at started_at completed_at bytes content_type body_path error";
    let found: BTreeSet<_> = yes
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(found, names.split_whitespace().collect());
    let told =
        ["agent", "trajectory", "step", "outcome", "target", "class"].map(|name| text(yes, name));
    assert_eq!(
        told,
        ["scout", "r", "4", "succeeded", &target.origin(), "default"]
    );
    assert_eq!(
        (&yes["status"], &yes["attempts"], &yes["bytes"]),
        (&200.into(), &1.into(), &12.into())
    );
    let body = site.path("out").join(text(yes, "body_path"));
    assert_eq!(fs::read_to_string(body).unwrap(), "twelve bytes");
    assert_eq!(
        (text(by_id("g"), "outcome"), &by_id("g")["status"]),
        ("answered", &410.into())
    );
}

#[test]
fn a_run_with_a_task_that_got_no_answer_ends_with_3_and_so_does_the_next() {
    let target = Target::start(Script::always(Answer::CloseAfterRequest));
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([
        json!({"id": "read", "url": target.url("/read"), "max_attempts": 2}),
        json!({"id": "write", "url": target.url("/write"), "method": "POST"}),
    ]);
    for _ in 0..2 {
        let said = site.run().end().with(3);
        assert!(said.err.contains("1 failed, 1 ambiguous"), "{}", said.err);
    }
    let mut found = arrived(&target);
    found.sort();
    assert_eq!(found, ["GET /read", "GET /read", "POST /write"]);
    for result in site.results() {
        let attempts = if text(&result, "id") == "read" { 2 } else { 1 };
        assert_eq!(result["attempts"], attempts, "{result}");
        assert!(!text(&result, "error").is_empty(), "{result}");
    }
}

#[test]
fn a_deadline_ends_a_run_with_75_and_the_next_goes_on() {
    let target = prompt();
    let site = Site::new(&rule(&target, "10/s", 1));
    site.tasks((0..15).map(|number| target.url(&format!("/{number}"))));
    let begun = Instant::now();
    let said = site.say(&["run", "tasks.jsonl", "--out", "out", "--deadline", "700ms"]);
    let said = said.with(75);
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(
        said.err.contains("run the same command again"),
        "{}",
        said.err
    );
    let first = site.results();
    assert!(!first.is_empty() && first.len() < 15, "{}", first.len());

    let said = site.run().end().with(0);
    assert!(said.err.contains("15 succeeded"), "{}", said.err);
    assert_eq!(site.results()[..first.len()], first);
    let arrived = arrived(&target);
    assert_eq!(
        (arrived.len(), arrived.iter().collect::<BTreeSet<_>>().len()),
        (15, 15)
    );
}

#[test]
fn a_signal_lets_calls_under_way_end_and_the_state_is_saved() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let target = patient(Duration::from_millis(400));
        let site = Site::new(&rule(&target, "100/s", 4));
        site.tasks(
            (0..40)
                .map(|number| json!({"url": target.url(&format!("/{number}")), "method": "POST"})),
        );
        let run = site.run();
        eventually("calls are under way", || target.arrivals().len() >= 4);
        run.signal(signal);
        run.end().with(code);
        let before = arrived(&target);
        assert!(before.len() < 40);
        let results = site.results();
        assert_eq!(
            results.len(),
            before.len(),
            "each call under way has its end"
        );
        for result in &results {
            assert_eq!(text(result, "outcome"), "succeeded", "{result}");
        }
        site.run().end().with(0);
        assert_eq!((target.arrivals().len(), site.results().len()), (40, 40));
    }
}

#[test]
fn a_second_signal_ends_at_once_and_what_was_cut_is_on_record() {
    let silent = Script::new(|request: &Request, earlier| match earlier {
        0..2 => Answer::Silence,
        _ => Answer::status(200).body(request.path.clone()).into(),
    });
    let target = Target::start(silent);
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([
        json!({"id": "read", "url": target.url("/read")}),
        json!({"id": "write", "url": target.url("/write"), "method": "POST"}),
    ]);
    let run = site.run();
    eventually("both are under way", || target.arrivals().len() == 2);
    let begun = Instant::now();
    run.signal("TERM");
    std::thread::sleep(Duration::from_millis(200));
    run.signal("TERM");
    run.end().with(143);
    assert!(begun.elapsed() < Duration::from_secs(10));

    site.run().end().with(3);
    let mut found = arrived(&target);
    found.sort();
    assert_eq!(found, ["GET /read", "GET /read", "POST /write"]);
    let results = site.results();
    let by_id = |id| {
        results
            .iter()
            .find(|result| text(result, "id") == id)
            .unwrap()
    };
    assert_eq!(
        (text(by_id("read"), "outcome"), &by_id("read")["attempts"]),
        ("succeeded", &2.into())
    );
    assert_eq!(text(by_id("write"), "outcome"), "ambiguous");
}

#[test]
fn a_wrong_command_line_is_2_and_leaves_nothing_behind() {
    let site = Site::new("");
    site.tasks(["http://127.0.0.1:9/"]);
    let wrong: [&[&str]; 9] = [
        &["run"],
        &["run", "tasks.jsonl", "--no-such-flag"],
        &["run", "tasks.jsonl", "--concurrency", "0"],
        &["run", "tasks.jsonl", "--deadline", "soon"],
        &["run", "missing.jsonl", "--out", "out"],
        &["tasks", "--state", "asleep"],
        &["hold", "http://a.example", "--for", "ever"],
        &["audit", "who", "--by", "colour"],
        &["no-such-command"],
    ];
    for args in wrong {
        let said = site.say(args).with(2);
        assert!(!said.err.is_empty() && said.out.is_empty(), "{args:?}");
    }
    assert!(!site.store().exists());
    assert!(!site.path("out").exists(), "a slip makes no folder");
}
