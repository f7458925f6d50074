//! What a worker shows of itself.

use super::view::{LaneView, Snapshot, TaskState, TaskView};
use super::worker::{Pending, Worker};
use crate::audit::TaskRef;

impl<W> Worker<W> {
    pub(super) fn list(&self) -> Vec<TaskView> {
        let view = |(task, pending): (&TaskRef, &Pending)| {
            let blocked = self.lanes.get(pending.lane).and_then(|lane| lane.blocked);
            TaskView {
                task: *task,
                state: pending.state,
                deferrals: pending.deferrals,
                blocked,
            }
        };
        self.tasks.iter().map(view).collect()
    }

    pub(super) fn snapshot(&self, most: usize) -> Snapshot {
        let mut snapshot = Snapshot {
            alarms: self.queue.alarms(),
            wake: self.queue.next_alarm(),
            ..Snapshot::default()
        };
        for pending in self.tasks.values() {
            match pending.state {
                TaskState::Queued => snapshot.queued += 1,
                TaskState::Running => snapshot.running += 1,
                TaskState::Backoff { .. } => snapshot.backoff += 1,
            }
        }
        if self.loading.is_some() {
            let record = self.job.record();
            let left = record.accepted().saturating_sub(record.results);
            snapshot.queued += left.saturating_sub(self.tasks.len() as u64);
        }
        if most > 0 {
            let views = self.lanes.iter().map(|(id, state)| LaneView {
                target: state.lane.key().clone(),
                waiting: self.queue.waiting(id),
                calls: state.calls,
                blocked: state.blocked,
            });
            snapshot.lanes = views.filter(|view| view.waiting > 0).collect();
            snapshot.lanes.sort_by(|a, b| {
                (b.waiting, b.calls, &a.target).cmp(&(a.waiting, a.calls, &b.target))
            });
            snapshot.lanes.truncate(most);
        }
        snapshot
    }
}
