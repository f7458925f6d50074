//! The tasks that are not complete, as far as they are in memory, and how many
//! of them are in which state: asked for often, so never counted anew.

use std::collections::HashMap;

use super::fair::AgentId;
use super::queue::LaneId;
use super::view::TaskState;
use crate::audit::TaskRef;

/// What is kept in memory of a task that is not complete.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) lane: LaneId,
    pub(super) agent: AgentId,
    pub(super) priority: i32,
    pub(super) deferrals: u32,
    state: TaskState,
}

impl Pending {
    pub(super) fn new(
        lane: LaneId,
        agent: AgentId,
        priority: i32,
        deferrals: u32,
        state: TaskState,
    ) -> Self {
        Self {
            lane,
            agent,
            priority,
            deferrals,
            state,
        }
    }

    pub(super) fn state(&self) -> TaskState {
        self.state
    }
}

/// How many tasks are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) queued: u64,
    pub(super) running: u64,
    pub(super) backoff: u64,
}

impl Counts {
    fn of(&mut self, state: TaskState) -> &mut u64 {
        match state {
            TaskState::Queued => &mut self.queued,
            TaskState::Running => &mut self.running,
            TaskState::Backoff { .. } => &mut self.backoff,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Pendings {
    tasks: HashMap<TaskRef, Pending>,
    counts: Counts,
}

impl Pendings {
    /// Takes a task in, or on in another state.
    pub(super) fn insert(&mut self, task: TaskRef, pending: Pending) {
        *self.counts.of(pending.state) += 1;
        if let Some(before) = self.tasks.insert(task, pending) {
            *self.counts.of(before.state) -= 1;
        }
    }

    pub(super) fn remove(&mut self, task: TaskRef) -> Option<Pending> {
        let removed = self.tasks.remove(&task)?;
        *self.counts.of(removed.state) -= 1;
        Some(removed)
    }

    pub(super) fn get(&self, task: TaskRef) -> Option<&Pending> {
        self.tasks.get(&task)
    }

    /// A task was told to wait.
    pub(super) fn deferred(&mut self, task: TaskRef) {
        if let Some(pending) = self.tasks.get_mut(&task) {
            pending.deferrals = pending.deferrals.saturating_add(1);
        }
    }

    /// Moves a task to another state; none where there is no such task.
    pub(super) fn turn(&mut self, task: TaskRef, state: TaskState) -> Option<&Pending> {
        let pending = self.tasks.get_mut(&task)?;
        *self.counts.of(pending.state) -= 1;
        *self.counts.of(state) += 1;
        pending.state = state;
        Some(pending)
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskRef, &Pending)> {
        self.tasks.iter().map(|(task, pending)| (*task, pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    fn task(number: u64) -> TaskRef {
        TaskRef { job: 1, number }
    }

    #[test]
    fn counts_are_what_a_count_would_find_whatever_happens() {
        let mut pendings = Pendings::default();
        let states = [
            TaskState::Queued,
            TaskState::Running,
            TaskState::Backoff {
                until: Moment::ZERO,
            },
        ];
        for step in 0..1000_usize {
            let (task, state) = (task((step * 7 % 13) as u64), states[step * 5 % 3]);
            match step % 4 {
                0 => pendings.insert(task, Pending::new(1, 1, 0, 0, state)),
                3 => drop(pendings.remove(task)),
                _ => drop(pendings.turn(task, state)),
            }
            let mut counted = Counts::default();
            pendings
                .iter()
                .for_each(|(_, pending)| *counted.of(pending.state) += 1);
            assert_eq!(pendings.counts(), counted, "{step}");
        }
    }
}
