//! The loopback target is the judge of every promise, so it is judged first.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are outside any test function"
)]

mod support;

#[path = "support_itself/hostile.rs"]
mod hostile;
#[path = "support_itself/judging.rs"]
mod judging;
#[path = "support_itself/log_and_script.rs"]
mod log_and_script;
#[path = "support_itself/plain.rs"]
mod plain;
#[path = "support_itself/raw.rs"]
mod raw;
#[path = "support_itself/secure.rs"]
mod secure;

use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for what another thread is about to do.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A client that never repeats a request by itself.
fn client() -> reqwest::ClientBuilder {
    repeating_client().retry(reqwest::retry::never())
}

/// A client as it comes, which repeats what the server says it did not process.
fn repeating_client() -> reqwest::ClientBuilder {
    // An error means that another test was first.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    reqwest::Client::builder().no_proxy().timeout(PATIENCE)
}
