//! Tasks that share the fate of another, or of their target: ended piece by
//! piece, so that half a million of them delay nobody else.

use std::collections::VecDeque;
use std::sync::Arc;

use super::fair::Place;
use super::queue::LaneId;
use super::work::Work;
use super::worker::Worker;
use crate::audit::TaskRef;
use crate::outcome::Outcome;

/// Tasks ended at a time.
const PIECE: usize = 64;
/// Ends on their way to the disk, beyond which no more are added.
const MOST_NOTED: usize = 1024;

/// Tasks of one lane that are to end in the same way.
#[derive(Debug)]
pub(super) struct Doomed {
    tasks: VecDeque<TaskRef>,
    outcome: Outcome,
    why: Arc<str>,
    /// A task with more attempts than these is tried on its own.
    spared_above: Option<u32>,
}

impl<W: Work> Worker<W> {
    /// Takes everything that waits in a lane out of the queue, to end it.
    pub(super) fn doom(
        &mut self,
        lane: LaneId,
        outcome: Outcome,
        why: &str,
        spared_above: Option<u32>,
    ) {
        let tasks: VecDeque<_> = self.queue.drain(lane).into();
        if !tasks.is_empty() {
            self.doomed.push_back(Doomed {
                tasks,
                outcome,
                why: why.into(),
                spared_above,
            });
        }
    }

    /// Whether there is a piece to be ended now.
    pub(super) fn has_doomed(&self) -> bool {
        !self.doomed.is_empty() && self.noted.len() < MOST_NOTED
    }

    /// Ends the next piece.
    pub(super) fn end_doomed(&mut self) {
        let Some(mut doomed) = self.doomed.pop_front() else {
            return;
        };
        for _ in 0..PIECE {
            let Some(task) = doomed.tasks.pop_front() else {
                return;
            };
            if !self.is_spared(task, doomed.spared_above) {
                let _ = self.end_waiting(task, doomed.outcome, &doomed.why);
            }
        }
        self.doomed.push_back(doomed);
    }

    fn is_spared(&mut self, task: TaskRef, above: Option<u32>) -> bool {
        let Some(above) = above else {
            return false;
        };
        match self.job.load(task) {
            Ok(Some(record)) if record.task.max_attempts.get() > above => {
                self.add(task, &record, Place::Back);
                true
            }
            Ok(_) => false,
            Err(error) => {
                self.fail(&error.to_string());
                true
            }
        }
    }
}
