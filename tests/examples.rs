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
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(built(name)).output().unwrap();
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

#[test]
fn an_orchestrator_does_other_work_while_a_host_is_exhausted() {
    let out = run("orchestrator");
    assert!(out.contains("the archive has none before"), "{out}");
    let order = out.lines().last().unwrap();
    let archive = order.rfind("archive").unwrap();
    assert!(order.find("mirror").unwrap() < archive, "{out}");
}
