//! A job: the tasks of one output folder, durable from the moment they are
//! accepted until their results are.
//!
//! The store's batches keep a task, its state and its result in step: a task
//! leaves the queue in the batch that holds its result, together with the end
//! of the call that brought it. Results are numbered in the order in which
//! they become durable, without gaps.

mod record;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use record::JobRecord;
use record::{Intake, Outcomes};

use super::list::{content, default_id};
use super::payload::HttpPayload;
use super::result_line::ResultLine;
use super::task::{MAX_ATTEMPTS, Record, Repeat, Task, TaskCall};
use crate::audit::TaskRef;
use crate::clock::Moment;
use crate::step::Step;
use crate::store::{Changes, Durable, Space, Store, StoreError, last_number, numbered, paired};

/// A task to be accepted, with the hash of what it asks for.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The task.
    pub task: Task,
    /// Two tasks of one id must agree in this.
    pub content: [u8; 16],
}

impl NewTask {
    /// A GET of `url` with everything else as for a bare line of a task file:
    /// its id is a hash of the call, so the same call twice is one task. A URL
    /// without a target is refused when it is its turn.
    #[must_use]
    pub fn get(url: &str, step: Step) -> Self {
        const GET: &str = "GET";
        let task = Task {
            id: default_id(GET, url, &[]).into(),
            call: TaskCall {
                url: url.into(),
                method: GET.into(),
                payload: HttpPayload::default().encode().into(),
            },
            step,
            priority: 0,
            not_before: None,
            deadline: None,
            max_attempts: MAX_ATTEMPTS,
            cost: NonZeroU32::MIN,
            repeat: Repeat::Safe,
        };
        Self {
            task,
            content: content(GET, url, &[], &[], None),
        }
    }
}

/// What a job knows of an id.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    content: [u8; 16],
    number: u64,
}

/// What became of tasks that were handed over.
#[derive(Debug)]
pub struct Accepted {
    /// New ones, durable once `durable` resolves.
    pub new: Vec<(TaskRef, Record)>,
    /// Asked for before, in the same words.
    pub known: u64,
    /// Ids that were asked for before in other words.
    pub conflicts: Vec<Arc<str>>,
    /// See `new`.
    pub durable: Durable,
}

/// One job of a store.
#[derive(Debug)]
pub struct Job {
    store: Arc<Store>,
    number: u64,
    record: Mutex<JobRecord>,
}

impl Job {
    /// The job of an output folder; a new one where there is none.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn of(store: Arc<Store>, out: &Path) -> Result<Self, StoreError> {
        let out = std::path::absolute(out)
            .unwrap_or_else(|_| out.to_owned())
            .display()
            .to_string();
        let jobs = Self::all(&store)?;
        let last = jobs.last().map_or(0, |(number, _)| *number);
        let known = jobs.into_iter().find(|(_, record)| record.out == out);
        if let Some((number, record)) = known {
            return Ok(Self {
                store,
                number,
                record: Mutex::new(record),
            });
        }
        let (number, record) = (
            last + 1,
            JobRecord {
                out,
                ..JobRecord::default()
            },
        );
        // Its number is its own from now on, before it has any task.
        let mut changes = Changes::default();
        changes.put(Space::Job, &numbered(number), &record.intake());
        store.write(changes).detach();
        store.settle()?;
        Ok(Self {
            store,
            number,
            record: Mutex::new(record),
        })
    }

    /// All jobs of a store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn all(store: &Store) -> Result<Vec<(u64, JobRecord)>, StoreError> {
        let jobs = store.scan::<Intake>(Space::Job, ..);
        jobs.map(|entry| {
            let (key, Intake { out, next }) = entry?;
            let Outcomes { results, counts } =
                store.get(Space::Outcomes, &key)?.unwrap_or_default();
            let record = JobRecord {
                out,
                next,
                results,
                outcomes: counts,
            };
            Ok((last_number(&key), record))
        })
        .collect()
    }

    /// Its number in the store.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What is known of it as a whole.
    #[must_use]
    pub fn record(&self) -> JobRecord {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JobRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, number: u64) -> [u8; 16] {
        paired(self.number, number)
    }

    fn id_key(&self, id: &str) -> Vec<u8> {
        let mut key = numbered(self.number).to_vec();
        key.extend_from_slice(blake3::hash(id.as_bytes()).as_bytes().split_at(16).0);
        key
    }

    /// Accepts tasks that are new; one at a time, so that no id is taken twice.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn accept(&self, tasks: Vec<NewTask>, now: Moment) -> Result<Accepted, StoreError> {
        let mut record = self.lock();
        let mut changes = Changes::default();
        let mut fresh: HashMap<Vec<u8>, [u8; 16]> = HashMap::new();
        let (mut new, mut known, mut conflicts) = (Vec::new(), 0, Vec::new());
        for NewTask { task, content } in tasks {
            let id_key = self.id_key(&task.id);
            let before = match fresh.get(&id_key) {
                Some(content) => Some(*content),
                None => self
                    .store
                    .get::<Known>(Space::TaskId, &id_key)?
                    .map(|known| known.content),
            };
            match before {
                Some(before) if before == content => known += 1,
                Some(_) => conflicts.push(task.id),
                None => {
                    let number = record.next;
                    record.next += 1;
                    let kept = Record::new(task, now);
                    changes.put(Space::Task, &self.key(number), &kept);
                    changes.put(Space::TaskId, &id_key, &Known { content, number });
                    fresh.insert(id_key, content);
                    new.push((
                        TaskRef {
                            job: self.number,
                            number,
                        },
                        kept,
                    ));
                }
            }
        }
        changes.put(Space::Job, &numbered(self.number), &record.intake());
        Ok(Accepted {
            new,
            known,
            conflicts,
            durable: self.store.write(changes),
        })
    }

    /// The tasks that are not complete, as they were left.
    pub fn pending(&self) -> impl Iterator<Item = Result<(TaskRef, Record), StoreError>> {
        pending(&self.store, self.number)
    }

    /// Those of them with a number from `first` up to `end`.
    pub(super) fn pending_between(
        &self,
        first: u64,
        end: u64,
    ) -> impl Iterator<Item = Result<(TaskRef, Record), StoreError>> {
        between(&self.store, self.number, first, end)
    }

    /// Tasks whose call was under way when a gate was killed.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn cut(&self) -> Result<HashSet<TaskRef>, StoreError> {
        let cut = self.store.scan::<()>(Space::Cut, self.range());
        cut.map(|entry| {
            entry.map(|(key, ())| TaskRef {
                job: self.number,
                number: last_number(&key),
            })
        })
        .collect()
    }

    /// What becomes of such a task is among the same changes.
    pub fn taken_up(&self, changes: &mut Changes, task: TaskRef) {
        changes.delete(Space::Cut, &self.key(task.number));
    }

    fn range(&self) -> std::ops::Range<Vec<u8>> {
        range(self.number)
    }

    /// One task that is not complete.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(&self, task: TaskRef) -> Result<Option<Record>, StoreError> {
        self.store.get(Space::Task, &self.key(task.number))
    }

    /// A task goes on.
    pub fn update(&self, changes: &mut Changes, task: TaskRef, record: &Record) {
        changes.put(Space::Task, &self.key(task.number), record);
    }

    /// A task is complete. To be called in the order in which changes are
    /// written; returns the place of its result.
    pub fn complete(
        &self,
        changes: &mut Changes,
        task: TaskRef,
        line: &ResultLine,
    ) -> (u64, String) {
        let mut record = self.lock();
        let place = record.results;
        record.results += 1;
        if let Some(count) = record.outcomes.get_mut(line.outcome as usize) {
            *count += 1;
        }
        let text = serde_json::to_string(line).unwrap_or_default();
        changes.delete(Space::Task, &self.key(task.number));
        changes.put(Space::Result, &self.key(place), &text);
        let outcomes = record.outcomes();
        changes.put(Space::Outcomes, &numbered(self.number), &outcomes);
        (place, text)
    }

    /// The result at a place.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn result(&self, place: u64) -> Result<Option<String>, StoreError> {
        self.store.get(Space::Result, &self.key(place))
    }
}

fn range(job: u64) -> std::ops::Range<Vec<u8>> {
    paired(job, 0).to_vec()..paired(job + 1, 0).to_vec()
}

/// The tasks of a job that are not complete.
pub fn pending(
    store: &Store,
    job: u64,
) -> impl Iterator<Item = Result<(TaskRef, Record), StoreError>> {
    between(store, job, 0, u64::MAX)
}

fn between(
    store: &Store,
    job: u64,
    first: u64,
    end: u64,
) -> impl Iterator<Item = Result<(TaskRef, Record), StoreError>> {
    let range = paired(job, first).to_vec()..paired(job, end).to_vec();
    let tasks = store.scan::<Record>(Space::Task, range);
    tasks.map(move |entry| {
        let (key, record) = entry?;
        Ok((
            TaskRef {
                job,
                number: last_number(&key),
            },
            record,
        ))
    })
}

/// The results of a job, in order, as lines of JSON.
pub fn results(store: &Store, job: u64) -> impl Iterator<Item = Result<String, StoreError>> {
    let results = store.scan::<String>(Space::Result, range(job));
    results.map(|entry| entry.map(|(_, line)| line))
}

#[cfg(test)]
mod tests;
