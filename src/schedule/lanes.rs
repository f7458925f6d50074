//! The lanes a schedule has work for, or had until a moment ago.

use std::collections::HashMap;
use std::sync::Arc;

use super::queue::LaneId;
use crate::admission::Lane;
use crate::budget::Cause;
use crate::clock::Moment;
use crate::target::TargetKey;

/// One lane, as the schedule sees it.
#[derive(Debug)]
pub(super) struct LaneState {
    pub(super) lane: Arc<Lane>,
    /// Tasks that are not complete: waiting, running or in back-off.
    tasks: usize,
    /// Calls granted.
    pub(super) calls: u64,
    /// Since when it has done nothing but refuse.
    pub(super) refusing: Option<Moment>,
    /// Why the last try got none, if it got none.
    pub(super) blocked: Option<(Cause, Option<Moment>)>,
}

#[derive(Debug, Default)]
pub(super) struct Lanes {
    states: HashMap<LaneId, LaneState>,
    by_target: HashMap<TargetKey, LaneId>,
    next: LaneId,
}

impl Lanes {
    /// The number of a lane that is about to get a task.
    pub(super) fn join(&mut self, lane: Arc<Lane>) -> LaneId {
        let id = *self.by_target.entry(lane.key().clone()).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        let fresh = LaneState {
            lane,
            tasks: 0,
            calls: 0,
            refusing: None,
            blocked: None,
        };
        self.states.entry(id).or_insert(fresh).tasks += 1;
        id
    }

    /// A task of it is complete, or goes on elsewhere.
    pub(super) fn leave(&mut self, id: LaneId) {
        if let Some(state) = self.states.get_mut(&id) {
            state.tasks = state.tasks.saturating_sub(1);
        }
    }

    /// Every lane with its tasks that are not complete.
    pub(super) fn work(&self) -> Vec<(Arc<Lane>, u64)> {
        let work = self.states.values();
        work.map(|state| (state.lane.clone(), state.tasks as u64))
            .collect()
    }

    pub(super) fn get(&self, id: LaneId) -> Option<&LaneState> {
        self.states.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: LaneId) -> Option<&mut LaneState> {
        self.states.get_mut(&id)
    }

    /// True when an operator's hold was why the last try got no call.
    pub(super) fn is_held(&self, id: LaneId) -> bool {
        let blocked = self.get(id).and_then(|state| state.blocked);
        matches!(blocked, Some((Cause::Held, _)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LaneId, &LaneState)> {
        self.states.iter().map(|(id, state)| (*id, state))
    }

    /// Lets lanes go that have no task any more, so that a crawl of a million
    /// hosts holds only those it is at.
    pub(super) fn let_go(&mut self) -> Vec<LaneId> {
        let mut gone = Vec::new();
        self.states.retain(|id, state| {
            let keep = state.tasks > 0 || state.refusing.is_some();
            if !keep {
                self.by_target.remove(state.lane.key());
                gone.push(*id);
            }
            keep
        });
        gone
    }
}
