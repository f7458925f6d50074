//! Time that passes when the test says so, for the gate's decisions and for its one timer.
//!
//! tokio's clock stands (`#[tokio::test(start_paused = true)]`), and it does not run ahead while
//! real sockets are waited for, as it would by itself. The targets keep their own, real time.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tidegate::clock::{Clock, ManualClock, Moment};
use tidegate::schedule::Snapshot;

use super::gate::{Run, Setup, breath};

/// The steps of tokio's timer.
const TICK: Duration = Duration::from_millis(1);

/// Time in the hand of a test.
pub struct Driven {
    clock: Arc<ManualClock>,
    _standing: mpsc::Sender<()>,
}

impl Driven {
    /// Takes time in hand; tokio's must be paused.
    pub fn new() -> Self {
        let (standing, ended) = mpsc::channel();
        // While a blocking task runs, tokio does not advance a paused clock by itself.
        tokio::task::spawn_blocking(move || ended.recv());
        // Tue, 01 Dec 2026 03:41:00 GMT
        let now = Moment::from_nanos(1_796_096_460_000_000_000);
        Self {
            clock: Arc::new(ManualClock::at(now)),
            _standing: standing,
        }
    }

    /// A gate that goes by this time.
    pub fn setup(&self) -> Setup {
        let mut setup = Setup::default();
        setup.clock = Some(self.clock.clone());
        setup
    }

    /// Now.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Lets time pass; what it wakes runs when the test next waits.
    pub async fn pass(&self, span: Duration) {
        self.clock.advance(span);
        tokio::time::advance(span + TICK).await;
    }

    /// Waits until the schedule has nothing left to do at this moment.
    pub async fn still(&self, run: &Run) -> Snapshot {
        // Each answer is given between two rounds of the schedule's loop; what a call's end tells
        // it may take some of them to be heard.
        const ROUNDS: u32 = 24;
        let mut quiet = 0;
        loop {
            let snapshot = run.handle.look(10).await.expect("a running schedule");
            quiet = if snapshot.running == 0 { quiet + 1 } else { 0 };
            if quiet == ROUNDS {
                return snapshot;
            }
            if snapshot.running > 0 {
                breath().await;
            }
        }
    }
}

impl Default for Driven {
    fn default() -> Self {
        Self::new()
    }
}
