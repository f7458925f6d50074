//! What a store holds of a job, in order.

use super::Record;
use crate::audit::TaskRef;
use crate::store::{Space, Store, StoreError, last_number, paired};

/// The tasks of a job that are not complete.
pub fn pending(
    store: &Store,
    job: u64,
) -> impl Iterator<Item = Result<(TaskRef, Record), StoreError>> {
    between(store, job, 0, u64::MAX)
}

pub(super) fn between(
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
    let results = store.scan::<String>(Space::Result, super::range(job));
    results.map(|entry| entry.map(|(_, line)| line))
}
