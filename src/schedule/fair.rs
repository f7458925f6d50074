//! Who is next within a lane: the highest priority first, and within one the
//! agents in turn, so that ten thousand tasks of one agent do not delay ten of
//! another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use crate::audit::TaskRef;

/// An agent's number within the process.
pub(super) type AgentId = u32;

#[derive(Debug, Default)]
pub(super) struct Fair {
    /// Tasks that go before all turns and priorities.
    first: VecDeque<TaskRef>,
    levels: BTreeMap<Reverse<i32>, Turns>,
    len: usize,
}

#[derive(Debug, Default)]
struct Turns {
    agents: BTreeMap<AgentId, VecDeque<TaskRef>>,
    last: Option<AgentId>,
}

impl Turns {
    fn next_agent(&self) -> Option<AgentId> {
        let after = self.last.and_then(|last| {
            let mut later = self.agents.range((Bound::Excluded(last), Bound::Unbounded));
            later.next().map(|(agent, _)| *agent)
        });
        after.or_else(|| self.agents.keys().next().copied())
    }
}

/// Where a task joins its agent's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind the others.
    Back,
    /// Before its agent's others: it has been under way already.
    Front,
    /// Before everything: it is the one that asks whether the target is back.
    First,
}

impl Fair {
    pub(super) fn push(&mut self, task: TaskRef, priority: i32, agent: AgentId, place: Place) {
        self.len += 1;
        if place == Place::First {
            self.first.push_front(task);
            return;
        }
        let line = self
            .levels
            .entry(Reverse(priority))
            .or_default()
            .agents
            .entry(agent)
            .or_default();
        match place {
            Place::Back => line.push_back(task),
            Place::Front | Place::First => line.push_front(task),
        }
    }

    pub(super) fn front(&self) -> Option<TaskRef> {
        if let Some(task) = self.first.front() {
            return Some(*task);
        }
        let turns = self.levels.values().next()?;
        turns.agents.get(&turns.next_agent()?)?.front().copied()
    }

    pub(super) fn pop(&mut self) -> Option<TaskRef> {
        if let Some(task) = self.first.pop_front() {
            self.len -= 1;
            return Some(task);
        }
        let mut level = self.levels.first_entry()?;
        let turns = level.get_mut();
        let agent = turns.next_agent()?;
        let line = turns.agents.get_mut(&agent)?;
        let task = line.pop_front();
        if line.is_empty() {
            turns.agents.remove(&agent);
        }
        turns.last = Some(agent);
        if turns.agents.is_empty() {
            level.remove();
        }
        self.len -= usize::from(task.is_some());
        task
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn drain(&mut self) -> Vec<TaskRef> {
        let mut all = Vec::with_capacity(self.len);
        while let Some(task) = self.pop() {
            all.push(task);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: u64) -> TaskRef {
        TaskRef { job: 1, number }
    }

    #[test]
    fn agents_take_turns_whoever_came_first() {
        let mut fair = Fair::default();
        (0..100).for_each(|n| fair.push(task(n), 0, 1, Place::Back));
        (100..103).for_each(|n| fair.push(task(n), 0, 2, Place::Back));
        let order: Vec<u64> = std::iter::from_fn(|| fair.pop())
            .map(|task| task.number)
            .collect();
        assert_eq!(order.get(..8).unwrap(), [0, 100, 1, 101, 2, 102, 3, 4]);
        assert_eq!(order.len(), 103);
        assert!(fair.is_empty());
    }

    #[test]
    fn the_task_that_asks_for_an_absent_target_asks_again_whoever_is_next_in_turn() {
        let mut fair = Fair::default();
        (1..=3).for_each(|agent| fair.push(task(u64::from(agent)), 9, agent, Place::Back));
        let asks = fair.pop().unwrap();
        for _ in 0..4 {
            fair.push(asks, 0, 1, Place::First);
            assert_eq!((fair.front(), fair.pop()), (Some(asks), Some(asks)));
        }
        assert_eq!((fair.len(), fair.drain().len()), (2, 2));
    }

    #[test]
    fn priority_goes_before_turns_and_the_front_is_what_is_popped() {
        let mut fair = Fair::default();
        fair.push(task(1), 0, 1, Place::Back);
        fair.push(task(2), 5, 1, Place::Back);
        fair.push(task(3), 5, 1, Place::Front);
        for expected in [3, 2, 1] {
            assert_eq!(fair.front(), Some(task(expected)));
            assert_eq!(fair.pop(), Some(task(expected)));
        }
        assert_eq!(fair.pop(), None);
    }
}
