//! The list that a job has taken up whole.

use super::Job;
use crate::store::{Changes, Durable, Space, StoreError, numbered};

/// What a list holds, and how it is read, in 32 bytes.
pub type ListDigest = [u8; 32];

impl Job {
    /// True when this was the last list to be handed over to its end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn has_whole(&self, list: &ListDigest) -> Result<bool, StoreError> {
        let whole = self
            .store
            .get::<ListDigest>(Space::List, &numbered(self.number))?;
        Ok(whole.as_ref() == Some(list))
    }

    /// Every task of the list is accepted, and durable.
    pub fn note_whole(&self, list: &ListDigest) -> Durable {
        let mut changes = Changes::default();
        changes.put(Space::List, &numbered(self.number), list);
        self.store.write(changes)
    }
}
