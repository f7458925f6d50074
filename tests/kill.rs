//! Kill -9 at any instant: no target gets more than it tolerates, nothing is sent twice that must
//! not be, and nothing that was acknowledged is lost. A hundred kills in all, at instants drawn
//! from a seed (`KILL_SEED`), each followed by a restart; judged by what the targets saw, by the
//! results, and by the record.
#![cfg(test)]
#![cfg(feature = "cli")]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests live in real time, beside the gate"
)]

mod support;

#[path = "kill/burst.rs"]
mod burst;
#[path = "kill/clock_steps.rs"]
mod clock_steps;
#[path = "kill/first_steps.rs"]
mod first_steps;
#[path = "kill/hop.rs"]
mod hop;
#[path = "kill/mixed.rs"]
mod mixed;
#[path = "kill/neighbour.rs"]
mod neighbour;
#[path = "kill/pause.rs"]
mod pause;
#[path = "kill/storm.rs"]
mod storm;
#[path = "kill/ten_thousand.rs"]
mod ten_thousand;
#[path = "kill/witness.rs"]
mod witness;
#[path = "kill/writes.rs"]
mod writes;
