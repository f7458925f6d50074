//! What a list asks for and what counts as having got it: `--ok-status`, `--include`, `--exclude`,
//! `--template`.

use std::collections::BTreeMap;
use std::fs::{self, File};

use serde_json::{Value, json};

use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Site, text};
use crate::{arrived, prompt, rule};

const RUN: [&str; 4] = ["run", "tasks.jsonl", "--out", "out"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    RUN.iter().chain(more).copied().collect()
}

fn outcomes(results: &[Value]) -> BTreeMap<u64, &str> {
    let pair = |result| (result_status(result), text(result, "outcome"));
    results.iter().map(pair).collect()
}

fn result_status(result: &Value) -> u64 {
    result["status"].as_u64().unwrap_or(0)
}

#[test]
fn listed_statuses_succeed_and_only_a_task_without_an_answer_makes_the_exit_code_3() {
    let answers = |status| Script::always(Answer::status(status));
    let pauses = Answer::status(503).header("retry-after", "1");
    let target = Target::start(Script::by_path([
        ("/200", answers(200)),
        ("/204", answers(204)),
        ("/404", answers(404)),
        ("/500", answers(500)),
        ("/502", answers(502)),
        ("/503", Script::list(vec![pauses, Answer::status(404)])),
        (
            "/302",
            Script::always(Answer::status(302).header("location", "/404")),
        ),
    ]));
    let site = Site::new(&rule(&target, "100/s", 20));
    let paths = ["/200", "/204", "/404", "/500", "/503", "/302"];
    site.tasks(paths.map(|path| json!({"url": target.url(path), "max_attempts": 1})));
    let said = site
        .say(&with(&["--ok-status", "200,300-404,500-503"]))
        .with(0);
    assert!(
        said.err
            .contains("6 tasks: 5 succeeded, 1 answered; 0 left"),
        "{}",
        said.err
    );
    let found = site.results();
    let found = outcomes(&found);
    let expected = [
        (200, "succeeded"),
        (204, "answered"),
        (404, "succeeded"),
        (500, "succeeded"),
    ];
    assert_eq!(found, BTreeMap::from(expected));
    assert_eq!(target.arrivals().len(), 8, "{:?}", arrived(&target));

    // What is complete stays so, and a status that is tried again is no answer unless it is listed.
    site.tasks([json!({"url": target.url("/502"), "max_attempts": 1})]);
    let said = site.say(&with(&["--ok-status", "200"])).with(3);
    assert!(
        said.err.contains("5 succeeded, 1 answered, 1 failed"),
        "{}",
        said.err
    );
}

#[test]
fn what_is_wrong_in_an_option_is_named_with_its_place_before_anything_is_done() {
    let site = Site::new("");
    site.tasks(["http://127.0.0.1:9/"]);
    for (option, value, words) in [
        (
            "--ok-status",
            "200,4xx",
            "its entry 2, `4xx`, is no status from 200 to 599",
        ),
        (
            "--ok-status",
            "200,429",
            "its entry 2, `429`, is never a final answer",
        ),
        ("--include", "a(b", "unclosed group"),
        ("--exclude", "[", "unclosed character class"),
        (
            "--template",
            "http://a.test/",
            "write {} where the line belongs",
        ),
        (
            "--template",
            "{\"url\":\"{}\",\"agnt\":\"x\"}",
            "did you mean `agent`?",
        ),
    ] {
        let said = site.say(&with(&[option, value])).with(2);
        assert!(
            said.err.contains(words) && said.err.contains(option),
            "{}",
            said.err
        );
        assert!(!site.store().exists());
    }
}

#[test]
fn lines_whose_url_is_not_meant_are_left_out_and_counted() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 20));
    let urls =
        ["/docs/a", "/docs/b.pdf", "/blog/a", "/docs/c?print=1"].map(|path| target.url(path));
    site.tasks(&urls);
    let pick = [
        "--include",
        "/docs/",
        "--exclude",
        r"\.pdf$",
        "--exclude",
        "[?&]print=",
    ];
    let check: Vec<_> = ["check", "tasks.jsonl"].into_iter().chain(pick).collect();
    let said = site.say(&check).with(0);
    assert!(said.err.contains("tasks.jsonl: 1 tasks, "), "{}", said.err);
    let said = site.say(&with(&pick)).with(0);
    let left_out = "tasks.jsonl: 3 lines left out by --include and --exclude";
    assert!(said.err.contains(left_out), "{}", said.err);
    assert_eq!(arrived(&target), ["GET /docs/a"]);
    assert_eq!(site.results().len(), 1);

    // A line that is bad is bad whatever it would be.
    site.tasks(["ftp://a.test/blog"]);
    let said = site.say(&with(&pick)).with(2);
    assert!(said.err.contains("line 1: url: "), "{}", said.err);
}

#[test]
fn a_redirect_is_followed_though_a_list_would_leave_its_url_out() {
    let target = Target::start(Script::by_path([
        (
            "/a",
            Script::always(Answer::status(301).header("location", "/b")),
        ),
        ("/b", Script::always(Answer::status(200))),
    ]));
    let site = Site::new(&rule(&target, "100/s", 20));
    site.tasks([target.url("/a")]);
    site.say(&with(&["--include", "/a$", "--exclude", "/b"]))
        .with(0);
    assert_eq!(arrived(&target), ["GET /a", "GET /b"]);
}

#[test]
fn lines_from_stdin_fill_a_template() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 20));
    site.write("ids.txt", "ana\n\na b/c?d\r\n#7\nana\n");
    let template = json!({"url": target.url("/users/{}"), "agent": "scout", "goal": "who is {}?"});
    let template = template.to_string();
    let mut command = site.command(&["run", "-", "--out", "out", "--template", &template]);
    command.stdin(File::open(site.path("ids.txt")).unwrap());
    let said = site.launch(command).end().with(0);
    assert!(said.err.contains("3 tasks: 3 succeeded"), "{}", said.err);
    let mut found = arrived(&target);
    found.sort();
    let expected = [
        "GET /users/%237",
        "GET /users/a%20b%2Fc%3Fd",
        "GET /users/ana",
    ];
    assert_eq!(found, expected);
    for result in site.results() {
        assert_eq!(text(&result, "agent"), "scout");
    }
}

#[test]
fn a_line_that_cannot_fill_a_template_is_told_with_its_number_and_nothing_is_sent() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 20));
    let lines = [
        r#"{"id":1,"q":"a&b"}"#,
        r#"{"id":2}"#,
        "hunter2",
        r#"{"id":[3],"q":"hunter2"}"#,
    ];
    site.write("tasks.jsonl", &lines.join("\n"));
    let template = target.url("/{id}?q={q}");
    let options = ["--template", &template];
    let said = site.say(&with(&options)).with(2);
    for words in [
        "tasks.jsonl: line 2: {q}: the line has no field of this name",
        "tasks.jsonl: line 3: is not a JSON object on one line",
        "tasks.jsonl: line 4: {id}: is no text and no number",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(
        !said.err.contains("hunter2") && !said.err.contains("line 1"),
        "{}",
        said.err
    );
    assert!(arrived(&target).is_empty() && fs::read_dir(site.store()).is_err());
    let options = ["--template", &template, "--skip-bad"];
    site.say(&with(&options)).with(0);
    assert_eq!(arrived(&target), ["GET /1?q=a%26b"]);
}
