//! Tasks called off, or asked for again: how many, as rows.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::json;
use tokio::runtime::Handle;

use super::desk::{AnswerError, Desk, Rows, send};
use super::question::{Act, Ambiguous, TaskFilter};
use super::tasks::{Views, standing, views};
use crate::audit::TaskRef;
use crate::clock::Clock as _;
use crate::outcome::Outcome;
use crate::schedule::by_hand::{Again, cancel, retry};
use crate::schedule::{Cancelled, Counting, Job, ResultLine, counting, pending};

/// What became of tasks, counted.
type Counts = BTreeMap<&'static str, u64>;

struct Acting {
    desk: Desk,
    /// Which runs the schedule.
    runtime: Handle,
    wanted: HashSet<String>,
    filter: TaskFilter,
    found: HashSet<String>,
    counts: Counts,
    changes: u64,
}

/// Of two at once the second would read a job that the first is changing.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// So many changes may wait for the disk at once.
const AHEAD: u64 = 1000;

/// Does it, and tells how many came to what, once it is on disk. The record is
/// read on a thread of its own: there may be millions of tasks, and the gate
/// goes on meanwhile.
pub(super) async fn answer(
    desk: &Desk,
    act: Act,
    ids: Vec<String>,
    filter: TaskFilter,
    rows: &Rows,
) -> Result<(), AnswerError> {
    let mut acting = Acting {
        desk: desk.clone(),
        runtime: Handle::current(),
        wanted: ids.iter().cloned().collect(),
        filter,
        found: HashSet::new(),
        counts: Counts::new(),
        changes: 0,
    };
    let live = match (&act, &acting.filter.state) {
        (Act::Cancel, Some(_)) => views(desk).await,
        _ => Views::default(),
    };
    let act = move || {
        let turn = ONE_AT_A_TIME.blocking_lock();
        let acted = acting.act(act, &live);
        let on_disk = acting.on_disk();
        drop(turn);
        (acting, acted, on_disk)
    };
    let joined = tokio::task::spawn_blocking(act).await;
    let (acting, acted, on_disk) =
        joined.map_err(|error| AnswerError::Question(error.to_string()))?;
    on_disk?;
    for (result, tasks) in &acting.counts {
        send(rows, json!({"result": result, "tasks": tasks})).await;
    }
    acted?;
    let mut unknown = ids.iter().filter(|id| !acting.found.contains(*id));
    match unknown.next() {
        Some(id) => Err(AnswerError::Question(match unknown.count() {
            0 => format!("there is no task {id:?}"),
            more => format!("there is no task {id:?}; nor are there {more} more of these ids"),
        })),
        None if acting.counts.is_empty() => {
            send(rows, json!({"result": "none", "tasks": 0})).await;
            Ok(())
        }
        None => Ok(()),
    }
}

impl Acting {
    fn act(&mut self, act: Act, live: &Views) -> Result<(), AnswerError> {
        for (number, _) in Job::all(&self.desk.store)? {
            let running = self.desk.schedule.as_ref();
            let running = running.filter(|schedule| schedule.job().number() == number);
            let job = match running {
                Some(schedule) => Some(schedule.job().clone()),
                None => Job::numbered(self.desk.store.clone(), number)?.map(Arc::new),
            };
            let Some(job) = job else { continue };
            match act {
                Act::Cancel => self.cancel(&job, live)?,
                Act::Retry { ambiguous } => self.retry(&job, ambiguous)?,
            }
        }
        Ok(())
    }

    /// Among the ids that were named, where some were, and of what was asked
    /// for. Of one that was named in vain it is told.
    fn is_meant(&mut self, id: &str, state: &str, outcome: Option<&str>, target: &str) -> bool {
        let named = self.wanted.contains(id);
        let takes = self.filter.takes(state, outcome, target);
        if named {
            self.found.insert(id.to_owned());
            if !takes {
                self.count("does not match");
            }
        }
        (named || self.wanted.is_empty()) && takes
    }

    fn count(&mut self, result: &'static str) {
        *self.counts.entry(result).or_default() += 1;
    }

    fn on_disk(&self) -> Result<(), AnswerError> {
        Ok(self.runtime.block_on(self.desk.on_disk())?)
    }

    /// After one more change.
    fn keep_pace(&mut self) -> Result<(), AnswerError> {
        self.changes += 1;
        match self.changes.is_multiple_of(AHEAD) {
            true => self.on_disk(),
            false => Ok(()),
        }
    }

    fn cancel(&mut self, job: &Arc<Job>, live: &Views) -> Result<(), AnswerError> {
        let store = self.desk.store.clone();
        let now = self.desk.clock().now();
        let mut meant: Vec<TaskRef> = Vec::new();
        for entry in pending(&store, job.number()) {
            let (task, record) = entry?;
            let (state, ..) = standing(live.of(task), &record, now);
            let target = crate::target::locate(&record.next.url).ok();
            let target = target.map(|located| located.origin.to_string());
            if self.is_meant(&record.task.id, state, None, &target.unwrap_or_default()) {
                meant.push(task);
            }
        }
        let running = self.desk.schedule.clone();
        let running = running.filter(|schedule| schedule.job().number() == job.number());
        for task in meant {
            let Some(schedule) = &running else {
                if let Some(record) = job.load(task)? {
                    let admission = &self.desk.gate()?.admission;
                    let outcome = cancel(admission, job, task, &record)?;
                    self.count(outcome.as_str());
                    self.keep_pace()?;
                }
                continue;
            };
            self.count(match self.runtime.block_on(schedule.cancel(task)) {
                Ok(Cancelled::Done) => "cancelled",
                Ok(Cancelled::Running) => "under way",
                // It was complete a moment ago.
                Ok(Cancelled::Unknown) => "complete",
                Err(stopped) => return Err(AnswerError::Question(stopped.to_string())),
            });
            self.keep_pace()?;
        }
        self.completed(job)
    }

    /// An id that was named may be that of a complete task.
    fn completed(&mut self, job: &Job) -> Result<(), AnswerError> {
        for id in self.missing() {
            if job.task_of(&id)?.is_some() {
                self.found.insert(id);
                self.count("complete");
            }
        }
        Ok(())
    }

    /// Named, and not found yet.
    fn missing(&self) -> Vec<String> {
        self.wanted.difference(&self.found).cloned().collect()
    }

    fn retry(&mut self, job: &Job, ambiguous: Ambiguous) -> Result<(), AnswerError> {
        let store = self.desk.store.clone();
        // What a run that has taken up a mark already brings meanwhile is not meant.
        let end = job.record().results;
        for result in counting(&store, job.number()) {
            let Counting { place, line } = result?;
            if place >= end {
                break;
            }
            let Ok(line) = serde_json::from_str::<ResultLine>(&line) else {
                continue;
            };
            let target = line.target.as_deref().unwrap_or_default();
            if !self.is_meant(&line.id, "complete", Some(line.outcome.as_str()), target) {
                continue;
            }
            let result = match line.outcome {
                Outcome::Succeeded => "succeeded already",
                Outcome::Ambiguous if ambiguous == Ambiguous::Leave => {
                    "ambiguous: only with --ambiguous"
                }
                _ => match retry(&self.desk.gate()?.admission, job, place, &line)? {
                    Again::Marked => "again",
                    Again::Already => "again already",
                },
            };
            self.count(result);
            if result == "again" {
                self.keep_pace()?;
            }
        }
        for id in self.missing() {
            if job.task_of(&id)?.is_some() {
                self.count(if job.is_marked(&id)? {
                    "again already"
                } else {
                    "not complete"
                });
                self.found.insert(id);
            }
        }
        Ok(())
    }
}
