//! Task files and configurations that are wrong: said with their place, before anything is sent.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::support::site::{Site, eventually, text};
use crate::{arrived, patient, prompt, rule};

#[test]
fn bad_lines_are_all_told_and_nothing_is_sent_unless_they_are_to_be_left_out() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    let lines = [
        target.url("/1"),
        "{\"url\": \"http://a.example\", ".to_owned(),
        json!({"url": target.url("/2"), "colour": "red"}).to_string(),
        String::new(),
        "# a remark".to_owned(),
        json!({"url": "ftp://a.example/"}).to_string(),
        target.url("/3"),
    ];
    site.tasks(lines);
    let said = site.run().end().with(2);
    for place in [
        "tasks.jsonl: line 2: ",
        "tasks.jsonl: line 3: colour: ",
        "tasks.jsonl: line 6: url: ",
    ] {
        assert!(said.err.contains(place), "{place}: {}", said.err);
    }
    assert!(
        !said.err.contains("line 4") && !said.err.contains("line 7"),
        "{}",
        said.err
    );
    assert!(arrived(&target).is_empty() && !site.store().exists());

    let said = site
        .say(&["run", "tasks.jsonl", "--out", "out", "--skip-bad"])
        .with(0);
    assert!(said.err.contains("3 bad lines"), "{}", said.err);
    let mut found = arrived(&target);
    found.sort();
    assert_eq!(found, ["GET /1", "GET /3"]);
}

#[test]
fn one_id_with_two_contents_is_an_error_that_names_both_lines() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([
        json!({"id": "a", "url": target.url("/1")}),
        json!({"id": "b", "url": target.url("/2")}),
        json!({"id": "a", "url": target.url("/3")}),
    ]);
    let said = site.run().end().with(2);
    assert!(
        said.err.contains("tasks.jsonl: line 3: id: line 1 "),
        "{}",
        said.err
    );
    assert!(arrived(&target).is_empty());
}

#[test]
fn an_id_with_another_content_than_in_an_earlier_run_stops_the_run_and_cuts_no_call() {
    let target = patient(Duration::from_millis(500));
    let site = Site::new(&rule(&target, "50/s", 8));
    let post = |id: &str, path: &str| json!({"id": id, "url": target.url(path), "method": "POST"});
    let mut lines: Vec<_> = (0..10)
        .map(|n| post(&format!("t{n}"), &format!("/{n}")))
        .collect();
    site.tasks(&lines[..2]);
    site.run().end().with(0);

    // The tasks of before the one in conflict may be under way when it is met.
    lines.push(post("t0", "/other"));
    site.tasks(&lines[1..]);
    let said = site.run().end().with(2);
    assert!(
        said.err.contains("tasks.jsonl") && said.err.contains("the id t0"),
        "{}",
        said.err
    );
    assert!(!arrived(&target).contains(&"POST /other".to_owned()));

    let said = site
        .say(&["run", "tasks.jsonl", "--out", "out", "--skip-bad"])
        .with(0);
    assert!(said.err.contains("left out"), "{}", said.err);
    let results = site.results();
    assert_eq!(results.len(), 10);
    for result in results {
        assert_eq!(text(&result, "outcome"), "succeeded", "{result}");
    }
    assert_eq!(arrived(&target).len(), 10);
}

#[test]
fn a_file_that_has_grown_and_lines_that_occur_twice_are_each_done_once() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    let urls: Vec<_> = (0..6)
        .map(|number| target.url(&format!("/{number}")))
        .collect();
    site.tasks([&urls[0], &urls[1], &urls[0], &urls[1]]);
    site.run().end().with(0);
    assert_eq!(arrived(&target).len(), 2);
    site.tasks(&urls);
    let said = site.run().end().with(0);
    assert!(said.err.contains("6 tasks: 6 succeeded"), "{}", said.err);
    assert_eq!((arrived(&target).len(), site.results().len()), (6, 6));
}

#[test]
fn tasks_may_come_from_stdin_and_leave_no_copy() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    site.write(
        "input",
        &format!("{}\n{}\n", target.url("/1"), target.url("/2")),
    );
    let from_stdin = |concurrency: &str| {
        let args = ["run", "-", "--out", "out", "--concurrency", concurrency];
        let mut command = site.command(&args);
        command.stdin(Stdio::from(
            std::fs::File::open(site.path("input")).unwrap(),
        ));
        site.launch(command)
    };
    from_stdin("1").end().with(0);
    from_stdin("9").end().with(0);
    assert_eq!((arrived(&target).len(), site.results().len()), (2, 2));
    let left = std::fs::read_dir(site.path("out")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["bodies", "results.jsonl"]);

    site.write("input", "not a url\n");
    let said = from_stdin("1").end().with(2);
    assert!(said.err.contains("-: line 1: url: "), "{}", said.err);
}

#[test]
fn a_second_run_from_stdin_takes_nothing_from_the_first() {
    let target = prompt();
    let site = Site::new(&rule(&target, "20/s", 1));
    let run = |text: &str| {
        site.write("input", text);
        let mut command = site.command(&["run", "-", "--out", "out"]);
        command.stdin(Stdio::from(
            std::fs::File::open(site.path("input")).unwrap(),
        ));
        site.launch(command)
    };
    // Long lines, so that the list is longer than any buffer.
    let many =
        (0..4_000).map(|number| target.url(&format!("/{number}?{}", "x".repeat(2_000))) + "\n");
    let mut first = run(&many.collect::<String>());
    site.until_open(&mut first);
    let other = run(&target.url("/other"));
    other.end().with(1);
    let all = || site.row(&["status"])["jobs"][0]["tasks"] == 4_000;
    eventually("every task of the first is accepted", all);
    first.signal("TERM");
    first.end().with(143);
}

#[test]
fn what_is_no_file_of_tasks_is_said_by_name() {
    let site = Site::new("");
    site.write("plain", "http://127.0.0.1:9/\n");
    std::fs::create_dir(site.path("folder")).unwrap();
    for (name, word) in [
        ("folder", "folder"),
        ("missing.jsonl", "No such file"),
        ("plain/below", "Not a directory"),
    ] {
        for args in [&["run", name, "--out", "out"][..], &["check", name]] {
            let said = site.say(args).with(2);
            assert!(
                said.err.contains(name) && said.err.contains(word),
                "{args:?}: {}",
                said.err
            );
        }
    }
    assert!(!site.store().exists());
}

#[test]
fn an_unknown_key_of_the_configuration_stops_every_command_with_its_place() {
    let site = Site::new("\n[defaults]\nrate = \"1/s\"\nbrust = 3\n");
    site.tasks(["http://127.0.0.1:9/"]);
    let commands: [&[&str]; 8] = [
        &["run", "tasks.jsonl", "--out", "out"],
        &["status"],
        &["explain", "http://a.example"],
        &["targets"],
        &["tasks"],
        &["hold", "http://a.example"],
        &["audit", "events"],
        &["check"],
    ];
    for args in commands {
        let said = site.say(args).with(2);
        assert!(
            said.err.contains("tidegate.toml:7: "),
            "{args:?}: {}",
            said.err
        );
        assert!(
            said.err.contains("brust") && said.err.contains("burst"),
            "{}",
            said.err
        );
    }
    assert!(!site.store().exists());
}

#[test]
fn check_tells_everything_at_once_and_sends_nothing() {
    let target = prompt();
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([target.url("/1"), target.url("/1"), target.url("/2")]);
    let said = site.say(&["check", "tasks.jsonl"]).with(0);
    assert!(
        said.err.contains("tidegate.toml: no errors"),
        "{}",
        said.err
    );
    assert!(
        said.err
            .contains("2 tasks, 1 lines that ask for one of them again, 0 bad"),
        "{}",
        said.err
    );

    site.configure("paths = \"some\"\n[defaults]\nburst = 0\n");
    site.tasks(["nonsense", "http://a.example/"]);
    let said = site.say(&["check", "tasks.jsonl"]).with(2);
    for place in [
        "tidegate.toml:4: ",
        "tidegate.toml:6: ",
        "tasks.jsonl: line 1: ",
    ] {
        assert!(said.err.contains(place), "{place}: {}", said.err);
    }
    assert!(arrived(&target).is_empty() && !site.store().exists());
}

#[test]
fn what_check_says_can_be_read_by_a_program() {
    let site = Site::new("bogus = 3\n");
    let lines = [
        "http://a.test/",
        "http://a.test/",
        "{",
        "{",
        "ftp://a.test/",
    ];
    site.tasks(lines);
    let said = site.say(&["check", "tasks.jsonl", "--json"]).with(2);
    let rows = said.rows();
    let of = |kind: &str| {
        let found = rows.iter().filter(|row| row["kind"] == kind);
        found.collect::<Vec<_>>()
    };
    assert!(
        of("configuration")[0]["message"]
            .as_str()
            .unwrap()
            .contains("bogus")
    );
    let bad = of("bad_line");
    assert_eq!(bad.len(), 2, "{bad:?}");
    assert_eq!((&bad[0]["line"], &bad[0]["lines"]), (&3.into(), &2.into()));
    assert_eq!(bad[1]["field"], "url");
    let list = of("list")[0];
    let counts = ["tasks", "duplicates", "bad_lines"].map(|name| list[name].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(3)]);
}
