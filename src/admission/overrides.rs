//! What operators put in place of the rules: loaded at the start, looked at
//! before each decision, ended without a timer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::budget::{Hold, Manual, ManualKind, Scope, Terms};
use crate::clock::Moment;
use crate::store::{Changes, Space, Store, StoreError};

/// All manual changes of a store, by scope.
#[derive(Debug)]
pub(super) struct Overrides {
    by_scope: RwLock<BTreeMap<Scope, Manual>>,
    /// The earliest end of any of them, in nanoseconds.
    next_end: AtomicU64,
}

/// A change that has ended.
#[derive(Debug)]
pub(super) struct Lapse {
    pub(super) scope: Scope,
    pub(super) what: ManualKind,
}

impl Overrides {
    /// As they were left, with those whose end has passed meanwhile.
    pub(super) fn load(store: &Store) -> Result<Self, StoreError> {
        let mut by_scope = BTreeMap::new();
        for entry in store.scan::<Manual>(Space::Manual, ..) {
            let (key, manual) = entry?;
            let name = String::from_utf8(key).ok();
            if let Some(scope) = name.and_then(|name| name.parse::<Scope>().ok()) {
                by_scope.insert(scope, manual);
            }
        }
        let next_end = AtomicU64::new(next_end(&by_scope));
        let by_scope = RwLock::new(by_scope);
        Ok(Self { by_scope, next_end })
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Scope, Manual>> {
        self.by_scope.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn scopes(&self) -> Vec<Scope> {
        self.read().keys().cloned().collect()
    }

    pub(super) fn of(&self, scope: &Scope) -> Option<Manual> {
        self.read().get(scope).cloned()
    }

    pub(super) fn names(&self, scope: &Scope) -> bool {
        self.read().contains_key(scope)
    }

    /// Puts the limits that operators set in place of the rules', and tells
    /// who has these calls refused, if somebody has.
    pub(super) fn lay_over(&self, terms: &mut Terms) -> Option<(Scope, Hold)> {
        let by_scope = self.read();
        let mut denied = None;
        for tier in &mut terms.tiers {
            let Some(manual) = by_scope.get(&tier.scope) else {
                continue;
            };
            manual.lay_over(tier);
            let word = manual.denied.clone();
            denied = denied.or(word.map(|word| (tier.scope.clone(), word)));
        }
        denied
    }

    /// Changes what is changed of a scope; gives what was there before.
    pub(super) fn change(&self, scope: &Scope, change: impl FnOnce(&mut Manual)) -> Manual {
        let mut by_scope = self
            .by_scope
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut manual = by_scope.remove(scope).unwrap_or_default();
        let before = manual.clone();
        change(&mut manual);
        if !manual.is_empty() {
            by_scope.insert(scope.clone(), manual);
        }
        self.next_end.store(next_end(&by_scope), Ordering::Release);
        before
    }

    /// Costs one look at a number while nothing has ended.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        now.as_nanos() >= self.next_end.load(Ordering::Acquire)
    }

    /// Takes away what has ended.
    pub(super) fn lapse(&self, now: Moment) -> Vec<Lapse> {
        let mut lapsed = Vec::new();
        for scope in self.scopes() {
            let mut ended = Vec::new();
            self.change(&scope, |manual| ended = manual.lapse(now));
            lapsed.extend(ended.into_iter().map(|what| Lapse {
                scope: scope.clone(),
                what,
            }));
        }
        lapsed
    }

    /// The state of a scope as it is now, to be called in the order of the log.
    pub(super) fn save(&self, scope: &Scope, changes: &mut Changes) {
        let key = scope.to_string();
        match self.of(scope) {
            Some(manual) => changes.put(Space::Manual, key.as_bytes(), &manual),
            None => changes.delete(Space::Manual, key.as_bytes()),
        }
    }
}

fn next_end(by_scope: &BTreeMap<Scope, Manual>) -> u64 {
    let ends = by_scope.values().filter_map(Manual::next_end);
    ends.min().map_or(u64::MAX, Moment::as_nanos)
}
