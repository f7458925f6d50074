//! The examples do what they say; each tells by its exit code.
#![cfg(test)]

use std::path::PathBuf;
use std::process::{Command, Output};

/// `cargo test` builds the examples beside the tests: `examples/NAME`, next to
/// the folder of this very program.
fn built(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let example = profile
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        example.exists(),
        "{} is not there; `cargo build --examples` makes it",
        example.display()
    );
    example
}

fn run(name: &str) -> String {
    said(&mut Command::new(built(name)))
}

fn said(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let (out, err) = (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    );
    assert!(status.success(), "{status}\n{out}\n{err}");
    out
}

#[test]
fn a_budgeted_get_is_deferred_and_then_answered() {
    let out = run("budgeted_get");
    assert_eq!(out.matches("200: this is /page/").count(), 4, "{out}");
    assert!(out.contains(r#""cause": "budget_empty""#), "{out}");
    assert!(out.contains(r#""sent_upstream": false"#), "{out}");
}

/// A Python that has pandas. The one of the distribution may not be the first in the path.
fn python_with_pandas() -> &'static str {
    let has_pandas = |python: &&&str| {
        let look = "import importlib.util as u, sys; sys.exit(u.find_spec('pandas') is None)";
        let found = Command::new(python).args(["-c", look]).output();
        found.is_ok_and(|found| found.status.success())
    };
    ["python3", "/usr/bin/python3"]
        .iter()
        .find(has_pandas)
        .expect("no python3 here has pandas: run scripts/test, or apt-get install python3-pandas")
}

#[test]
fn a_crawl_that_is_killed_goes_on_and_its_results_are_read_by_pandas() {
    let folder = tempfile::tempdir().unwrap();
    let out = said(Command::new(built("resumed_crawl")).arg(folder.path()));
    assert_eq!(out.matches("killed: ").count(), 2, "{out}");
    assert!(
        out.contains("there are 120 results\nevery page was asked for; "),
        "{out}"
    );

    let results = folder.path().join("out/results.jsonl");
    // As a refresh would: the last line of an id counts.
    let text = std::fs::read_to_string(&results).unwrap();
    let mut last: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    last["outcome"] = "failed".into();
    last["error"] = "of a later day".into();
    std::fs::write(&results, format!("{text}{last}\n")).unwrap();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/python/results.py");
    let python = python_with_pandas();
    let out = said(
        Command::new(python)
            .arg(program)
            .arg(&results)
            .args(["--every", "1h"]),
    );
    let rows: Vec<Vec<&str>> = out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let mut counts: Vec<&str> = rows
        .iter()
        .filter_map(|row| {
            let at = row
                .iter()
                .position(|cell| ["succeeded", "failed"].contains(cell))?;
            row.get(at + 1).copied()
        })
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, ["1", "59", "60"], "{out}");
    assert!(
        out.contains("120 tasks, 1 with an error\n       1 of a later day"),
        "{out}"
    );
    let none = folder.path().join("none.jsonl");
    std::fs::write(&none, "").unwrap();
    let said = Command::new(python)
        .arg(program)
        .arg(&none)
        .output()
        .unwrap();
    assert_eq!(said.status.code(), Some(1));
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        words.contains("no task is complete yet") && !words.contains("Traceback"),
        "{words}"
    );
}

#[test]
fn an_orchestrator_does_other_work_while_a_host_is_exhausted() {
    let out = run("orchestrator");
    assert!(out.contains("the archive has none before"), "{out}");
    let order = out.lines().last().unwrap();
    let archive = order.rfind("archive").unwrap();
    assert!(order.find("mirror").unwrap() < archive, "{out}");
}
