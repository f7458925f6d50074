//! What a worker shows of itself.

use std::cmp::Reverse;
use std::sync::Arc;

use super::lanes::LaneState;
use super::view::{LaneView, Snapshot, TaskView};
use super::work::Work;
use super::worker::Worker;
use crate::admission::Lane;

impl<W: Work> Worker<W> {
    pub(super) fn list(&self) -> Vec<TaskView> {
        let view = |(task, pending): (_, &super::pending::Pending)| TaskView {
            task,
            state: pending.state(),
            deferrals: pending.deferrals,
            blocked: self.lanes.get(pending.lane).and_then(|lane| lane.blocked),
        };
        self.tasks.iter().map(view).collect()
    }

    pub(super) fn work_left(&self) -> Vec<(Arc<Lane>, u64)> {
        self.lanes.work()
    }

    pub(super) fn snapshot(&self, most: usize) -> Snapshot {
        let counts = self.tasks.counts();
        let stopped = self.stopped().min(counts.queued);
        let record = self.job.record();
        let left = record.accepted().saturating_sub(record.results);
        let unread = match &self.loading {
            Some(_) => left.saturating_sub(self.tasks.len() as u64),
            None => 0,
        };
        Snapshot {
            queued: counts.queued.saturating_sub(stopped) + unread,
            running: counts.running,
            backoff: counts.backoff + stopped,
            unread,
            reading: self.loading.is_some() || !self.sealed,
            pace: self.pace.mean(self.now(), record.results),
            best: self.pace.best(),
            alarms: self.queue.alarms(),
            wake: self.queue.next_alarm(),
            lanes: if most > 0 {
                self.busiest(most)
            } else {
                Vec::new()
            },
        }
    }

    /// Tasks that wait in lanes whose target must wait: each is listed as in
    /// back-off.
    fn stopped(&self) -> u64 {
        let stops =
            |state: &LaneState| state.blocked.is_some_and(|(cause, _)| cause.stops_target());
        let stopped = self.lanes.iter().filter(|(_, state)| stops(state));
        stopped.map(|(id, _)| self.queue.waiting(id) as u64).sum()
    }

    /// The lanes with most work, that first. Of ten thousands of lanes only
    /// those that are shown are looked at closely.
    fn busiest(&self, most: usize) -> Vec<LaneView> {
        let sizes = self.lanes.iter().map(|(id, state)| {
            let waiting = self.queue.waiting(id);
            (Reverse(waiting), Reverse(state.calls), id)
        });
        let mut sizes: Vec<_> = sizes.filter(|(waiting, ..)| waiting.0 > 0).collect();
        if sizes.len() > most {
            sizes.select_nth_unstable(most);
            sizes.truncate(most);
        }
        let views = sizes.into_iter().filter_map(|(waiting, calls, id)| {
            let state = self.lanes.get(id)?;
            Some(LaneView {
                target: state.lane.key().clone(),
                waiting: waiting.0,
                calls: calls.0,
                blocked: state.blocked,
            })
        });
        let mut views: Vec<_> = views.collect();
        views.sort_by(|a, b| (b.waiting, b.calls, &a.target).cmp(&(a.waiting, a.calls, &b.target)));
        views
    }
}
