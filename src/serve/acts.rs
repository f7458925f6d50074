//! Tasks called off, or asked for again: how many, as rows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::json;

use super::desk::{AnswerError, Desk, Rows, send};
use super::question::{Act, Ambiguous, TaskFilter};
use super::tasks::{standing, views};
use crate::audit::TaskRef;
use crate::clock::Clock as _;
use crate::outcome::Outcome;
use crate::schedule::by_hand::{Again, cancel, retry};
use crate::schedule::task::Record;
use crate::schedule::{Cancelled, Counting, Job, ResultLine, counting, pending};

/// What became of tasks, counted.
type Counts = BTreeMap<&'static str, u64>;

struct Acting<'a> {
    desk: &'a Desk,
    wanted: HashSet<&'a str>,
    filter: &'a TaskFilter,
    found: HashSet<String>,
    counts: Counts,
}

/// Of two at once the second would read a job that the first is changing.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Does it, and tells how many came to what, once it is on disk.
pub(super) async fn answer(
    desk: &Desk,
    act: Act,
    ids: &[String],
    filter: &TaskFilter,
    rows: &Rows,
) -> Result<(), AnswerError> {
    let mut acting = Acting {
        desk,
        wanted: ids.iter().map(String::as_str).collect(),
        filter,
        found: HashSet::new(),
        counts: Counts::new(),
    };
    let turn = ONE_AT_A_TIME.lock().await;
    let acted = acting.act(act).await;
    desk.on_disk().await?;
    drop(turn);
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

impl Acting<'_> {
    async fn act(&mut self, act: Act) -> Result<(), AnswerError> {
        for (number, _) in Job::all(&self.desk.store)? {
            let running = self.desk.schedule.as_ref();
            let running = running.filter(|schedule| schedule.job().number() == number);
            let job = match running {
                Some(schedule) => Some(schedule.job().clone()),
                None => Job::numbered(self.desk.store.clone(), number)?.map(Arc::new),
            };
            let Some(job) = job else { continue };
            match act {
                Act::Cancel => self.cancel(&job).await?,
                Act::Retry { ambiguous } => self.retry(&job, ambiguous)?,
            }
        }
        Ok(())
    }

    /// Ids that were named are meant whatever else is asked for them.
    fn is_meant(&mut self, id: &str, state: &str, outcome: Option<&str>, target: &str) -> bool {
        let named = self.wanted.contains(id);
        if named {
            self.found.insert(id.to_owned());
        }
        (named || self.wanted.is_empty()) && self.filter.takes(state, outcome, target)
    }

    fn count(&mut self, result: &'static str) {
        *self.counts.entry(result).or_default() += 1;
    }

    async fn cancel(&mut self, job: &Arc<Job>) -> Result<(), AnswerError> {
        let live = views(self.desk).await;
        let now = self.desk.clock().now();
        let mut meant: Vec<(TaskRef, Record)> = Vec::new();
        for entry in pending(&self.desk.store, job.number()) {
            let (task, record) = entry?;
            let (state, ..) = standing(live.get(&task), &record, now);
            let target = crate::target::locate(&record.next.url).ok();
            let target = target.map(|located| located.origin.to_string());
            if self.is_meant(&record.task.id, state, None, &target.unwrap_or_default()) {
                meant.push((task, record));
            }
        }
        let running = self.desk.schedule.clone();
        let running = running.filter(|schedule| schedule.job().number() == job.number());
        for (task, record) in meant {
            let Some(schedule) = &running else {
                cancel(&self.desk.gate()?.admission, job, task, &record);
                self.count("cancelled");
                continue;
            };
            self.count(match schedule.cancel(task).await {
                Ok(Cancelled::Done) => "cancelled",
                Ok(Cancelled::Running) => "under way",
                // It was complete a moment ago.
                Ok(Cancelled::Unknown) => "complete",
                Err(stopped) => return Err(AnswerError::Question(stopped.to_string())),
            });
        }
        self.completed(job)
    }

    /// An id that was named may be that of a complete task.
    fn completed(&mut self, job: &Job) -> Result<(), AnswerError> {
        let missing: Vec<&str> = self
            .wanted
            .iter()
            .copied()
            .filter(|id| !self.found.contains(*id))
            .collect();
        for id in missing {
            if job.task_of(id)?.is_some() {
                self.found.insert(id.to_owned());
                self.count("complete");
            }
        }
        Ok(())
    }

    fn retry(&mut self, job: &Job, ambiguous: Ambiguous) -> Result<(), AnswerError> {
        let store = &self.desk.store;
        // The last line of an id counts.
        let mut meant: HashMap<Arc<str>, (u64, ResultLine)> = HashMap::new();
        for result in counting(store, job.number()) {
            let Counting { place, line } = result?;
            let Ok(line) = serde_json::from_str::<ResultLine>(&line) else {
                continue;
            };
            let target = line.target.clone().unwrap_or_default();
            if self.is_meant(&line.id, "complete", Some(line.outcome.as_str()), &target) {
                meant.insert(line.id.clone(), (place, line));
            } else {
                meant.remove(&line.id);
            }
        }
        for (place, line) in meant.into_values() {
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
        }
        let missing: Vec<&str> = self.wanted.iter().copied().collect();
        for id in missing {
            if !self.found.contains(id) && job.task_of(id)?.is_some() {
                self.found.insert(id.to_owned());
                self.count(if job.is_marked(id)? {
                    "again already"
                } else {
                    "not complete"
                });
            }
        }
        Ok(())
    }
}
