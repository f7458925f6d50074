//! A job: the tasks of one output folder, durable from the moment they are
//! accepted until their results are.
//!
//! The store's batches keep a task, its state and its result in step: a task
//! leaves the queue in the batch that holds its result, together with the end
//! of the call that brought it. Results are numbered in the order in which
//! they become durable, without gaps.

mod again;
mod new_task;
mod record;
mod refresh;
mod scan;
mod whole_list;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

pub use again::{Counting, counting, marked};
pub use new_task::NewTask;
pub use record::JobRecord;
use record::{Intake, Outcomes, Placed};
use refresh::Refresh;
pub use refresh::{Begun, Earlier, Round, Validators};
use scan::between;
pub use scan::{pending, results};
pub use whole_list::ListDigest;

use super::result_line::ResultLine;
use super::task::Record;
use crate::audit::TaskRef;
use crate::clock::Moment;
use crate::store::{Changes, Durable, Space, Store, StoreError, last_number, numbered, paired};

/// What a job knows of an id.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Known {
    content: [u8; 16],
    number: u64,
}

/// What a job knows of a task, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Never asked for.
    New,
    /// Not complete.
    Pending,
    /// Complete.
    Complete,
}

/// What became of tasks that were handed over.
#[derive(Debug)]
pub struct Accepted {
    /// New ones, durable once `durable` resolves.
    pub new: Vec<(TaskRef, Record)>,
    /// Those of them that were complete, and are asked again in a refresh.
    pub again: u64,
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
    /// Held while ids are looked up: a task that ends does not wait for that.
    intake: Mutex<Intake>,
    outcomes: Mutex<Outcomes>,
    refresh: Mutex<Refresh>,
}

impl Job {
    /// The job of an output folder; a new one where there is none.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn of(store: Arc<Store>, out: &Path) -> Result<Self, StoreError> {
        if let Some(known) = Self::find(store.clone(), out)? {
            return Ok(known);
        }
        let last = Self::all(&store)?.last().map_or(0, |(number, _)| *number);
        let job = Self::resumed(
            store,
            last + 1,
            JobRecord {
                out: absolute(out),
                ..JobRecord::default()
            },
        );
        // Its number is its own from now on, before it has any task.
        let mut changes = Changes::default();
        changes.put(Space::Job, &numbered(job.number), &*lock(&job.intake));
        job.store.write(changes).detach();
        job.store.settle()?;
        Ok(job)
    }

    fn resumed(store: Arc<Store>, number: u64, record: JobRecord) -> Self {
        let outcomes = Outcomes {
            results: record.results,
            counts: record.outcomes,
        };
        Self {
            store,
            number,
            intake: Mutex::new(Intake {
                out: record.out,
                next: record.next,
                replaced: record.replaced,
            }),
            outcomes: Mutex::new(outcomes),
            refresh: Mutex::new(Refresh::of(record.round)),
        }
    }

    /// The job of an output folder, where there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn find(store: Arc<Store>, out: &Path) -> Result<Option<Self>, StoreError> {
        let out = absolute(out);
        let known = Self::all(&store)?
            .into_iter()
            .find(|(_, record)| record.out == out);
        Ok(known.map(|(number, record)| Self::resumed(store, number, record)))
    }

    /// What is known of an id.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn standing(&self, id: &str) -> Result<Standing, StoreError> {
        let known: Option<Known> = self.store.get(Space::TaskId, &self.id_key(id))?;
        let Some(Known { number, .. }) = known else {
            return Ok(Standing::New);
        };
        if self.is_marked(id)? {
            return Ok(Standing::New);
        }
        let task: Option<Record> = self.store.get(Space::Task, &self.key(number))?;
        Ok(task.map_or(Standing::Complete, |_| Standing::Pending))
    }

    /// All jobs of a store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn all(store: &Store) -> Result<Vec<(u64, JobRecord)>, StoreError> {
        let jobs = store.scan::<Intake>(Space::Job, ..);
        jobs.map(|entry| {
            let (
                key,
                Intake {
                    out,
                    next,
                    replaced,
                },
            ) = entry?;
            let Outcomes { results, counts } =
                store.get(Space::Outcomes, &key)?.unwrap_or_default();
            let record = JobRecord {
                out,
                next,
                results,
                outcomes: counts,
                replaced,
                round: store.get(Space::Round, &key)?.unwrap_or_default(),
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
        let Intake {
            out,
            next,
            replaced,
        } = lock(&self.intake).clone();
        let Outcomes { results, counts } = lock(&self.outcomes).clone();
        JobRecord {
            out,
            next,
            results,
            outcomes: counts,
            replaced,
            round: lock(&self.refresh).round,
        }
    }

    /// How many of its tasks are complete.
    #[must_use]
    pub fn done(&self) -> u64 {
        lock(&self.outcomes).results
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
        let any_marked = self.has_marks()?;
        let mut intake = lock(&self.intake);
        let refresh = *lock(&self.refresh);
        let mut changes = Changes::default();
        let mut fresh: HashMap<Vec<u8>, Known> = HashMap::new();
        let (mut new, mut again, mut known, mut conflicts) = (Vec::new(), 0, 0, Vec::new());
        for NewTask { task, content } in tasks {
            let id_key = self.id_key(&task.id);
            let before = match fresh.get(&id_key) {
                Some(known) => Some(*known),
                None => self.store.get::<Known>(Space::TaskId, &id_key)?,
            };
            let marked = any_marked
                && before.is_some()
                && !fresh.contains_key(&id_key)
                && self.is_marked(&task.id)?;
            let repeats = |before: &Known| refresh.asks_again(before.number, &task.call.method);
            match before {
                Some(before) if before.content != content => conflicts.push(task.id),
                Some(before) if !marked && !repeats(&before) => known += 1,
                _ => {
                    if marked {
                        changes.delete(Space::Again, &id_key);
                    }
                    if let Some(before) = before {
                        again += 1;
                        self.replace(&mut changes, &mut intake, before.number)?;
                    }
                    let number = intake.next;
                    intake.next += 1;
                    let kept = Record::new(task, now);
                    changes.put(Space::Task, &self.key(number), &kept);
                    changes.put(Space::TaskId, &id_key, &Known { content, number });
                    fresh.insert(id_key, Known { content, number });
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
        changes.put(Space::Job, &numbered(self.number), &*intake);
        Ok(Accepted {
            new,
            again,
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

    /// True for a task whose call was under way when a gate was killed.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_cut(&self, task: TaskRef) -> Result<bool, StoreError> {
        let cut = self.store.get::<()>(Space::Cut, &self.key(task.number))?;
        Ok(cut.is_some())
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
        validators: Option<&Validators>,
    ) -> (u64, String) {
        let mut outcomes = lock(&self.outcomes);
        let place = outcomes.results;
        outcomes.results += 1;
        if let Some(count) = outcomes.counts.get_mut(line.outcome as usize) {
            *count += 1;
        }
        let text = serde_json::to_string(line).unwrap_or_default();
        changes.delete(Space::Task, &self.key(task.number));
        changes.put(Space::Result, &self.key(place), &text);
        let outcome = line.outcome;
        changes.put(
            Space::Placed,
            &self.key(task.number),
            &Placed { place, outcome },
        );
        self.remember(changes, place, line, validators);
        changes.put(Space::Outcomes, &numbered(self.number), &*outcomes);
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

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn absolute(out: &Path) -> String {
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    out.display().to_string()
}

fn range(job: u64) -> std::ops::Range<Vec<u8>> {
    paired(job, 0).to_vec()..paired(job + 1, 0).to_vec()
}

#[cfg(test)]
mod tests;
