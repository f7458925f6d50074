//! Beside a run: days of the record that are older than what is kept are let
//! go, in small steps.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::admission::Admission;
use crate::audit::Retained;

const BETWEEN_LOOKS: Duration = Duration::from_hours(1);
/// From one step to the next, so that calls come between.
const BETWEEN_STEPS: Duration = Duration::from_millis(50);

/// Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Keeper(Option<JoinHandle<()>>);

impl Keeper {
    /// Begins at once; nothing to do where all is kept.
    pub(super) fn start(admission: &Arc<Admission>, keep: Option<Duration>) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "ends with its handle, or with the gate"
        )]
        Self(keep.map(|keep| tokio::spawn(retain(Arc::downgrade(admission), keep))))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn retain(admission: Weak<Admission>, keep: Duration) {
    loop {
        let Some(admission) = admission.upgrade() else {
            return;
        };
        let step = move || admission.log().retain(keep);
        let wait = match tokio::task::spawn_blocking(step).await {
            Ok(Ok(Retained::More)) => BETWEEN_STEPS,
            Ok(Ok(Retained::All)) => BETWEEN_LOOKS,
            Ok(Err(error)) => {
                tracing::warn!(%error, "old days of the record could not be let go");
                BETWEEN_LOOKS
            }
            Err(_) => return,
        };
        tokio::time::sleep(wait).await;
    }
}
