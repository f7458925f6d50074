//! The drill as a user sees it: the real binary, its table, its exit code, and
//! what it leaves behind.
#![cfg(feature = "cli")]
#![cfg(test)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the binary with its temporary files in `temporary`.
fn tidegate(temporary: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(args)
        .env("TMPDIR", temporary)
        .env("XDG_CONFIG_HOME", temporary)
        .env("RUST_LOG", "warn")
        .env_remove("TIDEGATE_CONFIG")
        .output()
        .unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.collect()
}

fn number(row: &Value, name: &str) -> u64 {
    row[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {row}"))
}

fn left_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn every_promise_is_kept_as_the_targets_see_it_and_nothing_is_left_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let output = tidegate(temporary.path(), &["drill", "--seconds", "4", "--json"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let rows = rows(&output);
    let (summary, targets) = rows.split_last().unwrap();
    assert_eq!(output.status.code(), Some(0), "{summary}\n{errors}");
    assert_eq!(targets.len(), 8);
    for target in targets {
        assert_eq!(target["kind"], "target");
        assert_eq!(number(target, "over"), 0, "{target}");
        assert_eq!(number(target, "early_returns"), 0, "{target}");
        let worst = &target["worst_window"];
        assert!(
            number(worst, "arrivals") <= number(worst, "allowed"),
            "{target}"
        );
        let arrivals = number(target, "planned") + number(target, "refused");
        assert_eq!(number(target, "arrivals"), arrivals, "{target}");
    }
    let named = |name: &str| {
        targets
            .iter()
            .find(|target| target["name"] == name)
            .unwrap()
    };
    assert!(number(named("moody"), "refused") > 0);
    assert_eq!(number(named("gone"), "arrivals"), 0);

    assert_eq!(summary["kind"], "summary");
    assert_eq!(summary["verdict"], "kept");
    assert_eq!(number(&summary["tasks"], "failed"), 6, "{summary}");
    assert_eq!(number(summary, "lost"), 0);
    assert_eq!(number(summary, "double_answers"), 0);
    assert!(number(summary, "deferrals") > 0);
    let arrivals: u64 = targets
        .iter()
        .map(|target| number(target, "arrivals"))
        .sum();
    assert_eq!(number(summary, "calls_on_record"), arrivals);
    let seconds = |name: &str| summary[name].as_f64().unwrap();
    let (makespan, optimum) = (seconds("makespan_seconds"), seconds("optimum_seconds"));
    assert!((optimum..15.0).contains(&makespan), "{summary}");

    assert_eq!(left_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn a_record_that_is_kept_can_be_read_and_a_table_is_for_people() {
    let temporary = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let kept = elsewhere.path().join("record");
    let kept = kept.to_str().unwrap();
    let args = ["drill", "--seconds", "3", "--agents", "3", "--keep", kept];
    let output = tidegate(temporary.path(), &args);
    let (table, words) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(0), "{table}\n{words}");
    assert!(table.starts_with("TARGET "), "{table}");
    assert!(
        table.contains("\nbrisk ") && table.contains("\nverdict    kept"),
        "{table}"
    );
    assert!(words.contains(&format!("--store {kept}")), "{words}");
    assert_eq!(left_in(temporary.path()), Vec::<String>::new());

    let events = tidegate(
        temporary.path(),
        &["audit", "events", "--store", kept, "--json"],
    );
    assert_eq!(events.status.code(), Some(0));
    let events = rows(&events);
    assert!(
        events
            .iter()
            .filter(|event| event["kind"] == "call")
            .count()
            > 100
    );
    assert!(events.iter().any(|event| event["kind"] == "paused"));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_in_good_order() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::Stdio;

    let temporary = tempfile::tempdir().unwrap();
    let mut drill = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["drill", "--seconds", "60"])
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut words = BufReader::new(drill.stderr.take().unwrap());
    let mut first = String::new();
    words.read_line(&mut first).unwrap();
    assert!(first.contains("12 agents want"), "{first}");
    assert!(!left_in(temporary.path()).is_empty());
    let pid = drill.id().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(kill.success());
    let mut rest = String::new();
    words.read_to_string(&mut rest).unwrap();
    let output = drill.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest}");
    assert!(output.stdout.is_empty());
    assert_eq!(left_in(temporary.path()), Vec::<String>::new());
}
