//! The record at scale: how many calls a second become durable, what a call
//! costs on disk and in memory, and how long a reviewer's questions take.
//!
//! `cargo bench --bench record -- [CALLS] [--bulk] [--callers N] [--days N] [--targets N] [--keep FOLDER]`
//!
//! Every call passes the gate as a request does: decided, its intent durable,
//! departed, settled; only the wire is left out. The clock is the bench's, so
//! that the calls spread over `--days`. `--bulk` appends what has ended without
//! its intent, for sizes that the way of a gate would take hours to reach; the
//! segments are the same.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    reason = "a benchmark that cannot be set up has nothing to report"
)]

#[path = "record/fill.rs"]
mod fill;
#[path = "record/look.rs"]
mod look;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidegate::clock::{ManualClock, Moment};
use tidegate::store::{IfMissing, Store};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// 2026-01-01T00:00:00Z.
pub(crate) const START: Moment = Moment::from_nanos(1_767_225_600_000_000_000);

/// What is to be written.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) calls: u64,
    pub(crate) targets: u64,
    pub(crate) span: Duration,
    pub(crate) callers: u64,
}

impl Shape {
    /// From one call to the next.
    pub(crate) fn pace(&self) -> Duration {
        Duration::from_nanos((self.span.as_nanos() / u128::from(self.calls.max(1))) as u64)
    }
}

fn main() {
    let mut shape = Shape {
        calls: 100_000,
        targets: 40_000,
        span: Duration::from_hours(24 * 30),
        callers: 256,
    };
    let (mut bulk, mut keep) = (false, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let number = words.next().and_then(|word| word.parse::<u64>().ok());
            number.expect("a number behind it")
        };
        match word.as_str() {
            "--bench" => {}
            "--bulk" => bulk = true,
            "--callers" => shape.callers = number(),
            "--days" => shape.span = Duration::from_hours(24 * number()),
            "--targets" => shape.targets = number(),
            "--keep" => keep = words.next().map(PathBuf::from),
            other => shape.calls = other.parse().expect("a number of calls"),
        }
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = keep.unwrap_or_else(|| scratch.path().join("store"));
    println!(
        "{} calls to {} targets within {:?}",
        shape.calls, shape.targets, shape.span
    );
    if !folder.exists() {
        let clock = Arc::new(ManualClock::at(START));
        if bulk {
            fill::bulk(&open(&folder), &clock, &shape);
        } else {
            fill::as_a_gate(&open(&folder), &clock, &shape);
        }
        memory("filled and closed");
    }
    for (part, what) in [
        ("", "all"),
        ("record", "volumes with their index"),
        ("db", "database"),
    ] {
        let bytes = size_of(&folder.join(part)) as f64 / shape.calls as f64;
        println!("on disk {bytes:.1} bytes a call: {what}");
    }
    let store = open(&folder);
    memory("opened again");
    look::sizes(&store, &shape);
    look::questions(&store, &shape);
    memory("at the end");
}

pub(crate) fn open(folder: &Path) -> Arc<Store> {
    Arc::new(Store::open(folder, IfMissing::Create, 0).expect("a store"))
}

fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let size = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            size_of(&path)
        } else {
            path.metadata().map_or(0, |meta| meta.len())
        }
    };
    entries.map(size).sum()
}

/// What the process holds, as the kernel counts it.
pub(crate) fn memory(when: &str) {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return;
    };
    let megabytes = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0) / 1024
    };
    println!(
        "memory {when}: {} MB, at most {} MB",
        megabytes("VmRSS:"),
        megabytes("VmHWM:")
    );
}
