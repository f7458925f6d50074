//! The file being read, the places in it, and the faults found so far.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use super::errors::{ConfigError, Place};

/// The text of a file, and the faults found in it so far.
#[derive(Debug)]
pub(super) struct Report<'t> {
    file: &'t Path,
    text: &'t str,
    errors: RefCell<Vec<ConfigError>>,
}

/// A place in the file, kept for faults that show only later.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    offset: usize,
    key: String,
}

impl<'t> Report<'t> {
    pub(super) fn new(file: &'t Path, text: &'t str) -> Self {
        let errors = RefCell::default();
        Self { file, text, errors }
    }

    pub(super) fn fault(&self, spot: &Spot, message: impl Display) {
        let place = Place::Line {
            file: self.file.to_owned(),
            line: self.line(spot),
            key: spot.key.clone(),
        };
        self.errors
            .borrow_mut()
            .push(ConfigError::new(place, message));
    }

    /// The line of a place, from 1.
    pub(super) fn line(&self, spot: &Spot) -> usize {
        let before = self.text.as_bytes().iter().take(spot.offset);
        before.filter(|byte| **byte == b'\n').count() + 1
    }

    /// What is written at these bytes.
    pub(super) fn written(&self, span: Range<usize>) -> &'t str {
        self.text.get(span).unwrap_or_default()
    }

    pub(super) fn into_errors(self) -> Vec<ConfigError> {
        self.errors.into_inner()
    }

    /// The whole file as a table; none when it is not TOML, and why is entered.
    pub(super) fn parse(&self) -> Option<DeTable<'t>> {
        let (table, faults) = DeTable::parse_recoverable(self.text);
        for fault in &faults {
            let offset = fault.span().map_or(0, |span| span.start);
            self.fault(&Spot::new(offset, String::new()), fault.message());
        }
        faults.is_empty().then(|| table.into_inner())
    }
}

impl Spot {
    /// The file as a whole.
    pub(super) fn start() -> Self {
        Self::new(0, String::new())
    }

    fn new(offset: usize, key: String) -> Self {
        Self { offset, key }
    }

    /// A key of the table at this place, standing at `offset`.
    pub(super) fn key(&self, offset: usize, key: &str) -> Self {
        let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let key = if !key.is_empty() && key.bytes().all(bare) {
            key.to_owned()
        } else {
            format!("{key:?}")
        };
        if self.key.is_empty() {
            return Self::new(offset, key);
        }
        Self::new(offset, format!("{}.{key}", self.key))
    }

    /// An item of the list at this place, counted from 0, standing at `offset`.
    pub(super) fn item(&self, offset: usize, index: usize) -> Self {
        Self::new(offset, format!("{}[{}]", self.key, index + 1))
    }

    /// The key as a header spells it: `target.class` for `target[2].class`.
    pub(super) fn header(&self) -> String {
        let parts = self.key.split('[').enumerate().filter_map(|(index, part)| {
            let after = part.split_once(']').map(|(_, after)| after);
            if index == 0 { Some(part) } else { after }
        });
        parts.collect()
    }
}
