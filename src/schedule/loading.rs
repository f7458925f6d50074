//! What a run before left over is taken up piece by piece, while what is there
//! is already under way: a long queue does not delay the first call.

use std::collections::HashSet;

use super::fair::Place;
use super::job::Job;
use super::work::Work;
use super::worker::Worker;
use crate::audit::TaskRef;
use crate::store::StoreError;

/// Tasks read at a time.
const PIECE: usize = 256;

/// The part of a queue that is not in memory yet.
#[derive(Debug)]
pub(super) struct Loading {
    next: u64,
    /// Tasks from here on were accepted by this run, and are in memory.
    end: u64,
    /// What the store shows of these is older than what is known.
    known: HashSet<TaskRef>,
}

impl Loading {
    /// All that `job` holds, save the tasks that are `known`.
    pub(super) fn of(job: &Job, known: HashSet<TaskRef>) -> Self {
        let end = job.record().accepted();
        Self {
            next: 0,
            end,
            known,
        }
    }

    /// Whether a task is still to be read; it will not be from now on.
    pub(super) fn take_out(&mut self, task: TaskRef) -> bool {
        (self.next..self.end).contains(&task.number) && self.known.insert(task)
    }
}

impl<W: Work> Worker<W> {
    /// Takes up the next piece.
    pub(super) fn load_more(&mut self) {
        let Some(mut loading) = self.loading.take() else {
            return;
        };
        match self.load_piece(&mut loading) {
            Ok(true) => self.loading = Some(loading),
            Ok(false) => {}
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// False when there is nothing more.
    fn load_piece(&mut self, loading: &mut Loading) -> Result<bool, StoreError> {
        let job = self.job.clone();
        for entry in job.pending_between(loading.next, loading.end).take(PIECE) {
            let (task, record) = entry?;
            loading.next = task.number + 1;
            if !loading.known.contains(&task) {
                self.add(task, &record, Place::Back);
            }
            if loading.next == loading.end {
                return Ok(false);
            }
        }
        Ok(job
            .pending_between(loading.next, loading.end)
            .next()
            .is_some())
    }
}
