//! A test in a process of its own: for what is true of a process as a whole, such as its memory,
//! its threads or its environment.

use std::io::Write;
use std::process::{Command, Output};

const INSIDE: &str = "TIDEGATE_TEST_ALONE";

/// Where the caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the process that is the test's own.
    Inside,
    /// In the one that started it, which has passed.
    Outside,
}

/// Runs the calling test again, in a process of its own with these variables. `name` is the test's
/// name within its binary. Fails if the test does.
pub fn alone(name: &str, variables: &[(&str, &str)]) -> Place {
    if is_inside(name) {
        return Place::Inside;
    }
    let output = again(name, variables);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "alone, {name} failed:\n{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // What it found is worth reading where the test is run with --nocapture.
    std::io::stdout()
        .write_all(&output.stdout)
        .expect("an open stdout");
    Place::Outside
}

/// The same for a test that ends its own process in the middle.
pub fn killed(name: &str, variables: &[(&str, &str)]) -> Place {
    if is_inside(name) {
        return Place::Inside;
    }
    let output = again(name, variables);
    assert_eq!(
        output.status.code(),
        None,
        "alone, {name} was not killed:\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Place::Outside
}

fn is_inside(name: &str) -> bool {
    std::env::var(INSIDE).is_ok_and(|inside| inside == name)
}

fn again(name: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().expect("a test binary"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs")
}

/// This process's CPU time, in clock ticks of a hundredth of a second (proc(5), stat, 14 and 15).
pub fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("procfs");
    let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
    // They are counted from 1, and the first two stand before this.
    let spent = fields.split_whitespace().skip(14 - 3).take(2);
    spent
        .map(|ticks| ticks.parse::<u64>().expect("ticks"))
        .sum()
}

/// A number of `/proc/self/status`, such as `Threads`, or `VmHWM` in kB.
pub fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line
        .expect("a field of that name")
        .split_whitespace()
        .next();
    number.expect("a number").parse().expect("a number")
}
