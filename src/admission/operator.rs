//! An operator's word: hold a target, take a word back. On record with a name.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Admission, News, save_stops};
use crate::audit::Event;
use crate::budget::{Provenance, Scope, Tier};
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

/// A manual change that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifted {
    /// A hold.
    Hold,
    /// A denial.
    Denial,
    /// Limits set by hand.
    Limits,
}

impl Lifted {
    /// The command that had made it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Denial => "deny",
            Self::Limits => "set",
        }
    }
}

impl Admission {
    /// The tier that a word is about, in force for its bucket as soon as
    /// there is one.
    pub(super) fn tier(&self, chosen: &Chosen) -> Result<Option<Tier>, StoreError> {
        let scope = chosen.scope();
        let Chosen::Target(key) = chosen else {
            return self.any_tier(&scope);
        };
        let mut terms = self.rulebook().terms(&key.origin, &key.class);
        self.overrides.lay_over(&mut terms);
        let mut tiers = terms.tiers.into_iter();
        Ok(tiers.find(|tier| tier.scope == scope))
    }

    /// The tier of a pool or a group: as some lane has it, or, before any lane
    /// does, one that limits nothing yet and takes on the rules' limits with
    /// its first lane. It must be one that the rules form for some call.
    fn any_tier(&self, scope: &Scope) -> Result<Option<Tier>, StoreError> {
        let of_a_lane = self.tier_of_a_lane(scope);
        if of_a_lane.is_some() {
            return Ok(of_a_lane);
        }
        self.load_drawing(&HashSet::from([scope.clone()]))?;
        let known = match scope {
            Scope::Pool(name) => self.rulebook().has_pool(name),
            Scope::Group(name) => self.rulebook().can_have_group(name),
            Scope::Host(_) | Scope::Class(..) => true,
        };
        let none_yet = || Tier {
            scope: scope.clone(),
            limits: Vec::new(),
            concurrency: None,
            arrival_margin: Duration::ZERO,
            provenance: Provenance::by("operator"),
        };
        let of_a_lane = self.tier_of_a_lane(scope);
        Ok(of_a_lane.or_else(|| known.then(none_yet)))
    }

    fn tier_of_a_lane(&self, scope: &Scope) -> Option<Tier> {
        self.lanes.iter().find_map(|lane| {
            let resolved = lane.resolved();
            let mut tiers = resolved.terms.tiers.iter();
            tiers.find(|tier| tier.scope == *scope).cloned()
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
        let Some(tier) = self.tier(chosen)? else {
            return Ok(false);
        };
        let bucket = self.bucket(&tier)?;
        let now = self.clock.now();
        let hold = operator.word(until, now);
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

    /// Takes back every manual change of a target: its hold, its denial and
    /// the limits set for it. Tells which there were.
    ///
    /// # Errors
    /// When its state cannot be read.
    pub fn release(&self, chosen: &Chosen, operator: Operator) -> Result<Vec<Lifted>, StoreError> {
        // What is manual may stand at a class or pool that the rules no longer have.
        let known = self.tier(chosen)?;
        let scope = known
            .as_ref()
            .map_or_else(|| chosen.scope(), |tier| tier.scope.clone());
        let manual = self.put_back(&scope)?;
        let bucket = known.map(|tier| self.bucket(&tier)).transpose()?;
        let hold = bucket
            .as_ref()
            .and_then(|bucket| bucket.lock().set_hold(None));
        let lifted: Vec<_> = [
            hold.map(|_| Lifted::Hold),
            manual.denied.map(|_| Lifted::Denial),
            manual.set.map(|_| Lifted::Limits),
        ]
        .into_iter()
        .flatten()
        .collect();
        if lifted.is_empty() {
            return Ok(lifted);
        }
        let Operator { by, note } = operator;
        let event = Event::Released {
            scope: scope.clone(),
            by,
            note,
            at: self.clock.now(),
        };
        let noted = self.log.note_with(event, |changes| {
            self.overrides.save(&scope, changes);
            if let Some(bucket) = &bucket {
                save_stops(bucket, changes);
            }
        });
        noted.detach();
        if let Some(bucket) = bucket {
            self.tell(News::Changed(bucket.id()));
        }
        Ok(lifted)
    }
}

impl Chosen {
    /// Whose bucket is meant.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::Target(key) if key.class.is_default() => Scope::Host(key.origin.clone()),
            Self::Target(key) => Scope::Class(key.origin.clone(), key.class.clone()),
            Self::Scope(scope) => scope.clone(),
        }
    }
}
