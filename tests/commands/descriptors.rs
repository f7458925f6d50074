//! More hosts than a process may have files open.

use std::process::Command;

use serde_json::json;

use crate::arrived;
use crate::support::loopback::{Answer, Script, Target};
use crate::support::site::{Process, Site, text};

const HOSTS: usize = 400;

/// A target that keeps connections open, under a name for each host.
fn site() -> (Site, Target) {
    let target = Target::start(Script::always(Answer::status(200).body("here")));
    let name = |host: usize| format!("h{host}.test");
    let pins = (0..HOSTS).map(|host| format!("\"{}\" = [\"127.0.0.1\"]\n", name(host)));
    let pins = pins.collect::<String>();
    let site = Site::new(&format!(
        "\n[defaults]\nrate = \"1000/s\"\nconcurrency = 10\n\n[resolve]\n{pins}"
    ));
    let port = target.addr().port();
    site.tasks((0..HOSTS).map(|host| json!({"url": format!("http://{}:{port}/", name(host))})));
    (site, target)
}

fn run_with(site: &Site, descriptors: usize, concurrency: &str) -> Process {
    let gate = site.command(&[]);
    let mut command = Command::new("sh");
    command
        .current_dir(site.folder())
        .args(["-c", "ulimit -n \"$0\"; exec \"$@\""])
        .arg(descriptors.to_string())
        .arg(gate.get_program())
        .args(["run", "tasks.jsonl", "--out", "out", "--concurrency"])
        .arg(concurrency)
        .env("HOME", site.folder());
    site.launch(command)
}

#[test]
fn a_crawl_over_more_hosts_than_descriptors_keeps_few_connections_open() {
    let (site, target) = site();
    run_with(&site, 150, "16").end().with(0);
    let results = site.results();
    assert_eq!(results.len(), HOSTS);
    assert!(
        results
            .iter()
            .all(|row| text(row, "outcome") == "succeeded" && row["attempts"] == 1)
    );
    assert_eq!(arrived(&target).len(), HOSTS);
}

#[test]
fn a_process_with_few_descriptors_makes_fewer_calls_at_once_and_says_so() {
    let (site, target) = site();
    let said = run_with(&site, 64, "200").end().with(0);
    assert!(
        said.err.contains("ulimit -n") && said.err.contains("only 16"),
        "{}",
        said.err
    );
    let results = site.results();
    assert_eq!(results.len(), HOSTS);
    assert!(
        results
            .iter()
            .all(|row| text(row, "outcome") == "succeeded" && row["attempts"] == 1)
    );
    assert_eq!(arrived(&target).len(), HOSTS);
}
