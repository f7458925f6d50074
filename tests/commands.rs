//! The commands as they are used: what they print, what they exit with, what a target sees of
//! them, and what they say when something is wrong.
#![cfg(test)]
#![cfg(feature = "cli")]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests live in real time, beside the gate"
)]

mod support;

#[path = "commands/audit_record.rs"]
mod audit_record;
#[path = "commands/ahead.rs"]
mod ahead;
#[path = "commands/asked.rs"]
mod asked;
#[path = "commands/beside.rs"]
mod beside;
#[path = "commands/broken_files.rs"]
mod broken_files;
#[path = "commands/broken_store.rs"]
mod broken_store;
#[path = "commands/control.rs"]
mod control;
#[path = "commands/copies.rs"]
mod copies;
#[path = "commands/descriptors.rs"]
mod descriptors;
#[path = "commands/disk.rs"]
mod disk;
#[path = "commands/ends.rs"]
mod ends;
#[path = "commands/explain.rs"]
mod explain;
#[path = "commands/handbook.rs"]
mod handbook;
#[path = "commands/hold.rs"]
mod hold;
#[path = "commands/init.rs"]
mod init;
#[path = "commands/lists.rs"]
mod lists;
#[path = "commands/metrics.rs"]
mod metrics;
#[path = "commands/never.rs"]
mod never;
#[path = "commands/reload.rs"]
mod reload;
#[path = "commands/room.rs"]
mod room;
#[path = "commands/same_list.rs"]
mod same_list;
#[path = "commands/set.rs"]
mod set;
#[path = "commands/tasks_by_hand.rs"]
mod tasks_by_hand;
#[path = "commands/picking.rs"]
mod picking;
#[path = "commands/refresh.rs"]
mod refresh;
#[path = "commands/warc.rs"]
mod warc;
#[path = "commands/words.rs"]
mod words;

use std::time::Duration;

use support::loopback::{Answer, Request, Script, Target};

/// A target that answers 200 after a while.
fn patient(latency: Duration) -> Target {
    let answer = move |request: &Request, _| {
        Answer::status(200)
            .body(request.path.clone())
            .after(latency)
    };
    Target::start(Script::new(answer))
}

/// A target that answers 200 at once.
fn prompt() -> Target {
    patient(Duration::ZERO)
}

/// A rule that lets so many a second through, one at a time where it matters.
fn rule(target: &Target, rate: &str, burst: u32) -> String {
    format!(
        "\n[[target]]\nmatch = \"{}\"\nrate = \"{rate}\"\nburst = {burst}\nconcurrency = 10\n",
        target.origin()
    )
}

/// The methods and paths that arrived, in their order.
fn arrived(target: &Target) -> Vec<String> {
    let arrivals = target.arrivals().into_iter();
    arrivals
        .map(|arrival| format!("{} {}", arrival.method, arrival.path))
        .collect()
}
