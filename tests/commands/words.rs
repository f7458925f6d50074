//! What is said to people: help with examples, no colours where none are wanted, and a reader who
//! leaves early.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::site::Site;
use crate::{prompt, rule};

const COMMANDS: [&[&str]; 24] = [
    &["run"],
    &["status"],
    &["explain"],
    &["budget"],
    &["targets"],
    &["tasks"],
    &["tasks", "cancel"],
    &["tasks", "retry"],
    &["results"],
    &["set"],
    &["deny"],
    &["hold"],
    &["release"],
    &["init"],
    &["completions"],
    &["man"],
    &["audit", "events"],
    &["audit", "decisions"],
    &["audit", "windows"],
    &["audit", "who"],
    &["audit", "envelopes"],
    &["check"],
    &["drill"],
    &["audit"],
];

#[test]
fn the_help_of_every_command_has_an_example_of_it() {
    let site = Site::new("");
    let whole = site.say(&["--help"]).with(0);
    for command in COMMANDS {
        assert!(whole.out.contains(command[0]), "{command:?} is not listed");
        let said = site.say(&[command, &["--help"]].concat()).with(0);
        let example = format!("  tidegate {}", command.join(" "));
        let shown = said
            .out
            .split("Example")
            .nth(1)
            .is_some_and(|shown| shown.contains(&example));
        // `audit` alone lists its own commands.
        assert!(shown || command == ["audit"], "{command:?}: {}", said.out);
        assert!(said.err.is_empty(), "{command:?}: {}", said.err);
    }
    let version = site.say(&["--version"]).with(0);
    assert_eq!(
        version.out.trim(),
        concat!("tidegate ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let target = prompt();
    let site = Site::new(&rule(&target, "2000/s", 50));
    site.tasks((0..3_000).map(|number| target.url(&format!("/{number}"))));
    site.run().end().with(0);
    let questions: [&[&str]; 6] = [
        &["tasks", "--list", "--json"],
        &["tasks", "--list"],
        &["audit", "events", "--json"],
        &["audit", "events"],
        &["targets"],
        &["--help"],
    ];
    for args in questions {
        let mut command = site.command(args);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut reader = BufReader::with_capacity(16, child.stdout.take().unwrap());
        reader.read_line(&mut first).unwrap();
        drop(reader);
        let said = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&said.stderr);
        assert!(!first.is_empty() && err.is_empty(), "{args:?}: {err}");
        assert_eq!(said.status.code(), Some(0), "{args:?}");
    }
    // Nobody has read a byte.
    let mut command = site.command(&["status"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// What a command writes to a terminal.
fn on_a_terminal(site: &Site, line: &str, no_colour: Option<&str>) -> Option<String> {
    let program = env!("CARGO_BIN_EXE_tidegate");
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{program} {line}"), "/dev/null"]);
    command
        .current_dir(site.folder())
        .stdin(Stdio::null())
        .env("TERM", "xterm-256color");
    command
        .env_remove("NO_COLOR")
        .env("RUST_LOG", "info,tidegate=debug");
    if let Some(no_colour) = no_colour {
        command.env("NO_COLOR", no_colour);
    }
    let said = command.output().ok()?;
    Some(String::from_utf8_lossy(&said.stdout).into_owned())
}

#[test]
fn colours_are_for_terminals_and_not_where_no_color_is_set() {
    let site = Site::new("");
    site.tasks(["http://127.0.0.1:9/"]);
    for line in ["--help", "run --no-such-flag"] {
        let piped = site.say(&line.split(' ').collect::<Vec<_>>());
        assert!(!(piped.out + &piped.err).contains('\u{1b}'), "{line}");
        let Some(coloured) = on_a_terminal(&site, line, None) else {
            println!("not tried: there is no `script` here");
            return;
        };
        assert!(coloured.contains("\u{1b}["), "{line}: {coloured}");
        let plain = on_a_terminal(&site, line, Some("1")).unwrap();
        assert!(!plain.contains("\u{1b}["), "{line}: {plain}");
        let empty = on_a_terminal(&site, line, Some("")).unwrap();
        assert!(
            empty.contains("\u{1b}["),
            "{line}: an empty NO_COLOR is none"
        );
    }
}
