//! An operator's word: hold a target, let it go. On record with a name.

use std::sync::Arc;
use std::time::Duration;

use super::Admission;
use crate::audit::Event;
use crate::budget::{Hold, Provenance, Scope, Tier};
use crate::clock::Moment;
use crate::store::StoreError;
use crate::target::TargetKey;

/// Who changes something by hand, and why.
#[derive(Clone, Debug)]
pub struct Operator {
    /// A name.
    pub by: Arc<str>,
    /// A reason.
    pub note: Arc<str>,
}

/// What an operator's word is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Everything of a host, or one class of it.
    Target(TargetKey),
    /// Everything that draws from a pool or a group.
    Scope(Scope),
}

impl Admission {
    fn tier(&self, chosen: &Chosen) -> Option<Tier> {
        let (key, scope) = match chosen {
            Chosen::Target(key) if key.class.is_default() => {
                (Some(key.clone()), Scope::Host(key.origin.clone()))
            }
            Chosen::Target(key) => (
                Some(key.clone()),
                Scope::Class(key.origin.clone(), key.class.clone()),
            ),
            Chosen::Scope(scope) => (None, scope.clone()),
        };
        let Some(key) = key else {
            return self.any_tier(&scope);
        };
        let tiers = self.rulebook().terms(&key.origin, &key.class).tiers;
        tiers.into_iter().find(|tier| tier.scope == scope)
    }

    /// The tier of a pool or a group: as some lane has it, or, before any lane
    /// does, one that limits nothing yet and takes on the rules' limits with
    /// its first lane. A pool must be one of the rules'.
    fn any_tier(&self, scope: &Scope) -> Option<Tier> {
        let of_a_lane = self.lanes.iter().find_map(|lane| {
            let resolved = lane.resolved();
            let mut tiers = resolved.terms.tiers.iter();
            tiers.find(|tier| tier.scope == *scope).cloned()
        });
        let known = match scope {
            Scope::Pool(name) => self.rulebook().has_pool(name),
            _ => true,
        };
        of_a_lane.or_else(|| {
            known.then(|| Tier {
                scope: scope.clone(),
                limits: Vec::new(),
                concurrency: None,
                arrival_margin: Duration::ZERO,
                provenance: Provenance::by("operator"),
            })
        })
    }

    /// Stops a target until `until`, or until it is released. False when
    /// there is nothing of that name.
    ///
    /// # Errors
    /// When its state cannot be read.
    pub fn hold(
        &self,
        chosen: &Chosen,
        until: Option<Moment>,
        operator: Operator,
    ) -> Result<bool, StoreError> {
        let Some(tier) = self.tier(chosen) else {
            return Ok(false);
        };
        let bucket = self.bucket(&tier)?;
        let now = self.clock.now();
        let hold = Hold {
            until,
            by: operator.by,
            note: operator.note,
            since: now,
        };
        bucket.lock().set_hold(Some(hold.clone()));
        self.note_stops(
            &bucket,
            &[],
            Event::Held {
                scope: bucket.scope().clone(),
                hold,
                at: now,
            },
        );
        Ok(true)
    }

    /// Lets a target go that an operator held. False when nothing held it.
    ///
    /// # Errors
    /// When its state cannot be read.
    pub fn release(&self, chosen: &Chosen, operator: Operator) -> Result<bool, StoreError> {
        let Some(tier) = self.tier(chosen) else {
            return Ok(false);
        };
        let bucket = self.bucket(&tier)?;
        if bucket.lock().set_hold(None).is_none() {
            return Ok(false);
        }
        let Operator { by, note } = operator;
        let event = Event::Released {
            scope: bucket.scope().clone(),
            by,
            note,
            at: self.clock.now(),
        };
        self.note_stops(&bucket, &[], event);
        Ok(true)
    }
}
