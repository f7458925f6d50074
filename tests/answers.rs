//! What comes back, and where it goes: answers of every kind, redirects, bodies on disk; and what
//! must go nowhere, secrets. Judged from the target's log and from what is left on disk.

#![cfg(test)]

mod support;

#[path = "answers/bodies.rs"]
mod bodies;
#[path = "answers/redirects.rs"]
mod redirects;
#[path = "answers/secrets.rs"]
mod secrets;
#[path = "answers/statuses.rs"]
mod statuses;

use serde_json::Value;
use tidegate::schedule::ResultLine;

use support::gate::{Gate, task};

/// Runs one task to its end.
async fn run_one(gate: &Gate, line: &Value) -> ResultLine {
    let results = gate.run(vec![task(line)]).await;
    let [result] = results.try_into().expect("one result");
    result
}
