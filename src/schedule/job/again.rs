//! Tasks that are complete and were asked for once more by a person.

use std::sync::Arc;

use super::record::{Intake, Placed};
use super::{Job, Known, ResultLine};
use crate::audit::TaskRef;
use crate::store::{Changes, Space, Store, StoreError, last_number, numbered};

impl Job {
    /// The job of a number, for whoever has the store alone.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn numbered(store: Arc<Store>, number: u64) -> Result<Option<Self>, StoreError> {
        let mut jobs = Self::all(&store)?.into_iter();
        let found = jobs.find(|(other, _)| *other == number);
        Ok(found.map(|(_, record)| Self::resumed(store, number, record)))
    }

    /// The latest task of an id, whether or not it is complete.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn task_of(&self, id: &str) -> Result<Option<TaskRef>, StoreError> {
        let known = self.store.get::<Known>(Space::TaskId, &self.id_key(id))?;
        Ok(known.map(|known| TaskRef {
            job: self.number,
            number: known.number,
        }))
    }

    /// True when the next list that has the id makes a new task of it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_marked(&self, id: &str) -> Result<bool, StoreError> {
        let mark = self.store.get::<()>(Space::Again, &self.id_key(id))?;
        Ok(mark.is_some())
    }

    /// Looked at once for many ids: mostly there are none.
    pub(super) fn has_marks(&self) -> Result<bool, StoreError> {
        let first = marks(&self.store, self.number).next();
        Ok(first.transpose()?.is_some())
    }

    /// The result of a complete task, at `place`, counts no longer. To be
    /// called in the order in which changes are written.
    pub(in crate::schedule) fn mark(
        &self,
        changes: &mut Changes,
        task: TaskRef,
        place: u64,
        line: &ResultLine,
    ) {
        let mut outcomes = super::lock(&self.outcomes);
        if let Some(count) = outcomes.counts.get_mut(line.outcome as usize) {
            *count = count.saturating_sub(1);
        }
        changes.put(Space::Again, &self.id_key(&line.id), &());
        self.supersede(changes, task.number, place);
        changes.put(Space::Outcomes, &numbered(self.number), &*outcomes);
    }

    fn supersede(&self, changes: &mut Changes, number: u64, place: u64) {
        changes.delete(Space::Placed, &self.key(number));
        changes.put(Space::Superseded, &self.key(place), &());
    }

    /// A task of this number is accepted anew: its result counts no longer.
    /// Nothing where a person has said so before.
    pub(super) fn replace(
        &self,
        changes: &mut Changes,
        intake: &mut Intake,
        number: u64,
    ) -> Result<(), StoreError> {
        let placed = self.store.get(Space::Placed, &self.key(number))?;
        if let Some(Placed { place, outcome }) = placed {
            if let Some(count) = intake.replaced.get_mut(outcome as usize) {
                *count += 1;
            }
            self.supersede(changes, number, place);
        }
        Ok(())
    }
}

/// A result that counts, and its place.
#[derive(Debug)]
pub struct Counting {
    /// Its place among all results of its job.
    pub place: u64,
    /// A line of JSON.
    pub line: String,
}

/// The results of a job that count, each the last of its task, in order. Both
/// lists are read side by side: a refresh of millions leaves as many behind.
pub fn counting(store: &Store, job: u64) -> impl Iterator<Item = Result<Counting, StoreError>> {
    let gone = store.scan::<()>(Space::Superseded, super::range(job));
    let mut gone = gone.map(|entry| entry.map(|(key, ())| last_number(&key)));
    let mut next_gone = gone.next();
    let results = store.scan::<String>(Space::Result, super::range(job));
    results.filter_map(move |entry| {
        let (place, line) = match entry {
            Ok((key, line)) => (last_number(&key), line),
            Err(error) => return Some(Err(error)),
        };
        while let Some(Ok(before)) = &next_gone
            && *before < place
        {
            next_gone = gone.next();
        }
        match next_gone.take_if(|next| !matches!(next, Ok(later) if *later > place)) {
            Some(Ok(_)) => {
                next_gone = gone.next();
                None
            }
            Some(Err(error)) => Some(Err(error)),
            None => Some(Ok(Counting { place, line })),
        }
    })
}

/// How many ids of a job wait for a list that has them.
///
/// # Errors
/// When they cannot be read.
pub fn marked(store: &Store, job: u64) -> Result<u64, StoreError> {
    let mut count = 0;
    for mark in marks(store, job) {
        mark?;
        count += 1;
    }
    Ok(count)
}

fn marks(store: &Store, job: u64) -> impl Iterator<Item = Result<(Vec<u8>, ()), StoreError>> {
    let range = numbered(job).to_vec()..numbered(job + 1).to_vec();
    store.scan::<()>(Space::Again, range)
}
