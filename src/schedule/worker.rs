//! The loop that drives a queue: one task, one timer, as many calls under way
//! as allowed. It sleeps until the earliest thing there is to do.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::by_hand::CALLED_OFF;
use super::doomed::Doomed;
use super::fair::{AgentId, Place};
use super::job::Job;
use super::lanes::Lanes;
use super::loading::Loading;
use super::order::{Cancelled, Order, Orders, Schedule, Stop};
use super::pace::Pace;
use super::pending::{Pending, Pendings};
use super::queue::{Alarm, Eased, Queue};
use super::task::{Answer, Next, Record, after_kill};
use super::view::TaskState;
use super::work::Work;
use crate::admission::{Admission, News, NoRoute};
use crate::audit::TaskRef;
use crate::clock::Moment;
use crate::outcome::Outcome;
use crate::store::{Changes, Fault};
use crate::telemetry;

/// How a schedule works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Calls under way at once, over all targets.
    pub concurrency: usize,
    /// A target that does nothing but refuse for this long loses its tasks.
    pub stall_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 256,
            stall_limit: Duration::from_hours(7 * 24),
        }
    }
}

/// A task that has its result: its place in the list, and the line itself.
#[derive(Clone, Debug)]
pub struct Completed {
    /// From 0, without gaps.
    pub place: u64,
    /// One line of JSON.
    pub line: String,
    /// How it ended.
    pub outcome: Outcome,
}

pub(super) struct Worker<W> {
    pub(super) admission: Arc<Admission>,
    pub(super) job: Arc<Job>,
    pub(super) work: Arc<W>,
    pub(super) settings: Settings,
    pub(super) queue: Queue,
    pub(super) tasks: Pendings,
    pub(super) pace: Pace,
    pub(super) lanes: Lanes,
    pub(super) agents: HashMap<Arc<str>, AgentId>,
    pub(super) running: JoinSet<Result<Ended, Fault>>,
    /// Ends of tasks without a call, on their way to the record.
    pub(super) noted: JoinSet<Result<Completed, Fault>>,
    pub(super) orders: Orders,
    pub(super) news: mpsc::UnboundedReceiver<News>,
    pub(super) completed: mpsc::UnboundedSender<Completed>,
    /// What a run before left over and is still to be read.
    pub(super) loading: Option<Loading>,
    /// Tasks that are about to end without a call of their own.
    pub(super) doomed: VecDeque<Doomed>,
    pub(super) sealed: bool,
    pub(super) stop: Option<Stop>,
}

/// A call that is over and on record.
pub(super) struct Ended {
    pub(super) task: TaskRef,
    pub(super) record: Record,
    pub(super) next: Next,
    pub(super) result: Option<(u64, String)>,
    pub(super) heard: Heard,
}

/// What a call says of its target's openness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Open,
    NotNow,
    NotReached,
    /// Nothing was sent.
    Nothing,
}

const UPKEEP: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_mins(1);

impl<W: Work> Worker<W> {
    pub(super) fn new(
        schedule: Schedule<W>,
        orders: Orders,
        completed: mpsc::UnboundedSender<Completed>,
    ) -> Self {
        let Schedule {
            admission,
            job,
            work,
            settings,
        } = schedule;
        let news = admission.watch();
        Self {
            admission,
            job,
            work,
            settings,
            queue: Queue::default(),
            tasks: Pendings::default(),
            pace: Pace::default(),
            lanes: Lanes::default(),
            agents: HashMap::new(),
            running: JoinSet::new(),
            noted: JoinSet::new(),
            orders,
            news,
            completed,
            loading: None,
            doomed: VecDeque::new(),
            sealed: false,
            stop: None,
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.admission.clock().now()
    }

    /// Runs until everything is complete, or it is told to stop; calls under
    /// way are always ended first.
    pub(super) async fn run(mut self) -> Stop {
        let mut upkeep = tokio::time::interval(UPKEEP);
        let mut news = Vec::new();
        loop {
            self.ring();
            self.dispatch();
            if let Some(stop) = self.over() {
                return stop;
            }
            let wake = self.queue.next_alarm().map(|at| at.since(self.now()));
            tokio::select! {
                Some(order) = self.orders.recv() => self.obey(order),
                Some(ended) = self.running.join_next() => self.ended(ended),
                Some(noted) = self.noted.join_next() => self.noted(noted),
                _ = self.news.recv_many(&mut news, 1024) => self.hear(&mut news),
                () = tokio::time::sleep(wake.unwrap_or(UPKEEP)), if wake.is_some() => {}
                _ = upkeep.tick() => self.upkeep(),
                () = tokio::task::yield_now(), if self.loading.is_some() => self.load_more(),
                () = tokio::task::yield_now(), if self.has_doomed() => self.end_doomed(),
            }
            while let Some(ended) = self.running.try_join_next() {
                self.ended(ended);
            }
        }
    }

    fn over(&self) -> Option<Stop> {
        if !self.running.is_empty() || !self.noted.is_empty() {
            return None;
        }
        // With its last handle goes whoever could add anything.
        let sealed = self.sealed || (self.orders.is_closed() && self.orders.is_empty());
        let done = sealed && self.tasks.is_empty() && self.loading.is_none();
        self.stop.clone().or_else(|| done.then_some(Stop::Done))
    }

    fn upkeep(&mut self) {
        for lane in self.lanes.let_go() {
            self.queue.forget(lane);
        }
        self.admission.sweep(IDLE);
        self.admission.gauge(UPKEEP.as_secs());
        self.pace.note(self.now(), self.job.done());
        let snapshot = self.snapshot(0);
        telemetry::tasks("queued", snapshot.queued);
        telemetry::tasks("running", snapshot.running);
        telemetry::tasks("backoff", snapshot.backoff);
    }

    fn hear(&mut self, news: &mut Vec<News>) {
        for news in news.drain(..) {
            match news {
                News::CallEnded(bucket) => self.queue.ease(bucket, Eased::CallEnded),
                News::Changed(bucket) => self.queue.ease(bucket, Eased::Changed),
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Add(tasks) => tasks
                .into_iter()
                .for_each(|(task, record)| self.add(task, &record, Place::Back)),
            Order::Seal => self.sealed = true,
            Order::Stop(stop) => self.stop = self.stop.take().or(Some(stop)),
            Order::Look(most, reply) => drop(reply.send(self.snapshot(most))),
            Order::List(reply) => drop(reply.send(self.list())),
            Order::Work(reply) => drop(reply.send(self.work_left())),
            Order::Cancel(task, reply) => drop(reply.send(self.cancel(task))),
        }
    }

    /// Takes in a task that is durable.
    pub(super) fn add(&mut self, task: TaskRef, record: &Record, place: Place) {
        let lane = match self.work.route(&record.next, &record.task.step) {
            Ok(route) => self.lanes.join(route.lane),
            Err(NoRoute::Unreadable(error)) => return self.fail(&error.to_string()),
            Err(NoRoute::Refused(refusal)) => {
                let refused = Next::Complete(Outcome::Refused, Answer::error(refusal.to_string()));
                return self.finish_without_call(task, record, refused);
            }
        };
        let known = self.tasks.remove(task);
        if let Some(known) = &known {
            self.lanes.leave(known.lane);
        }
        let next_agent = AgentId::try_from(self.agents.len()).unwrap_or(AgentId::MAX);
        let agent = *self
            .agents
            .entry(record.task.step.agent.clone())
            .or_insert(next_agent);
        let priority = record.task.priority;
        let deferrals = known.map_or(record.deferrals, |known| known.deferrals);
        self.queue
            .alarm(Alarm::Deadline(task), record.task.deadline);
        let state = match record.not_before.filter(|at| *at > self.now()) {
            Some(until) => {
                self.queue.alarm(Alarm::Task(task), Some(until));
                TaskState::Backoff { until }
            }
            None => {
                self.queue.push(lane, task, priority, agent, place);
                TaskState::Queued
            }
        };
        let pending = Pending::new(lane, agent, priority, deferrals, state);
        self.tasks.insert(task, pending);
    }

    /// Takes up a task whose call was under way when a gate was killed. What
    /// becomes of it and that it was taken up are durable together: the next
    /// kill must not count the same call again.
    pub(super) fn take_up_cut(&mut self, task: TaskRef, mut record: Record, changes: &mut Changes) {
        match after_kill(&mut record) {
            next @ Next::Complete(..) => self.finish_without_call(task, &record, next),
            Next::Again | Next::Backoff(_) | Next::Stop(_) => {
                self.add(task, &record, Place::Front);
                // Rules may have changed: what is refused now is complete already.
                if self.tasks.get(task).is_some() {
                    self.job.update(changes, task, &record);
                    self.job.taken_up(changes, task);
                }
            }
        }
    }

    fn ring(&mut self) {
        let now = self.now();
        while let Some(alarm) = self.queue.due(now) {
            match alarm {
                Alarm::Task(task) => {
                    if let Some(pending) = self.tasks.turn(task, TaskState::Queued) {
                        self.queue.push(
                            pending.lane,
                            task,
                            pending.priority,
                            pending.agent,
                            Place::Front,
                        );
                    }
                }
                Alarm::Deadline(task) => self.expire(task, "its deadline has passed"),
                Alarm::Stall(lane) if self.lanes.is_held(lane) => {
                    // An operator's hold is no refusal of the target's.
                    if let Some(state) = self.lanes.get_mut(lane) {
                        state.refusing = None;
                    }
                }
                Alarm::Stall(lane) => {
                    // A call that is under way comes back to a count of its own.
                    if let Some(state) = self.lanes.get_mut(lane) {
                        state.refusing = None;
                    }
                    let why = "its target has done nothing but refuse until the stall limit";
                    self.doom(lane, Outcome::Expired, why, None);
                }
                Alarm::Bucket(_) => {}
            }
        }
    }

    fn expire(&mut self, task: TaskRef, why: &str) {
        self.end_waiting(task, Outcome::Expired, why);
    }

    /// Ends a task that has no call under way; one that has is left alone.
    pub(super) fn end_waiting(&mut self, task: TaskRef, outcome: Outcome, why: &str) -> Cancelled {
        let state = self.tasks.get(task).map(Pending::state);
        if state == Some(TaskState::Running) {
            return Cancelled::Running;
        }
        let unread = |loading: &mut Loading| loading.take_out(task);
        if state.is_none() && !self.loading.as_mut().is_some_and(unread) {
            return Cancelled::Unknown;
        }
        let record = match self.job.load(task) {
            Ok(Some(record)) => record,
            Ok(None) => return Cancelled::Unknown,
            Err(error) => {
                self.fail(&error.to_string());
                return Cancelled::Unknown;
            }
        };
        let ended = Next::Complete(outcome, Answer::error(why));
        self.finish_without_call(task, &record, ended);
        Cancelled::Done
    }

    fn cancel(&mut self, task: TaskRef) -> Cancelled {
        self.end_waiting(task, Outcome::Cancelled, CALLED_OFF)
    }
}
