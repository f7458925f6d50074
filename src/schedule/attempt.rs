//! From a turn to a call: ask the gate, and let the work run on its permit.

use std::sync::Arc;

use super::fair::Place;
use super::queue::Turn;
use super::result_line::ResultLine;
use super::task::{Answer, Bounds, Next, Record, Upshot, after};
use super::view::TaskState;
use super::work::{Report, Work};
use super::worker::{Ended, Heard, Worker};
use crate::admission::{Ask, Lane, Permit, Verdict};
use crate::audit::TaskRef;
use crate::budget::Line;
use crate::outcome::Outcome;

impl<W: Work> Worker<W> {
    /// Tries lanes as long as a call more may be under way.
    pub(super) fn dispatch(&mut self) {
        while self.stop.is_none() && self.running.len() < self.settings.concurrency {
            let Some(turn) = self.queue.next() else {
                return;
            };
            let waits = self
                .tasks
                .get(turn.task)
                .is_some_and(|pending| pending.state() == TaskState::Queued);
            if !waits {
                self.queue.dropped(turn);
                continue;
            }
            match self.job.load(turn.task) {
                Ok(Some(record)) if self.has_moved(turn, &record) => {
                    self.queue.dropped(turn);
                    self.add(turn.task, &record, Place::Front);
                }
                Ok(Some(record)) => self.attempt(turn, record),
                Ok(None) => {
                    self.forget(turn.task);
                    self.queue.dropped(turn);
                }
                Err(error) => self.fail(&error.to_string()),
            }
        }
    }

    /// True when the rules adopted meanwhile put the task's next call into
    /// another class than the one whose lane it waits in.
    fn has_moved(&self, turn: Turn, record: &Record) -> bool {
        if !self.admission.has_adopted() {
            return false;
        }
        let lane = self.lanes.get(turn.lane).map(|state| state.lane.key());
        match self.work.route(&record.next, &record.task.step) {
            Ok(route) => lane != Some(route.lane.key()),
            // Whoever takes it in anew finds the same, and ends it for that.
            Err(_) => true,
        }
    }

    fn attempt(&mut self, turn: Turn, mut record: Record) {
        let Some(state) = self.lanes.get_mut(turn.lane) else {
            return self.queue.dropped(turn);
        };
        let lane = state.lane.clone();
        let path = url::Url::parse(&record.next.url)
            .map(|url| url.path().to_owned())
            .unwrap_or_default();
        let user_agent = self.work.user_agent(&record.next);
        let ask = Ask {
            user_agent: user_agent.as_deref(),
            cost: record.task.cost,
            task: Some(turn.task),
            attempt: record.attempts + 1,
            hop: record.hops,
            ..Ask::new(&record.next.method, &path, &record.task.step)
        };
        match self.admission.admit(&lane, &ask, Line::Watch) {
            Err(fault) => {
                self.fail(&fault.to_string());
            }
            Ok(Verdict::Deferred(deferral)) => {
                if let Some(state) = self.lanes.get_mut(turn.lane) {
                    state.blocked = Some((deferral.cause, deferral.ready));
                }
                self.tasks.deferred(turn.task);
                self.queue
                    .deferred(turn, deferral.bucket, deferral.cause, deferral.ready);
            }
            Ok(Verdict::Refused(refusal)) => {
                self.queue.dropped(turn);
                let refused = Next::Complete(Outcome::Refused, Answer::error(refusal.to_string()));
                self.finish_without_call(turn.task, &record, refused);
            }
            Ok(Verdict::Granted(permit)) => {
                self.queue.granted(turn);
                record.started.get_or_insert(self.now());
                if let Some(pending) = self.tasks.turn(turn.task, TaskState::Running) {
                    record.deferrals = pending.deferrals;
                }
                if let Some(state) = self.lanes.get_mut(turn.lane) {
                    state.calls += 1;
                    state.blocked = None;
                }
                self.spawn(turn.task, record, permit, &lane);
            }
        }
    }

    fn spawn(&mut self, task: TaskRef, record: Record, permit: Permit, lane: &Arc<Lane>) {
        let (work, job, clock) = (
            self.work.clone(),
            self.job.clone(),
            self.admission.clock().clone(),
        );
        let target = lane.key().clone();
        let bounds = Bounds {
            max_redirects: lane.resolved().conduct().max_redirects,
            jitter: self.admission.jitter(),
        };
        self.running.spawn(async move {
            let mut record = record;
            let Report { upshot, closing } = work.run(record.clone(), permit).await?;
            let heard = heard(&upshot);
            let now = clock.now();
            let next = after(&mut record, upshot, now, bounds);
            let mut result = None;
            let durable = closing.commit_with(|changes| match &next {
                Next::Complete(outcome, answer) => {
                    let offset = crate::clock::wall_offset(&*clock);
                    let line =
                        ResultLine::new(&record, Some(&target), *outcome, answer, now, offset);
                    result = Some(job.complete(changes, task, &line, answer.validators.as_ref()));
                }
                Next::Again | Next::Backoff(_) | Next::Stop(_) => {
                    job.update(changes, task, &record);
                }
            });
            durable.wait().await?;
            Ok(Ended {
                task,
                record,
                next,
                result,
                heard,
            })
        });
    }
}

/// What a call says of its target: nothing, unless the target said something.
fn heard(upshot: &Upshot) -> Heard {
    match upshot {
        Upshot::NotNow(_) => Heard::NotNow,
        Upshot::NotSent(_) => Heard::NotReached,
        Upshot::Final(_, answer)
        | Upshot::Rejected(answer)
        | Upshot::Doubtful(answer)
        | Upshot::Onward(_, answer)
        | Upshot::Broken(answer)
            if answer.status.is_some() =>
        {
            Heard::Open
        }
        _ => Heard::Nothing,
    }
}
