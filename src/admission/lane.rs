//! A lane: one target key with the terms in force for it and its buckets.

use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};

use crate::budget::{Bucket, BucketId, Conduct, Hold, PauseScope, Revision, Scope, Terms};
use crate::target::{Located, TargetKey};

/// What calls of one target key go through. Held by whoever has work for it;
/// its terms may be replaced while it is held.
#[derive(Debug)]
pub struct Lane {
    key: TargetKey,
    resolved: RwLock<Arc<Resolved>>,
}

/// The terms in force, with the buckets they come to.
#[derive(Debug)]
pub struct Resolved {
    /// The terms.
    pub terms: Terms,
    /// The number of their envelope.
    pub revision: Revision,
    pub(crate) buckets: Vec<Arc<Bucket>>,
    /// An operator's word that these calls are refused, and where it stands.
    pub denied: Option<(Scope, Hold)>,
}

impl Lane {
    pub(super) fn new(key: TargetKey, resolved: Resolved) -> Self {
        Self {
            key,
            resolved: RwLock::new(Arc::new(resolved)),
        }
    }

    /// Whose lane it is.
    #[must_use]
    pub fn key(&self) -> &TargetKey {
        &self.key
    }

    /// The terms in force now.
    #[must_use]
    pub fn resolved(&self) -> Arc<Resolved> {
        self.resolved
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Looks at the terms in force without holding on to them.
    pub(super) fn with_resolved<T>(&self, look: impl FnOnce(&Resolved) -> T) -> T {
        look(&self.resolved.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, resolved: Resolved) {
        *self
            .resolved
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(resolved);
    }
}

impl Resolved {
    /// How calls are made.
    #[must_use]
    pub fn conduct(&self) -> &Conduct {
        &self.terms.conduct
    }

    /// The buckets that a call draws from.
    pub fn bucket_ids(&self) -> impl Iterator<Item = BucketId> {
        self.buckets.iter().map(|bucket| bucket.id())
    }

    pub(super) fn draws_from(&self, scope: &Scope) -> bool {
        let mut tiers = self.terms.tiers.iter();
        tiers.any(|tier| tier.scope == *scope)
    }

    /// The bucket of the host: where it rests when it cannot be reached.
    pub(super) fn host(&self) -> usize {
        self.position(|scope| matches!(scope, Scope::Host(_)))
    }

    /// The bucket that the target's own word pauses.
    pub(super) fn paused(&self) -> usize {
        match self.terms.pause {
            PauseScope::Host => self.host(),
            PauseScope::Class => self.position(|scope| matches!(scope, Scope::Class(..))),
        }
    }

    fn position(&self, wanted: impl Fn(&Scope) -> bool) -> usize {
        self.buckets
            .iter()
            .position(|bucket| wanted(bucket.scope()))
            .unwrap_or(0)
    }

    /// Could a call of this cost ever be granted?
    #[must_use]
    pub fn can_ever(&self, cost: NonZeroU32) -> bool {
        self.buckets
            .iter()
            .all(|bucket| bucket.lock().can_ever(cost))
    }
}

/// A URL with the lane its call goes through.
#[derive(Debug)]
pub struct Route {
    /// What is dialled.
    pub located: Located,
    /// The lane.
    pub lane: Arc<Lane>,
}
