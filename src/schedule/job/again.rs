//! Tasks that are complete and were asked for once more by a person.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Job, Known};
use crate::audit::TaskRef;
use crate::outcome::Outcome;
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

    /// The result at `place` counts no longer. To be called in the order in
    /// which changes are written.
    pub(in crate::schedule) fn mark(
        &self,
        changes: &mut Changes,
        id: &str,
        place: u64,
        outcome: Outcome,
    ) {
        let mut outcomes = super::lock(&self.outcomes);
        if let Some(count) = outcomes.counts.get_mut(outcome as usize) {
            *count = count.saturating_sub(1);
        }
        changes.put(Space::Again, &self.id_key(id), &());
        changes.put(Space::Superseded, &self.key(place), &());
        changes.put(Space::Outcomes, &numbered(self.number), &*outcomes);
    }
}

/// The places of a job's results that count no longer.
///
/// # Errors
/// When they cannot be read.
pub fn superseded(store: &Store, job: u64) -> Result<HashSet<u64>, StoreError> {
    let places = store.scan::<()>(Space::Superseded, super::range(job));
    places
        .map(|entry| entry.map(|(key, ())| last_number(&key)))
        .collect()
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
