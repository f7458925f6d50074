//! When a request leaves, its debt becomes an ordinary spent token.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    at: AtomicU64,
}

const UNDER_WAY: u64 = 0;
const REFUNDED: u64 = u64::MAX;

impl Departure {
    pub(super) fn new(
        admission: Arc<Admission>,
        resolved: Arc<Resolved>,
        cost: NonZeroU32,
    ) -> Self {
        Self(Arc::new(Shared {
            admission,
            resolved,
            cost,
            at: AtomicU64::new(UNDER_WAY),
        }))
    }

    /// The request has left now. Only the first word counts.
    pub fn mark(&self) {
        let Shared {
            admission,
            resolved,
            cost,
            at,
        } = &*self.0;
        let now = admission.clock.now();
        let first = at.compare_exchange(
            UNDER_WAY,
            now.as_nanos(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if first.is_ok() {
            for bucket in &resolved.buckets {
                bucket
                    .lock()
                    .depart(*cost, now, admission.clock.utc_offset());
            }
        }
    }

    pub(super) fn refund(&self) {
        let Shared {
            resolved, cost, at, ..
        } = &*self.0;
        if at
            .compare_exchange(UNDER_WAY, REFUNDED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            for bucket in &resolved.buckets {
                bucket.lock().refund(*cost);
            }
        }
    }

    /// When it left, if it has.
    #[must_use]
    pub fn at(&self) -> Option<Moment> {
        match self.0.at.load(Ordering::Acquire) {
            UNDER_WAY | REFUNDED => None,
            at => Some(Moment::from_nanos(at)),
        }
    }
}
