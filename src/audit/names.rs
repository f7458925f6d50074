//! The dictionary beside the segments: long strings that many calls share are
//! written once a day, and named by number. Each day begins it anew, so that
//! it goes with the days that name it.
//!
//! Neither side holds all of it, since trajectories and hosts come without
//! end. A writer remembers the strings of late; one that it has forgotten is
//! written again under another number. A reader looks up what it meets.

use std::collections::HashMap;
use std::sync::Arc;

use crate::budget::Scope;
use crate::store::{Changes, Space, Store, StoreError, ValueError, last_number, numbered};
use crate::target::TargetKey;

/// Strings of one generation of a writer; it remembers two.
const MOST: usize = 1 << 17;

/// What a writer remembers of the dictionary.
#[derive(Debug)]
pub(super) struct Names {
    next: u64,
    most: usize,
    recent: HashMap<Arc<str>, u64>,
    older: HashMap<Arc<str>, u64>,
}

impl Names {
    /// The latest strings of a store, from the number on that its last day
    /// began with.
    pub(super) fn load(store: &Store, from: u64) -> Result<Self, StoreError> {
        Self::remembering(store, from, MOST)
    }

    pub(super) fn remembering(store: &Store, from: u64, most: usize) -> Result<Self, StoreError> {
        let last = store.last_key(Space::Name)?;
        let next = last.map_or(0, |key| last_number(&key) + 1).max(from);
        let (recent, older) = (HashMap::new(), HashMap::new());
        let mut names = Self {
            next,
            most,
            recent,
            older,
        };
        let first = next.saturating_sub(most as u64).max(from);
        for entry in store.scan::<Arc<str>>(Space::Name, numbered(first).to_vec()..) {
            let (key, text) = entry?;
            names.recent.insert(text, last_number(&key));
        }
        Ok(names)
    }

    /// Forgets all. Returns the number that comes next.
    pub(super) fn begin_anew(&mut self) -> u64 {
        self.recent.clear();
        self.older.clear();
        self.next
    }

    /// The number of a string; a new one becomes durable with `changes`.
    pub(super) fn number(&mut self, text: &str, changes: &mut Changes) -> u64 {
        if let Some(number) = self.recent.get(text) {
            return *number;
        }
        let known = self.older.remove_entry(text);
        let (text, number) = known.unwrap_or_else(|| {
            let number = self.next;
            self.next += 1;
            changes.put(Space::Name, &numbered(number), &text);
            (text.into(), number)
        });
        if self.recent.len() >= self.most {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(text, number);
        number
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.recent.len() + self.older.len()
    }
}

/// The dictionary as a reader meets it, each name read once.
#[derive(Debug)]
pub(super) struct Lexicon<'a> {
    store: &'a Store,
    texts: HashMap<u64, Arc<str>>,
    targets: HashMap<u64, TargetKey>,
    scopes: HashMap<u64, Scope>,
}

impl<'a> Lexicon<'a> {
    pub(super) fn of(store: &'a Store) -> Self {
        let (texts, targets, scopes) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self {
            store,
            texts,
            targets,
            scopes,
        }
    }

    /// The string of a number.
    ///
    /// # Errors
    /// When there is none: an event that cannot be told whole is no evidence.
    pub(super) fn text(&mut self, number: u64) -> Result<Arc<str>, StoreError> {
        remember(&mut self.texts, number, || text_of(self.store, number))
    }

    /// The target that a number names.
    pub(super) fn target(&mut self, number: u64) -> Result<TargetKey, StoreError> {
        remember(&mut self.targets, number, || {
            text_of(self.store, number)?
                .parse()
                .map_err(|_| damaged(self.store))
        })
    }

    /// The scope that a number names.
    pub(super) fn scope(&mut self, number: u64) -> Result<Scope, StoreError> {
        remember(&mut self.scopes, number, || {
            text_of(self.store, number)?
                .parse()
                .map_err(|_| damaged(self.store))
        })
    }
}

fn remember<T: Clone>(
    known: &mut HashMap<u64, T>,
    number: u64,
    look_up: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if let Some(found) = known.get(&number) {
        return Ok(found.clone());
    }
    let found = look_up()?;
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(number, found.clone());
    Ok(found)
}

fn text_of(store: &Store, number: u64) -> Result<Arc<str>, StoreError> {
    store
        .get(Space::Name, &numbered(number))?
        .ok_or_else(|| damaged(store))
}

fn damaged(store: &Store) -> StoreError {
    let folder = store.folder().to_owned();
    StoreError::Value {
        folder,
        error: ValueError::Damaged,
    }
}
