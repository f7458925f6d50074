//! The dictionary beside the segments: long strings that many calls share are
//! written once, and named by number.

use std::collections::HashMap;
use std::sync::Arc;

use crate::store::{Changes, Space, Store, StoreError, numbered};

/// Strings by number, and numbers by string.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Arc<str>, u64>,
    texts: Vec<Arc<str>>,
}

impl Names {
    /// All strings of a store.
    pub(super) fn load(store: &Store) -> Result<Self, StoreError> {
        let mut names = Self::default();
        for entry in store.scan::<Arc<str>>(Space::Name, ..) {
            names.learn(entry?.1);
        }
        Ok(names)
    }

    fn learn(&mut self, text: Arc<str>) -> u64 {
        let number = self.texts.len() as u64;
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    /// The number of a string; a new one becomes durable with `changes`.
    pub(super) fn number(&mut self, text: &Arc<str>, changes: &mut Changes) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.learn(text.clone());
        changes.put(Space::Name, &numbered(number), text);
        number
    }

    /// The string of a number.
    pub(super) fn text(&self, number: u64) -> Option<Arc<str>> {
        usize::try_from(number)
            .ok()
            .and_then(|at| self.texts.get(at))
            .cloned()
    }
}
