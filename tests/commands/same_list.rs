//! A list that was handed over whole is not read again when its run goes on.

use std::time::Duration;

use crate::support::site::{Process, Said, Site, eventually, text};
use crate::{arrived, patient, rule};

const KNOWN: &str = "handed over before";

fn go_on(site: &Site, args: &[&str]) -> Said {
    let all = ["run", "tasks.jsonl", "--out", "out"];
    site.start(&[&all, args].concat()).end()
}

/// Starts a run and kills it when its list has been read and something has arrived.
fn cut(site: &Site, began: impl Fn() -> bool) {
    let mut run: Process = site.run();
    site.until_open(&mut run);
    eventually("its list is read", || {
        site.row(&["status"])["jobs"][0]["reading"] == serde_json::json!(false) && began()
    });
    assert!(run.kill());
}

#[test]
fn the_same_list_goes_on_at_once_and_a_longer_one_is_read() {
    let target = patient(Duration::from_millis(30));
    let site = Site::new(&rule(&target, "100/s", 10));
    let urls = |count| {
        (0..count)
            .map(|n| target.url(&format!("/{n}")))
            .collect::<Vec<_>>()
    };
    site.tasks(urls(60));
    cut(&site, || !arrived(&target).is_empty());
    let said = go_on(&site, &[]).with(0);
    assert!(said.err.contains(KNOWN), "{}", said.err);
    assert_eq!(site.results().len(), 60);

    // Other words for the same list, and more of it.
    site.tasks(urls(61));
    let said = go_on(&site, &[]).with(0);
    assert!(
        !said.err.contains(KNOWN) && said.err.contains("60 tasks"),
        "{}",
        said.err
    );
    let said = go_on(&site, &["--exclude", "nothing"]).with(0);
    assert!(!said.err.contains(KNOWN), "read otherwise: {}", said.err);
    assert_eq!(site.results().len(), 61);
}

#[test]
fn a_list_is_read_again_where_it_is_not_all_there_is_to_its_tasks() {
    let target = patient(Duration::ZERO);
    let site = Site::new(&rule(&target, "100/s", 10));
    site.tasks([
        format!(
            "{{\"url\":\"{}\",\"headers\":{{\"x-a\":\"env:WORD\"}}}}",
            target.url("/1")
        ),
        target.url("/2"),
    ]);
    let mut run = site.command(&["run", "tasks.jsonl", "--out", "out"]);
    run.env("WORD", "a");
    site.launch(run).end().with(0);
    // What is looked up is missing now, and that is said before anything else.
    let said = go_on(&site, &[]).with(2);
    assert!(said.err.contains("WORD"), "{}", said.err);

    // What somebody wants once more is taken from the list.
    site.tasks([target.url("/3"), target.url("/4")]);
    go_on(&site, &["--ok-status", "204"]).with(0);
    let id = site
        .results()
        .pop()
        .map(|row| text(&row, "id").to_owned())
        .unwrap();
    assert!(go_on(&site, &[]).with(0).err.contains(KNOWN));
    site.say(&["tasks", "retry", &id]).with(0);
    let said = go_on(&site, &[]).with(0);
    assert!(!said.err.contains(KNOWN), "{}", said.err);
    assert_eq!(arrived(&target).len(), 5);
}
