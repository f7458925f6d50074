//! Talking to a running gate.
//!
//! Whoever opens a store holds it alone, so every other command asks the
//! process that does. That process answers [`Question`]s at a loopback port,
//! named with a secret in a file that only the store's owner can read.

mod acts;
mod budgets;
mod control;
mod desk;
mod forecast;
mod manual;
mod question;
mod record;
mod tasks;

pub use control::{Control, ControlError, Metrics, ask};
pub use desk::{AnswerError, Desk, Gate, Rows};
pub use forecast::{Pace, forecast};
pub use question::{Act, Ambiguous, By, Change, Manually, Question, Record, TaskFilter, Wanted};
