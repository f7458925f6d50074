//! Being told to stop, by a person or by the system.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::show::say;
use crate::schedule::Handle;

/// The first signal lets calls under way end; the second does not.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    pub(super) first: Option<u8>,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            first: None,
        })
    }

    pub(super) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
        }
    }

    pub(super) fn stop(&mut self, number: u8, handle: &Handle) {
        if self.first.replace(number).is_some() {
            // Calls under way are on record, and are taken up by the next run.
            std::process::exit(i32::from(number) + 128);
        }
        say("stopping: calls under way are ended first (again: at once)");
        handle.stop();
    }
}
