//! The numbers of envelopes: store-wide, one for each distinct one, for ever.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::audit::{Event, Log};
use crate::budget::{Envelope, Revision, Terms};
use crate::clock::Moment;
use crate::store::{Space, Store, StoreError, last_number, numbered};

#[derive(Debug)]
pub(super) struct Revisions {
    numbers: Mutex<HashMap<[u8; 16], Revision>>,
}

impl Revisions {
    pub(super) fn load(store: &Store) -> Result<Self, StoreError> {
        let mut numbers = HashMap::new();
        for entry in store.scan::<Envelope>(Space::Envelope, ..) {
            let (key, envelope) = entry?;
            numbers.insert(envelope.digest(), Revision(last_number(&key)));
        }
        Ok(Self {
            numbers: Mutex::new(numbers),
        })
    }

    /// The number of the terms' envelope; a new one goes on record.
    pub(super) fn number(&self, terms: &Terms, log: &Log, now: Moment) -> Revision {
        let envelope = Envelope::of(terms);
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Revision(numbers.len() as u64 + 1);
        *numbers.entry(envelope.digest()).or_insert_with(|| {
            let event = Event::Revised {
                revision: next,
                envelope: envelope.clone(),
                at: now,
            };
            log.note_with(event, |changes| {
                changes.put(Space::Envelope, &numbered(next.0), &envelope);
            })
            .detach();
            next
        })
    }
}
