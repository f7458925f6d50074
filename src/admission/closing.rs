//! The end of a call on its way to the record.

use std::sync::Arc;

use super::{Admission, Resolved};
use crate::audit::{Call, Settlement};
use crate::store::{Changes, Durable, Space};

/// The end of a call, about to go on record; together with what its caller
/// makes of it, or by itself when dropped.
#[derive(Debug)]
#[must_use = "the end of a call goes on record with what follows from it"]
pub struct Closing(Option<Box<Closed>>);

#[derive(Debug)]
pub(super) struct Closed {
    pub(super) admission: Arc<Admission>,
    pub(super) resolved: Arc<Resolved>,
    pub(super) number: u64,
    pub(super) call: Call,
}

impl Closing {
    pub(super) fn of(closed: Option<Closed>) -> Self {
        Self(closed.map(Box::new))
    }

    /// How it ended.
    #[must_use]
    pub fn settlement(&self) -> Option<&Settlement> {
        self.0.as_ref().map(|closed| &closed.call.settlement)
    }

    /// Puts it on record.
    pub fn commit(self) -> Durable {
        self.commit_with(|_| {})
    }

    /// Puts it on record together with what follows from it: both are durable,
    /// or neither. `also` is called in the order of the log.
    pub fn commit_with(mut self, also: impl FnOnce(&mut Changes)) -> Durable {
        match self.0.take() {
            Some(closed) => closed.commit(also),
            None => Durable::never(),
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(closed) = self.0.take() {
            closed.commit(|_| {}).detach();
        }
    }
}

impl Closed {
    fn commit(self, also: impl FnOnce(&mut Changes)) -> Durable {
        let buckets = &self.resolved.buckets;
        self.admission
            .log
            .finish(self.number, self.call, |changes| {
                also(changes);
                for bucket in buckets {
                    changes.put(
                        Space::Bucket,
                        bucket.scope().to_string().as_bytes(),
                        &bucket.lock().saved(),
                    );
                }
            })
    }
}
