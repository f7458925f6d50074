//! Rules in force: those of the file, and what operators put in their place.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::{Admission, Chosen, Lane, News, Operator, Resolved, Rules};
use crate::audit::Event;
use crate::budget::{
    Hold, Limit, Manual, Rulebook, SavedBucket, Scope, SetLimits, nothing_spent, rfc3339,
};
use crate::clock::{Moment, wall_offset};
use crate::store::{Changes, Space, StoreError};
use crate::target::TargetKey;

impl Admission {
    /// Puts other rules in force. What was spent stays spent.
    ///
    /// # Errors
    /// When what was spent cannot be read; lanes before it have the new rules.
    pub fn adopt(&self, rulebook: Rulebook) -> Result<(), StoreError> {
        self.load_spent()?;
        let _turn = self.changing();
        let since = self.clock.now();
        *self
            .rulebook
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Rules {
            book: Arc::new(rulebook),
            since,
        };
        self.adopted.store(true, Ordering::Release);
        self.renew(|_| true)
    }

    /// True when other rules were adopted since this gate was opened: a call
    /// that waits may belong to another class now.
    #[must_use]
    pub fn has_adopted(&self) -> bool {
        self.adopted.load(Ordering::Acquire)
    }

    /// Brings into memory what was spent before this gate opened and is not
    /// back yet: until the rules change it comes back at the rate of before.
    fn load_spent(&self) -> Result<(), StoreError> {
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        let scope = |key: Vec<u8>| String::from_utf8(key).ok()?.parse::<Scope>().ok();
        let mut spent = HashSet::new();
        for entry in self.store.scan::<SavedBucket>(Space::Bucket, ..) {
            let (key, saved) = entry?;
            if !nothing_spent(&saved.meters, now, offset) {
                let unread = scope(key).filter(|scope| !self.buckets.contains_key(scope));
                spent.extend(unread);
            }
        }
        self.load_drawing(&spent)
    }

    /// Brings the lanes on record that draw from one of these into memory.
    pub(super) fn load_drawing(&self, scopes: &HashSet<Scope>) -> Result<(), StoreError> {
        if scopes.is_empty() {
            return Ok(());
        }
        let scope = |key: Vec<u8>| String::from_utf8(key).ok()?.parse::<Scope>().ok();
        for entry in self.store.scan_bytes(Space::Bucket, ..) {
            let key = match scope(entry?.0) {
                Some(Scope::Host(origin)) => TargetKey::from(origin),
                Some(Scope::Class(origin, class)) => TargetKey::new(origin, class),
                Some(Scope::Pool(_) | Scope::Group(_)) | None => continue,
            };
            let terms = self.rulebook().terms(&key.origin, &key.class);
            if terms.tiers.iter().any(|tier| scopes.contains(&tier.scope)) {
                self.lane(&key)?;
            }
        }
        Ok(())
    }

    /// Two changes at once would leave a lane with the terms of the first.
    fn changing(&self) -> std::sync::MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the rules in force now into those lanes that are held in memory.
    fn renew(&self, concerned: impl Fn(&Resolved) -> bool) -> Result<(), StoreError> {
        let lanes: Vec<_> = self.lanes.iter().map(|lane| lane.clone()).collect();
        for lane in lanes {
            let before = lane.resolved();
            if concerned(&before) {
                self.renew_lane(&lane, &before)?;
            }
        }
        Ok(())
    }

    fn renew_lane(&self, lane: &Lane, before: &Resolved) -> Result<(), StoreError> {
        let resolved = self.resolve(lane.key())?;
        self.refit(&resolved);
        // Who waits on a bucket that it no longer draws from is woken too.
        let changed: Vec<_> = before.bucket_ids().chain(resolved.bucket_ids()).collect();
        lane.replace(resolved);
        changed
            .into_iter()
            .for_each(|bucket| self.tell(News::Changed(bucket)));
        Ok(())
    }

    /// Puts the terms of a lane in force in its buckets, and on record what
    /// was spent as of that instant.
    pub(super) fn refit(&self, resolved: &Resolved) {
        for (bucket, tier) in resolved.buckets.iter().zip(&resolved.terms.tiers) {
            let mut state = bucket.lock();
            let before = state.saved();
            // Now under the lock: a call may have left since the last bucket.
            state.refit(tier, self.clock.now(), self.clock.utc_offset());
            let after = state.saved();
            if after != before {
                let mut changes = Changes::default();
                changes.put(Space::Bucket, bucket.scope().to_string().as_bytes(), &after);
                // Handed over under the lock: a settlement's state is either
                // older and goes first, or newer and goes later.
                self.store.write(changes).detach();
            }
        }
    }

    /// Puts other limits in place of the rules', until `until`. They replace
    /// all limits of that scope and nothing else: what its neighbours, its
    /// pool or its classes may do still holds. False when there is nothing of
    /// that name.
    ///
    /// # Errors
    /// When what was spent there cannot be read.
    pub fn set(
        &self,
        chosen: &Chosen,
        limits: Vec<Limit>,
        until: Option<Moment>,
        operator: Operator,
    ) -> Result<bool, StoreError> {
        let at = self.clock.now();
        let word = operator.word(until, at);
        let as_of = rfc3339(at, wall_offset(&*self.clock));
        let set = SetLimits {
            limits: limits.clone(),
            word: word.clone(),
            as_of: as_of.into(),
        };
        let event = |scope| Event::Set {
            scope,
            limits,
            word,
            at,
        };
        self.put_in_place(chosen, event, |manual| manual.set = Some(set))
    }

    /// Refuses the calls of a target, until `until` or until it is released.
    /// False when there is nothing of that name.
    ///
    /// # Errors
    /// When what was spent there cannot be read.
    pub fn deny(
        &self,
        chosen: &Chosen,
        until: Option<Moment>,
        operator: Operator,
    ) -> Result<bool, StoreError> {
        let at = self.clock.now();
        let word = operator.word(until, at);
        let denied = word.clone();
        let event = |scope| Event::Denied { scope, word, at };
        self.put_in_place(chosen, event, |manual| manual.denied = Some(denied))
    }

    fn put_in_place(
        &self,
        chosen: &Chosen,
        event: impl FnOnce(Scope) -> Event,
        change: impl FnOnce(&mut Manual),
    ) -> Result<bool, StoreError> {
        let Some(tier) = self.tier(chosen)? else {
            return Ok(false);
        };
        // In memory before the change: what was spent comes back at the rate
        // of before until now.
        if let Chosen::Target(key) = chosen {
            self.lane(key)?;
        }
        self.bucket(&tier)?;
        let _turn = self.changing();
        self.overrides.change(&tier.scope, change);
        self.note_manual(&tier.scope, event(tier.scope.clone()));
        self.renew(|resolved| resolved.draws_from(&tier.scope))?;
        Ok(true)
    }

    fn note_manual(&self, scope: &Scope, event: Event) {
        let save = |changes: &mut Changes| self.overrides.save(scope, changes);
        self.log.note_with(event, save).detach();
    }

    /// Takes away what operators put in place of a scope's rules. The caller
    /// puts it on record.
    pub(super) fn put_back(&self, scope: &Scope) -> Result<Manual, StoreError> {
        let _turn = self.changing();
        let before = self
            .overrides
            .change(scope, |manual| *manual = Manual::default());
        if !before.is_empty() {
            self.renew(|resolved| resolved.draws_from(scope))?;
        }
        Ok(before)
    }

    /// What operators put in place of the rules of these terms, by scope.
    #[must_use]
    pub fn manual(&self, lane: &Lane) -> Vec<(Scope, Manual)> {
        let resolved = lane.resolved();
        let scopes = resolved.terms.tiers.iter().map(|tier| tier.scope.clone());
        scopes
            .filter_map(|scope| Some((scope.clone(), self.overrides.of(&scope)?)))
            .collect()
    }

    /// Ends the manual changes whose time is over: the rules hold again, and
    /// what was spent stays spent. Called before each decision, at which it
    /// costs next to nothing, and by whoever keeps the gate in order.
    ///
    /// # Errors
    /// When what was spent cannot be read.
    pub fn lapse(&self) -> Result<(), StoreError> {
        if !self.overrides.is_due(self.clock.now()) {
            return Ok(());
        }
        let _turn = self.changing();
        let at = self.clock.now();
        for lapse in self.overrides.lapse(at) {
            let (scope, what) = (lapse.scope.clone(), lapse.what);
            self.note_manual(&lapse.scope, Event::Lapsed { scope, what, at });
            self.renew(|resolved| resolved.draws_from(&lapse.scope))?;
        }
        Ok(())
    }

    /// Scopes that operators changed are loaded at once, so that they are
    /// listed whether or not somebody has work for them.
    pub(super) fn load_manual(&self) -> Result<(), StoreError> {
        for scope in self.overrides.scopes() {
            match scope {
                Scope::Host(origin) => drop(self.lane(&TargetKey::from(origin))?),
                Scope::Class(origin, class) => drop(self.lane(&TargetKey::new(origin, class))?),
                Scope::Pool(_) | Scope::Group(_) => {}
            }
        }
        self.lapse()
    }
}

impl Operator {
    pub(super) fn word(self, until: Option<Moment>, since: Moment) -> Hold {
        Hold {
            until,
            by: self.by,
            note: self.note,
            since,
        }
    }
}
