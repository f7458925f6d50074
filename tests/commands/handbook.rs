//! `completions` and `man`: what a shell and a reader of the manual get.

use std::process::{Command, Stdio};

use crate::support::site::Site;

/// What a program of this machine, which `scripts/test` sees to, says to this input.
fn through(program: &str, args: &[&str], input: &str) -> String {
    use std::io::Write;
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{program}: {error}"));
    // It may have ended without reading all of it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_shell_gets_completions_that_know_the_commands() {
    let site = Site::new("");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = site.say(&["completions", shell]).with(0).out;
        for word in ["budget", "release", "retry", "--max", "skip-bad"] {
            let word = if shell == "fish" {
                word.trim_start_matches('-')
            } else {
                word
            };
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let said = site.say(&["completions", "cmd"]).with(2);
    assert!(said.err.contains("bash"), "{}", said.err);
}

#[test]
fn bash_completes_with_them() {
    let site = Site::new("");
    let script = site.say(&["completions", "bash"]).with(0).out;
    let asked = "\nCOMP_WORDS=(tidegate rel)\nCOMP_CWORD=1\n_tidegate tidegate rel tidegate\necho \"${COMPREPLY[@]}\"\n";
    let said = through("bash", &["--norc"], &(script + asked));
    assert_eq!(said.trim(), "release");
}

#[test]
fn there_is_a_page_of_the_manual_for_the_program_and_for_each_command() {
    let site = Site::new("");
    let page = site.say(&["man"]).with(0).out;
    assert!(page.contains("\n.TH tidegate 1 "), "{page}");
    for word in [
        "tidegate\\-set(1)",
        "\\-\\-store",
        "One gate for every outbound call",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let page = site.say(&["man", "tasks", "retry"]).with(0).out;
    assert!(page.contains("\n.TH tidegate-tasks-retry 1 "), "{page}");
    assert!(
        page.contains("ambiguous") && page.contains("Example:"),
        "{page}"
    );
    // Only what is laid out has these at the margin, in this order.
    let laid_out = through("groff", &["-man", "-Tascii", "-P-cbou"], &page);
    let heads = laid_out.lines().filter(|line| {
        let mut letters = line.chars();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_uppercase())
            && letters.all(|letter| letter.is_ascii_uppercase() || letter == ' ')
    });
    let heads: Vec<_> = heads.collect();
    let expected = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXTRA"];
    assert_eq!(heads, expected, "{laid_out}");
    let said = site.say(&["man", "nothing"]).with(2);
    assert!(said.err.contains("nothing"), "{}", said.err);
}
