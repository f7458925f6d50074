//! What a worker makes of calls that are over, and of tasks that end without
//! one.

use tokio::task::JoinError;

use super::fair::Place;
use super::lanes::LaneState;
use super::order::Stop;
use super::queue::{Alarm, LaneId};
use super::result_line::ResultLine;
use super::task::{Answer, Next, Record};
use super::work::Work;
use super::worker::{Completed, Ended, Heard, Worker};
use crate::audit::{Event, TaskRef};
use crate::outcome::Outcome;
use crate::store::Fault;
use crate::telemetry;

impl<W: Work> Worker<W> {
    pub(super) fn ended(&mut self, joined: Result<Result<Ended, Fault>, JoinError>) {
        let Ended {
            task,
            record,
            next,
            result,
            heard,
        } = match joined {
            Ok(Ok(ended)) => ended,
            Ok(Err(fault)) => return self.fail(&fault.to_string()),
            // The permit settled itself when it was dropped; the task is on
            // record as it was before, and recovered by the next run.
            Err(error) => {
                return self.fail(&format!("a call ended in a fault of this program: {error}"));
            }
        };
        let lane = self.tasks.get(task).map(|pending| pending.lane);
        if let Some(lane) = lane {
            self.note_progress(lane, heard);
        }
        match next {
            Next::Complete(outcome, answer) => {
                self.forget(task);
                if let Some((place, line)) = result {
                    self.complete(Completed {
                        place,
                        line,
                        outcome,
                    });
                }
                if heard == Heard::NotReached && outcome == Outcome::Failed {
                    lane.into_iter()
                        .for_each(|lane| self.share_fate(lane, record.failures, &answer));
                }
            }
            // The same task asks again, so that an absent target uses up the
            // attempts of one task and not of all in turn.
            Next::Again if heard == Heard::NotReached => self.add(task, &record, Place::First),
            Next::Again | Next::Backoff(_) => self.add(task, &record, Place::Front),
            Next::Stop(why) => {
                self.add(task, &record, Place::Front);
                self.fail(&why);
            }
        }
    }

    /// A target that has never answered anybody, and has used up all attempts
    /// of one task, is not there: its other tasks need not try in turn, unless
    /// they have more attempts than that one had.
    fn share_fate(&mut self, lane: LaneId, failures: u32, answer: &Answer) {
        let reached = |state: &LaneState| self.admission.was_reached(&state.lane);
        if self.lanes.get(lane).is_none_or(reached) {
            return;
        }
        let words = answer.error.clone().unwrap_or_default();
        let why = format!("its target was never reached, in all attempts of another task: {words}");
        self.doom(lane, Outcome::Failed, &why, Some(failures));
    }

    fn note_progress(&mut self, lane: LaneId, heard: Heard) {
        let now = self.now();
        let limit = self.settings.stall_limit;
        let Some(state) = self.lanes.get_mut(lane) else {
            return;
        };
        let alarm = match (heard, state.refusing) {
            (Heard::Nothing, _)
            | (Heard::Open, None)
            | (Heard::NotNow | Heard::NotReached, Some(_)) => return,
            (Heard::Open, Some(_)) => {
                state.refusing = None;
                None
            }
            (Heard::NotNow | Heard::NotReached, None) => {
                state.refusing = Some(now);
                Some(now.after(limit))
            }
        };
        self.queue.alarm(Alarm::Stall(lane), alarm);
    }

    pub(super) fn forget(&mut self, task: TaskRef) {
        if let Some(pending) = self.tasks.remove(task) {
            self.lanes.leave(pending.lane);
        }
        self.queue.alarm(Alarm::Deadline(task), None);
        self.queue.alarm(Alarm::Task(task), None);
    }

    fn complete(&self, completed: Completed) {
        telemetry::task_completed(completed.outcome);
        // Nobody may be listening: the result is in the store all the same.
        let _ = self.completed.send(completed);
    }

    /// The end of a task without a call is on record.
    pub(super) fn noted(&mut self, noted: Result<Result<Completed, Fault>, JoinError>) {
        match noted {
            Ok(Ok(completed)) => self.complete(completed),
            Ok(Err(fault)) => self.fail(&fault.to_string()),
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Nothing more can be done here.
    pub(super) fn fail(&mut self, words: &str) {
        self.stop
            .get_or_insert_with(|| Stop::Fault(words.to_owned()));
    }

    /// Completes a task that has no call under way, on record.
    pub(super) fn finish_without_call(&mut self, task: TaskRef, record: &Record, next: Next) {
        let Next::Complete(outcome, answer) = next else {
            return;
        };
        let mut record = record.clone();
        record.deferrals = self
            .tasks
            .get(task)
            .map_or(record.deferrals, |pending| pending.deferrals);
        let target = self.tasks.get(task).and_then(|pending| {
            let state = self.lanes.get(pending.lane)?;
            Some(state.lane.key().clone())
        });
        self.forget(task);
        let now = self.now();
        let offset = crate::clock::wall_offset(&**self.admission.clock());
        let line = ResultLine::new(&record, target.as_ref(), outcome, &answer, now, offset);
        let event = Event::Task {
            task,
            id: record.task.id.clone(),
            what: outcome.as_str().into(),
            step: record.task.step.clone(),
            at: now,
        };
        let mut result = None;
        let noted = self.admission.log().note_with(event, |changes| {
            result = Some(self.job.complete(changes, task, &line, None));
            self.job.taken_up(changes, task);
        });
        let Some((place, line)) = result else { return };
        self.noted.spawn(async move {
            let completed = Completed {
                place,
                line,
                outcome,
            };
            noted.wait().await.map(|()| completed)
        });
    }
}
