//! Waiting for what other threads do, in the machine's own time, whatever a test does to tokio's.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes that a test waits for, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long it is since this was called, in the machine's own time.
pub fn stopwatch() -> impl Fn() -> Duration {
    let began = Instant::now();
    move || began.elapsed()
}

/// Waits for what others are about to do.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        breath().await;
    }
}

/// Lets a little of the machine's own time pass, whatever the test does to tokio's.
pub async fn breath() {
    let slept = tokio::task::spawn_blocking(|| thread::sleep(Duration::from_millis(2)));
    slept.await.expect("no panic");
}
