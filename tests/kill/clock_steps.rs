//! Somebody sets the wall clock: a budget is neither refilled nor frozen by it. The gate is given
//! another wall clock by a library in front of libc's; another boot is a time namespace of Linux
//! with another boot id, where this user may make one.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::neighbour::{Neighbour, Tolerated};
use crate::support::site::{Site, eventually, text};

const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    long shift = 0;
    int done = syscall(SYS_clock_gettime, id, at);
    FILE *file = id == CLOCK_REALTIME ? fopen(getenv("WALL_SHIFT"), "r") : NULL;
    if (file && fscanf(file, "%ld", &shift) == 1) at->tv_sec += shift;
    if (file) fclose(file);
    return done;
}
"#;

const YEAR: i64 = 365 * 24 * 3600;
const STEPS: [i64; 4] = [-100, 3_600, -YEAR, 0];

/// A target of ten a second, and more tasks than a test waits for.
fn site() -> (Site, Neighbour) {
    let tolerated = Tolerated::Rate {
        per_second: 10,
        burst: 10,
    };
    let neighbour = Neighbour::new(tolerated, Duration::ZERO);
    let site = Site::new(&neighbour.rule());
    site.tasks((0..1_000).map(|number| neighbour.target.url(&format!("/{number}"))));
    site.write("clock.c", SHIFTED_CLOCK);
    // Whoever can link a Rust program has a C compiler.
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "clock.so", "clock.c"])
        .current_dir(site.folder())
        .status();
    assert!(compiled.unwrap().success());
    set(&site, 0);
    (site, neighbour)
}

/// Sets the wall clock of the site's gate so many seconds ahead.
fn set(site: &Site, seconds: i64) {
    // As a whole: the gate must not read half of it.
    site.write("shift.new", &seconds.to_string());
    fs::rename(site.path("shift.new"), site.path("shift")).unwrap();
}

fn shifted(site: &Site, mut command: Command) -> Command {
    command.env("LD_PRELOAD", site.path("clock.so"));
    command.env("WALL_SHIFT", site.path("shift"));
    command
}

/// The longest time without an arrival, from the first to the last.
fn longest_gap(neighbour: &Neighbour) -> Duration {
    let times: Vec<_> = neighbour
        .arrivals()
        .into_iter()
        .map(|arrival| arrival.since_start)
        .collect();
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max().unwrap_or_default()
}

fn steps_on_record(site: &Site) -> usize {
    let events = site.rows(&["audit", "events"]);
    let is_step = |row: &&serde_json::Value| text(row, "kind") == "clock_stepped";
    events.iter().filter(is_step).count()
}

#[test]
fn a_step_of_the_wall_clock_while_the_gate_runs_moves_no_budget() {
    let (site, neighbour) = site();
    let run = site.launch(shifted(
        &site,
        site.command(&["run", "tasks.jsonl", "--out", "out"]),
    ));
    eventually("the burst is spent", || {
        neighbour.target.arrivals().len() > 12
    });
    for step in STEPS {
        set(&site, step);
        sleep(Duration::from_millis(1_200));
    }
    run.signal("TERM");
    run.end().with(143);
    let arrived = neighbour.target.arrivals().len();
    assert!(arrived > 12 + 40, "{arrived} in about five seconds");
    let gap = longest_gap(&neighbour);
    assert!(gap < Duration::from_secs(1), "{gap:?} without a call");
    assert_eq!(steps_on_record(&site), STEPS.len());
}

#[test]
fn a_step_of_the_wall_clock_between_two_runs_refills_nothing() {
    let (site, neighbour) = site();
    let run = ["run", "tasks.jsonl", "--out", "out", "--deadline", "1500ms"];
    for step in [0].into_iter().chain(STEPS) {
        set(&site, step);
        let command = shifted(&site, site.command(&run));
        site.launch(command).end().with(75);
    }
    let arrived = neighbour.arrivals().len();
    assert!(arrived > 50, "{arrived} in five runs of more than a second");
    assert_eq!(steps_on_record(&site), STEPS.len());
}

#[test]
fn another_boot_refills_by_its_uptime_and_no_more() {
    let (site, neighbour) = site();
    for (boot, step) in (0..).zip([0].into_iter().chain(STEPS)) {
        set(&site, step);
        // In a boot of its own the machine has been up for one second.
        sleep(Duration::from_secs(1));
        let Some(command) = in_another_boot(&site, boot) else {
            println!("not tried: this user may not make a time namespace");
            return;
        };
        site.launch(shifted(&site, command)).end().with(75);
    }
    let arrived = neighbour.arrivals().len();
    assert!(
        arrived > 50,
        "{arrived} in five boots of more than a second"
    );
}

/// A run in a boot of its own.
fn in_another_boot(site: &Site, boot: u32) -> Option<Command> {
    let id = format!("00000000-0000-4000-8000-{boot:012}\n");
    site.write("boot_id", &id);
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    let program = env!("CARGO_BIN_EXE_tidegate");
    let inside = |line: &str| {
        let mut command = site.command(&[]);
        let line = format!("mount --bind boot_id /proc/sys/kernel/random/boot_id && {line}");
        let back = format!("--boottime=-{:.0}", uptime - 1.0);
        let mut outside = Command::new("unshare");
        outside
            .args(["--mount", "--time", &back, "--fork", "sh", "-c", &line])
            .current_dir(site.folder());
        for (name, value) in command.stdin(std::process::Stdio::null()).get_envs() {
            match value {
                Some(value) => outside.env(name, value),
                None => outside.env_remove(name),
            };
        }
        outside
    };
    let tried = inside("exec cat /proc/sys/kernel/random/boot_id")
        .output()
        .ok()?;
    let may = tried.status.success() && tried.stdout == id.as_bytes();
    let run = "run tasks.jsonl --out out --deadline 1500ms";
    may.then(|| inside(&format!("exec {program} {run}")))
}

#[test]
fn the_shifted_clock_is_what_the_gate_sees() {
    let (site, neighbour) = site();
    set(&site, -YEAR);
    let run = ["run", "tasks.jsonl", "--out", "out", "--deadline", "300ms"];
    let command = shifted(&site, site.command(&run));
    site.launch(command).end().with(75);
    assert!(!neighbour.arrivals().is_empty());
    let now = jiff::Timestamp::now().as_second();
    for result in site.results() {
        let told: jiff::Timestamp = text(&result, "queued_at").parse().unwrap();
        let ago = now - told.as_second();
        assert!((ago - YEAR).abs() < 60, "{ago} s ago: {result}");
    }
}
