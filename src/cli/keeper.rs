//! Beside a run: days of the record that are older than what is kept, and
//! bodies for which there is no more room, are let go in small steps.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::admission::Admission;
use crate::audit::{Event, Retained};
use crate::config::Config;
use crate::egress::{Bodies, LetGo};

const BETWEEN_LOOKS: Duration = Duration::from_hours(1);
/// From one step to the next, so that calls come between.
const BETWEEN_STEPS: Duration = Duration::from_millis(50);
/// How often it is asked by how much the bodies have grown.
const BETWEEN_GLANCES: Duration = Duration::from_secs(1);
/// Bodies are looked through again when they have grown by this part of the room.
const PART: u64 = 20;

/// Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    _tasks: JoinSet<()>,
}

impl Keeper {
    /// Begins at once; nothing to do where all is kept.
    pub(super) fn start(admission: &Arc<Admission>, config: &Config, bodies: &Bodies) -> Self {
        let mut tasks = JoinSet::new();
        if let Some(keep) = config.retention {
            tasks.spawn(retain(Arc::downgrade(admission), keep));
        }
        if let Some(most) = config.max_store {
            tasks.spawn(make_room(Arc::downgrade(admission), bodies.clone(), most));
        }
        Self { _tasks: tasks }
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
            Err(error) => {
                tracing::error!(%error, "old days of the record could not be let go");
                BETWEEN_LOOKS
            }
        };
        tokio::time::sleep(wait).await;
    }
}

async fn make_room(admission: Weak<Admission>, bodies: Bodies, most: u64) {
    loop {
        let Some(admission) = admission.upgrade() else {
            return;
        };
        let looked = bodies.clone();
        let step = move || let_go(&admission, &looked, most);
        match tokio::task::spawn_blocking(step).await {
            Ok(Ok(())) => {}
            Ok(Err(words)) => tracing::warn!("old bodies could not be let go: {words}"),
            Err(error) => tracing::error!(%error, "old bodies could not be let go"),
        }
        let mut grown = 0;
        while grown < (most / PART).max(1) {
            tokio::time::sleep(BETWEEN_GLANCES).await;
            grown = bodies.grown();
        }
    }
}

/// On record first: what is gone and on no record would be missed.
fn let_go(admission: &Admission, bodies: &Bodies, most: u64) -> Result<(), String> {
    let clock = admission.clock();
    let surplus = bodies.surplus(most, clock.wall());
    let Some(surplus) = surplus.map_err(|error| error.to_string())? else {
        return Ok(());
    };
    let LetGo { files, bytes } = surplus.total;
    let at = clock.now();
    let noted = admission
        .log()
        .note(Event::BodiesLetGo { files, bytes, at });
    noted.wait_blocking().map_err(|fault| fault.to_string())?;
    bodies.let_go(surplus).map_err(|error| error.to_string())
}
