//! When a request leaves, its debt becomes an ordinary spent token.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Admission, Resolved};
use crate::clock::Moment;

/// The departure of a request, to be marked by whoever sees it leave.
#[derive(Clone, Debug)]
pub struct Departure(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    admission: Arc<Admission>,
    resolved: Arc<Resolved>,
    cost: NonZeroU32,
    // Held until the buckets know as well: whoever settles a call that has
    // left finds its token among what is spent.
    stage: Mutex<Stage>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    UnderWay,
    Left(Moment),
    Refunded,
}

impl Departure {
    pub(super) fn new(
        admission: Arc<Admission>,
        resolved: Arc<Resolved>,
        cost: NonZeroU32,
    ) -> Self {
        let stage = Mutex::new(Stage::UnderWay);
        Self(Arc::new(Shared {
            admission,
            resolved,
            cost,
            stage,
        }))
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request has left now. Only the first word counts.
    pub fn mark(&self) {
        let mut stage = self.stage();
        if let Stage::UnderWay = *stage {
            let Shared {
                admission,
                resolved,
                cost,
                ..
            } = &*self.0;
            let now = admission.clock.now();
            for bucket in &resolved.buckets {
                bucket
                    .lock()
                    .depart(*cost, now, admission.clock.utc_offset());
            }
            *stage = Stage::Left(now);
        }
    }

    pub(super) fn refund(&self) {
        let mut stage = self.stage();
        if let Stage::UnderWay = *stage {
            for bucket in &self.0.resolved.buckets {
                bucket.lock().refund(self.0.cost);
            }
            *stage = Stage::Refunded;
        }
    }

    /// When it left, if it has.
    #[must_use]
    pub fn at(&self) -> Option<Moment> {
        match *self.stage() {
            Stage::Left(at) => Some(at),
            Stage::UnderWay | Stage::Refunded => None,
        }
    }
}
