//! Who may be tried next. A pure machine: it knows no gate, no clock and no
//! network, only lanes, what they wait for, and the instants of one timer.
//!
//! A lane that was told *not now* waits on the bucket that said so. However
//! many lanes wait there, the bucket has one wake-up; when it comes, they are
//! tried one after the other until the next *not now*. Ten thousand tasks on
//! one exhausted target cost one entry in the timer, and a lane with room is
//! never behind one without.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::fair::{AgentId, Fair, Place};
use crate::audit::TaskRef;
use crate::budget::{BucketId, Cause};
use crate::clock::Moment;

/// A lane's number within the queue.
pub(super) type LaneId = u32;

/// One lane to try, and where it was waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) lane: LaneId,
    pub(super) task: TaskRef,
    from: Option<BucketId>,
}

/// Something that happens at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// A bucket may have room again.
    Bucket(BucketId),
    /// A task's own back-off, or its earliest instant, is over.
    Task(TaskRef),
    /// A task's deadline has come.
    Deadline(TaskRef),
    /// A lane may have been without progress for too long.
    Stall(LaneId),
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    lanes: HashMap<LaneId, Fair>,
    ready: VecDeque<Ready>,
    waits: HashMap<BucketId, Wait>,
    alarms: BTreeSet<(Moment, Alarm)>,
    set: HashMap<Alarm, Moment>,
}

#[derive(Debug)]
enum Ready {
    Lane(LaneId),
    Bucket(BucketId),
}

#[derive(Debug)]
struct Wait {
    lanes: VecDeque<LaneId>,
    cause: Cause,
    until: Option<Moment>,
    awake: bool,
}

/// Why a bucket is worth another look before its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eased {
    /// A call ended: that helps who waits for concurrency or for a probe.
    CallEnded,
    /// Anything may be different.
    Changed,
}

impl Queue {
    /// A lane that will get no more tasks.
    pub(super) fn forget(&mut self, lane: LaneId) {
        self.lanes.remove(&lane);
    }

    /// A task that may be tried from now on.
    pub(super) fn push(
        &mut self,
        lane: LaneId,
        task: TaskRef,
        priority: i32,
        agent: AgentId,
        place: Place,
    ) {
        let fair = self.lanes.entry(lane).or_default();
        let was_empty = fair.is_empty();
        fair.push(task, priority, agent, place);
        if was_empty {
            self.ready.push_back(Ready::Lane(lane));
        }
    }

    /// The next lane worth a try. Its turn must be ended by [`Self::granted`],
    /// [`Self::deferred`] or [`Self::dropped`].
    pub(super) fn next(&mut self) -> Option<Turn> {
        loop {
            let (lane, from) = match self.ready.pop_front()? {
                Ready::Lane(lane) => (lane, None),
                Ready::Bucket(bucket) => {
                    let Some(wait) = self.waits.get_mut(&bucket) else {
                        continue;
                    };
                    let Some(lane) = wait.lanes.pop_front() else {
                        self.waits.remove(&bucket);
                        continue;
                    };
                    (lane, Some(bucket))
                }
            };
            match self.lanes.get(&lane).and_then(Fair::front) {
                Some(task) => return Some(Turn { lane, task, from }),
                None => self.go_on(from),
            }
        }
    }

    fn go_on(&mut self, from: Option<BucketId>) {
        if let Some(bucket) = from {
            self.ready.push_back(Ready::Bucket(bucket));
        }
    }

    /// The task got its permit; its lane goes behind its neighbours.
    pub(super) fn granted(&mut self, turn: Turn) {
        self.pop(turn);
        let more = self
            .lanes
            .get(&turn.lane)
            .is_some_and(|fair| !fair.is_empty());
        match turn.from {
            Some(bucket) => {
                if more && let Some(wait) = self.waits.get_mut(&bucket) {
                    wait.lanes.push_back(turn.lane);
                }
                self.ready.push_back(Ready::Bucket(bucket));
            }
            None if more => self.ready.push_back(Ready::Lane(turn.lane)),
            None => {}
        }
    }

    /// The task is gone; its lane is tried again.
    pub(super) fn dropped(&mut self, turn: Turn) {
        self.granted(turn);
    }

    fn pop(&mut self, turn: Turn) {
        if let Some(fair) = self.lanes.get_mut(&turn.lane) {
            let popped = fair.pop();
            debug_assert_eq!(popped, Some(turn.task));
        }
    }

    /// The lane was told *not now* by a bucket, until an instant if it knows.
    pub(super) fn deferred(
        &mut self,
        turn: Turn,
        by: BucketId,
        cause: Cause,
        until: Option<Moment>,
    ) {
        if turn.from != Some(by) {
            self.go_on(turn.from);
        }
        let wait = self.waits.entry(by).or_insert_with(|| Wait {
            lanes: VecDeque::new(),
            cause,
            until: None,
            awake: false,
        });
        wait.cause = cause;
        if turn.from == Some(by) {
            // It keeps its place; the news replaces what was known before.
            wait.lanes.push_front(turn.lane);
            wait.awake = false;
            wait.until = until;
        } else {
            wait.lanes.push_back(turn.lane);
            if wait.awake {
                return;
            }
            wait.until = match (wait.until, until) {
                (Some(known), Some(until)) => Some(known.min(until)),
                (known, until) => known.or(until),
            };
        }
        let until = wait.until;
        self.alarm(Alarm::Bucket(by), until);
    }

    /// Sets, moves or clears an alarm.
    pub(super) fn alarm(&mut self, alarm: Alarm, at: Option<Moment>) {
        if let Some(before) = self.set.remove(&alarm) {
            self.alarms.remove(&(before, alarm));
        }
        if let Some(at) = at {
            self.alarms.insert((at, alarm));
            self.set.insert(alarm, at);
        }
    }

    /// The earliest instant at which anything is to be done.
    pub(super) fn next_alarm(&self) -> Option<Moment> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// The next alarm that is due; a bucket's wakes its lanes by itself.
    pub(super) fn due(&mut self, now: Moment) -> Option<Alarm> {
        loop {
            if self.alarms.first()?.0 > now {
                return None;
            }
            let (_, alarm) = self.alarms.pop_first()?;
            self.set.remove(&alarm);
            match alarm {
                Alarm::Bucket(bucket) => self.wake(bucket),
                other => return Some(other),
            }
        }
    }

    fn wake(&mut self, bucket: BucketId) {
        if let Some(wait) = self.waits.get_mut(&bucket)
            && !wait.awake
        {
            wait.awake = true;
            wait.until = None;
            self.ready.push_back(Ready::Bucket(bucket));
            self.alarm(Alarm::Bucket(bucket), None);
        }
    }

    /// A bucket may have room before it said so.
    pub(super) fn ease(&mut self, bucket: BucketId, eased: Eased) {
        let helps = self.waits.get(&bucket).is_some_and(|wait| {
            eased == Eased::Changed || !matches!(wait.cause, Cause::BudgetEmpty | Cause::Held)
        });
        if helps {
            self.wake(bucket);
        }
    }

    /// Everything that waits in a lane.
    pub(super) fn drain(&mut self, lane: LaneId) -> Vec<TaskRef> {
        self.lanes
            .get_mut(&lane)
            .map(Fair::drain)
            .unwrap_or_default()
    }

    /// How many tasks wait in a lane.
    pub(super) fn waiting(&self, lane: LaneId) -> usize {
        self.lanes.get(&lane).map_or(0, Fair::len)
    }

    /// How many alarms are set.
    pub(super) fn alarms(&self) -> usize {
        self.alarms.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BucketId = BucketId(1);
    const B: BucketId = BucketId(2);

    fn task(number: u64) -> TaskRef {
        TaskRef { job: 1, number }
    }

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn lanes(queue: &mut Queue, count: u64) -> Vec<LaneId> {
        let lanes: Vec<LaneId> = (0..count)
            .map(|lane| LaneId::try_from(lane).unwrap())
            .collect();
        for (number, lane) in (0..).zip(&lanes) {
            queue.push(*lane, task(number), 0, 0, Place::Back);
        }
        lanes
    }

    #[test]
    fn ten_thousand_lanes_on_one_bucket_are_one_alarm_and_one_try_a_wake() {
        let mut queue = Queue::default();
        lanes(&mut queue, 10_000);
        while let Some(turn) = queue.next() {
            queue.deferred(turn, A, Cause::BudgetEmpty, Some(at(100)));
        }
        assert_eq!((queue.alarms(), queue.next_alarm()), (1, Some(at(100))));
        assert_eq!(queue.due(at(99)), None);
        assert_eq!(queue.next(), None);
        queue.due(at(100));
        let first = queue.next().unwrap();
        queue.granted(first);
        let second = queue.next().unwrap();
        assert_eq!((first.task, second.task), (task(0), task(1)));
        queue.deferred(second, A, Cause::BudgetEmpty, Some(at(200)));
        assert_eq!(queue.next(), None, "one grant, one no, then silence");
        queue.due(at(200));
        assert_eq!(queue.next().unwrap().task, task(1), "it kept its place");
    }

    #[test]
    fn lanes_of_one_bucket_take_turns() {
        let mut queue = Queue::default();
        let lanes = lanes(&mut queue, 2);
        for number in 10..12 {
            queue.push(lanes[0], task(number), 0, 0, Place::Back);
        }
        while let Some(turn) = queue.next() {
            queue.deferred(turn, A, Cause::BudgetEmpty, Some(at(1)));
        }
        queue.due(at(1));
        let mut order = vec![];
        while let Some(turn) = queue.next() {
            order.push(turn.task.number);
            queue.granted(turn);
        }
        assert_eq!(order, [0, 1, 10, 11]);
    }

    #[test]
    fn a_lane_that_waits_elsewhere_now_does_not_stop_the_others() {
        let mut queue = Queue::default();
        lanes(&mut queue, 3);
        while let Some(turn) = queue.next() {
            queue.deferred(turn, A, Cause::BudgetEmpty, Some(at(1)));
        }
        queue.due(at(1));
        let turn = queue.next().unwrap();
        queue.deferred(turn, B, Cause::Paused, Some(at(50)));
        let next = queue.next().unwrap();
        assert_eq!(next.task, task(1));
        queue.granted(next);
        assert_eq!(queue.next().unwrap().task, task(2));
    }

    #[test]
    fn the_end_of_a_call_wakes_who_waits_for_one_and_nobody_else() {
        let mut queue = Queue::default();
        lanes(&mut queue, 2);
        let turn = queue.next().unwrap();
        queue.deferred(turn, A, Cause::BudgetEmpty, Some(at(9)));
        let turn = queue.next().unwrap();
        queue.deferred(turn, B, Cause::Concurrency, Some(at(9)));
        queue.ease(A, Eased::CallEnded);
        assert_eq!(queue.next(), None);
        queue.ease(B, Eased::CallEnded);
        assert_eq!(queue.next().unwrap().task, task(1));
        queue.ease(A, Eased::Changed);
        assert_eq!(queue.next().unwrap().task, task(0));
    }

    #[test]
    fn a_hold_without_an_end_sets_no_alarm() {
        let mut queue = Queue::default();
        lanes(&mut queue, 1);
        let turn = queue.next().unwrap();
        queue.deferred(turn, A, Cause::Held, None);
        assert_eq!((queue.next(), queue.next_alarm()), (None, None));
        queue.ease(A, Eased::Changed);
        assert!(queue.next().is_some());
    }
}
