//! `run --refresh`: what is complete is asked for again, on condition that it has changed.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::support::loopback::{Answer, Arrival, Request, Script, Target};
use crate::support::site::{Site, eventually, text};
use crate::{arrived, rule};

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

fn refresh(site: &Site) -> crate::support::site::Process {
    site.start(&["run", "tasks.jsonl", "--out", "out", "--refresh"])
}

/// Answers 304 to the tag it gave; `/changed` has another one from the tenth request on.
fn versioned(request: &Request, earlier: usize) -> crate::support::loopback::Reply {
    let path = request.path.as_str();
    let tag = match path {
        "/changed" => format!("\"v{}\"", u8::from(earlier >= 9)),
        _ => "\"v0\"".to_owned(),
    };
    if request.header("if-none-match") == Some(&*tag) {
        return Answer::status(304).header("etag", &tag);
    }
    Answer::status(200)
        .header("etag", &tag)
        .header("last-modified", DATE)
        .header("content-type", "text/plain")
        .body(format!("{path} {tag}"))
}

fn since(target: &Target, from: usize) -> Vec<Arrival> {
    target.arrivals().split_off(from)
}

fn conditions(arrivals: &[Arrival]) -> BTreeMap<String, (Option<&str>, Option<&str>)> {
    let condition = |arrival: &'_ Arrival| arrival.path.clone();
    arrivals
        .iter()
        .map(|arrival| {
            let sent = ["if-none-match", "if-modified-since"].map(|name| arrival.header(name));
            (condition(arrival), (sent[0], sent[1]))
        })
        .collect()
}

fn last<'r>(results: &'r [Value], id: &str) -> &'r Value {
    let mut of_id = results.iter().filter(|result| text(result, "id") == id);
    of_id.next_back().unwrap()
}

#[test]
fn what_has_not_changed_keeps_its_body_and_what_has_changed_replaces_it() {
    let script = Script::new(|request: &Request, earlier| match request.path.as_str() {
        "/plain" => Answer::status(200).body("no validator"),
        "/hop" => Answer::status(302).header("location", "/same?hop"),
        "/gone" => Answer::status(404).header("etag", "\"x\""),
        _ => versioned(request, earlier),
    });
    let target = Target::start(script);
    let site = Site::new(&rule(&target, "100/s", 20));
    let own = json!({"if-none-match": "\"mine\""});
    site.tasks([
        json!({"id": "same", "url": target.url("/same")}),
        json!({"id": "changed", "url": target.url("/changed")}),
        json!({"id": "plain", "url": target.url("/plain")}),
        json!({"id": "gone", "url": target.url("/gone")}),
        json!({"id": "hop", "url": target.url("/hop")}),
        json!({"id": "lost", "url": target.url("/lost")}),
        json!({"id": "own", "url": target.url("/own"), "headers": own}),
        json!({"id": "post", "url": target.url("/post"), "method": "POST"}),
    ]);
    site.run().end().with(0);
    let before = site.results();
    assert_eq!((before.len(), target.arrivals().len()), (8, 9));
    // Without being told to, nothing is asked again.
    site.run().end().with(0);
    assert_eq!(target.arrivals().len(), 9);
    fs::remove_file(
        site.path("out")
            .join(text(last(&before, "lost"), "body_path")),
    )
    .unwrap();

    let said = refresh(&site).end().with(0);
    assert!(
        said.err
            .contains("7 tasks that were complete are asked for again"),
        "{}",
        said.err
    );
    assert!(
        said.err
            .contains("8 tasks: 7 succeeded, 1 answered; 0 left"),
        "{}",
        said.err
    );
    let arrivals = since(&target, 9);
    let both = (Some("\"v0\""), Some(DATE));
    let expected = [
        ("/same", both),
        ("/changed", both),
        ("/plain", (None, None)),
        ("/gone", (None, None)),
        ("/hop", (None, None)),
        ("/same?hop", both),
        ("/lost", (None, None)),
        ("/own", (Some("\"mine\""), None)),
    ];
    let expected = expected.map(|(path, sent)| (path.to_owned(), sent));
    assert_eq!(conditions(&arrivals), BTreeMap::from(expected));

    let after = site.results();
    assert_eq!((after.len(), &after[..8]), (15, &before[..]));
    for (id, status) in [("same", 304), ("hop", 304), ("changed", 200), ("lost", 200)] {
        let (old, new) = (last(&before, id), last(&after, id));
        assert_eq!(
            (&new["status"], text(new, "outcome")),
            (&status.into(), "succeeded"),
            "{new}"
        );
        let kept = new["body_path"] == old["body_path"];
        assert_eq!(kept, id != "changed", "{new}");
        assert_eq!(
            (&new["bytes"], &new["content_type"]),
            (&old["bytes"], &old["content_type"])
        );
        assert!(
            site.path("out").join(text(new, "body_path")).exists(),
            "{new}"
        );
    }
    // The new tag counts from now on, and a 304 has not used up the old one.
    refresh(&site).end().with(0);
    let arrivals = since(&target, 17);
    let sent = conditions(&arrivals);
    assert_eq!(sent["/changed"].0, Some("\"v1\""), "{sent:?}");
    assert_eq!((sent["/same"], sent["/lost"]), (both, both));
    let job = &site.row(&["status"])["jobs"][0];
    let counts = ["tasks", "complete", "pending"].map(|name| job[name].as_u64());
    assert_eq!(counts, [Some(8), Some(8), Some(0)], "each once: {job}");
}

#[test]
fn a_refresh_that_is_interrupted_goes_on_and_asks_for_each_task_once() {
    let target = Target::start(Script::new(versioned));
    let site = Site::new(&rule(&target, "1000/s", 100));
    site.tasks((0..60).map(|number| target.url(&format!("/{number}"))));
    site.run().end().with(0);
    site.configure(&rule(&target, "20/s", 1));
    let run = refresh(&site);
    eventually("some are asked again", || target.arrivals().len() >= 65);
    run.signal("TERM");
    run.end().with(143);
    let half = target.arrivals().len();
    assert!(half < 120, "{half}");

    site.configure(&rule(&target, "1000/s", 100));
    let said = refresh(&site).end().with(0);
    assert!(
        said.err.contains("the last refresh was interrupted"),
        "{}",
        said.err
    );
    let mut asked = since(&target, 60);
    asked.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!(asked.len(), 60);
    assert!(asked.windows(2).all(|pair| pair[0].path != pair[1].path));
    assert_eq!(site.results().len(), 120);

    // It has ended: the next one asks again.
    let said = refresh(&site).end().with(0);
    assert!(
        said.err.contains("60 tasks: 60 succeeded; 0 left"),
        "{}",
        said.err
    );
    assert_eq!((target.arrivals().len(), site.results().len()), (180, 180));
}

#[test]
fn a_killed_refresh_asks_no_task_again_that_had_its_result() {
    let target = Target::start(Script::new(versioned));
    let site = Site::new(&rule(&target, "1000/s", 100));
    site.tasks((0..60).map(|number| target.url(&format!("/{number}"))));
    site.run().end().with(0);
    site.configure(&rule(&target, "40/s", 1));
    let run = refresh(&site);
    eventually("some are complete again", || site.results().len() >= 70);
    assert!(run.kill());
    let complete = site.results().len() - 60;
    let before = target.arrivals().len();
    let status = site.row(&["status"]);
    let job = &status["jobs"][0];
    assert_eq!(job["tasks"], 60, "{job}");
    let waiting = job["pending"].as_u64().unwrap();
    assert_eq!(job["complete"], 60 - waiting, "{job}");

    site.configure(&rule(&target, "1000/s", 100));
    refresh(&site).end().with(0);
    let rest = target.arrivals().len() - before;
    assert!(rest <= 60 - complete, "{rest} after {complete}");
    assert_eq!(site.results().len(), 120);
    let sent = since(&target, 60);
    let is_conditional = |arrival: &Arrival| arrival.header("if-none-match") == Some("\"v0\"");
    assert!(sent.iter().all(is_conditional));
}

#[test]
fn a_refresh_first_completes_what_an_earlier_run_left() {
    let target = Target::start(Script::new(versioned));
    let site = Site::new(&rule(&target, "20/s", 1));
    site.tasks((0..40).map(|number| target.url(&format!("/{number}"))));
    let run = site.run();
    eventually("some are asked", || target.arrivals().len() >= 5);
    run.signal("TERM");
    run.end().with(143);
    site.configure(&rule(&target, "1000/s", 100));
    let said = refresh(&site).end().with(0);
    assert!(
        said.err
            .contains("this run completes them and refreshes nothing"),
        "{}",
        said.err
    );
    assert_eq!((target.arrivals().len(), site.results().len()), (40, 40));
}

#[test]
fn a_run_that_completes_what_was_left_asks_nothing_again_after_an_earlier_refresh_either() {
    let target = Target::start(Script::new(versioned));
    let site = Site::new(&rule(&target, "100/s", 20));
    let line = |id: &str| json!({"id": id, "url": target.url(&format!("/{id}"))});
    site.tasks([line("a"), line("b")]);
    site.run().end().with(0);
    site.tasks([line("a")]);
    refresh(&site).end().with(0);
    site.configure(&rule(&target, "20/s", 1));
    let more = (0..40).map(|number| line(&number.to_string()));
    site.tasks([line("a"), line("b")].into_iter().chain(more));
    let run = site.run();
    eventually("some are asked", || target.arrivals().len() >= 8);
    run.signal("TERM");
    run.end().with(143);

    site.configure(&rule(&target, "1000/s", 100));
    let said = refresh(&site).end().with(0);
    assert!(said.err.contains("refreshes nothing"), "{}", said.err);
    let arrivals = arrived(&target);
    let times = |path: &str| arrivals.iter().filter(|arrived| *arrived == path).count();
    assert_eq!(
        (arrivals.len(), times("GET /a"), times("GET /b")),
        (43, 2, 1)
    );
}

#[test]
fn a_refresh_without_an_answer_leaves_what_is_known_for_the_next_one() {
    let script = Script::new(|request: &Request, earlier| -> Answer {
        match earlier {
            1 => Answer::CloseAfterRequest,
            _ => versioned(request, earlier).into(),
        }
    });
    let target = Target::start(script);
    let site = Site::new(&rule(&target, "100/s", 20));
    site.tasks([json!({"id": "t", "url": target.url("/t"), "max_attempts": 1})]);
    site.run().end().with(0);
    refresh(&site).end().with(3);
    // The exit code speaks of the last result of each task.
    refresh(&site).end().with(0);
    assert_eq!(arrived(&target).len(), 3);
    let arrivals = target.arrivals();
    assert_eq!(arrivals[2].header("if-none-match"), Some("\"v0\""));
    let results = site.results();
    assert_eq!((&results[2]["status"], results.len()), (&304.into(), 3));
    assert_eq!(results[2]["body_path"], results[0]["body_path"]);
}

#[test]
fn a_refresh_of_a_part_counts_all_tasks_each_by_its_last_result() {
    let failing = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let fails = failing.clone();
    let target = Target::start(Script::new(move |request: &Request, _| -> Answer {
        let fails = fails.load(std::sync::atomic::Ordering::SeqCst);
        match request.path.as_str() {
            "/post" | "/x" if fails => Answer::CloseAfterRequest,
            _ => Answer::status(200).into(),
        }
    }));
    let site = Site::new(&rule(&target, "1000/s", 100));
    let read =
        |id: &str| json!({"id": id, "url": target.url(&format!("/{id}")), "max_attempts": 1});
    let post = json!({"id": "post", "url": target.url("/post"), "method": "POST"});
    let reads = || (0..10).map(|number| read(&number.to_string()));
    site.tasks(reads().chain([post.clone(), read("x")]));
    site.run().end().with(3);
    let counts = || {
        let job = &site.row(&["status"])["jobs"][0];
        let of = |row: &Value, name: &str| row[name].as_u64().unwrap();
        let names = ["succeeded", "failed", "ambiguous"];
        let outcomes = names.map(|name| of(&job["outcomes"], name));
        let rows = site.rows(&["tasks"]);
        let tasks: u64 = rows.iter().map(|row| of(row, "tasks")).sum();
        assert_eq!(tasks, of(job, "tasks"), "{rows:?} {job}");
        let listed = site.rows(&["tasks", "--list"]);
        assert_eq!(listed.len() as u64, tasks, "{listed:?}");
        (of(job, "tasks"), of(job, "complete"), outcomes)
    };
    assert_eq!(counts(), (12, 12, [10, 1, 1]));

    // What it does not ask for counts as before: nobody knows what became of the POST.
    site.tasks(reads().take(3));
    let said = refresh(&site).end().with(3);
    let words = "12 tasks: 10 succeeded, 1 failed, 1 ambiguous; 0 left";
    assert!(said.err.contains(words), "{}", said.err);
    assert_eq!(counts(), (12, 12, [10, 1, 1]));

    // A task that failed before the refresh fails again.
    site.row(&["tasks", "retry", "x"]);
    assert_eq!(counts_of_marked(&site), (11, 1));
    site.tasks([read("x")]);
    site.run().end().with(3);
    assert_eq!(counts(), (12, 12, [10, 1, 1]));

    // A person's mark and a refresh ask for it once, and it counts once.
    failing.store(false, std::sync::atomic::Ordering::SeqCst);
    site.row(&["tasks", "retry", "x"]);
    site.tasks([read("x"), read("0")]);
    refresh(&site).end().with(3);
    assert_eq!(counts(), (12, 12, [11, 0, 1]));
    site.row(&["tasks", "retry", "post", "--ambiguous"]);
    site.tasks([post]);
    site.run().end().with(0);
    assert_eq!(counts(), (12, 12, [12, 0, 0]));
    assert_eq!(site.results().len(), 12 + 3 + 1 + 2 + 1);
}

/// Tasks that are not marked, and those that are.
fn counts_of_marked(site: &Site) -> (u64, u64) {
    let job = &site.row(&["status"])["jobs"][0];
    let of = |name: &str| job[name].as_u64().unwrap();
    (of("tasks"), of("again"))
}
