//! The other side: targets on the loopback interface that log what reaches them, and the gate as a
//! process.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a judge keeps its own clock and threads, and fails loudly"
)]

pub mod alone;
pub mod driven;
pub mod gate;
pub mod handmade;
pub mod loopback;
#[cfg(feature = "cli")]
pub mod site;
pub mod tls;
pub mod wait;
