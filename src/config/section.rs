//! A table of the file, read key by key.
//!
//! Nothing here stops at the first fault. A value that cannot be read is
//! entered into the [`Report`] with its line and dotted key, and the reader
//! goes on without it. What was asked for is what is known: a key that nobody
//! asked for until [`Section::close`] is a misspelt one.

use std::fmt::Display;

use toml::de::DeTable;

use super::field::Field;
use super::report::{Report, Spot};

/// A table, and which of its keys were asked for.
#[derive(Debug)]
pub(super) struct Section<'r, 't> {
    report: &'r Report<'t>,
    table: &'r DeTable<'t>,
    spot: Spot,
    asked: Vec<&'static str>,
}

impl<'r, 't> Section<'r, 't> {
    pub(super) fn new(report: &'r Report<'t>, table: &'r DeTable<'t>, spot: Spot) -> Self {
        let asked = Vec::new();
        Self {
            report,
            table,
            spot,
            asked,
        }
    }

    pub(super) fn report(&self) -> &'r Report<'t> {
        self.report
    }

    /// The place of the section as a whole.
    pub(super) fn spot(&self) -> &Spot {
        &self.spot
    }

    /// The place of a key; of the section where it is not set.
    pub(super) fn spot_of(&self, key: &str) -> Spot {
        self.value(key)
            .map_or_else(|| self.spot.clone(), |value| value.spot().clone())
    }

    /// Enters a fault of the whole section.
    pub(super) fn fault(&self, message: impl Display) {
        self.report.fault(&self.spot, message);
    }

    /// Enters a fault of one key.
    pub(super) fn fault_at(&self, key: &str, message: impl Display) {
        self.report.fault(&self.spot_of(key), message);
    }

    pub(super) fn sets(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(super) fn sets_nothing_but(&self, keys: &[&str]) -> bool {
        self.table
            .keys()
            .all(|key| keys.contains(&key.get_ref().as_ref()))
    }

    /// Whether there is a key that nobody asked for yet.
    pub(super) fn has_strangers(&self) -> bool {
        self.table.keys().any(|key| !self.knows(key.get_ref()))
    }

    /// Asks for a key.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Field<'r, 't>> {
        self.asked.push(key);
        self.value(key)
    }

    /// Asks for a key whose value is text.
    pub(super) fn take_text<T, E: Display>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.take(key)?.text(read)
    }

    /// The same; that the key is not set is a fault, which `why` explains.
    pub(super) fn need_text<T, E: Display>(
        &mut self,
        key: &'static str,
        why: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        if !self.sets(key) {
            self.fault(format_args!("`{key}` is missing: {why}"));
        }
        self.take_text(key, read)
    }

    /// The blocks `[[key]]`.
    pub(super) fn take_sections(&mut self, key: &'static str) -> Vec<Section<'r, 't>> {
        let Some(value) = self.take(key) else {
            return Vec::new();
        };
        if value.is_table() {
            let header = value.spot().header();
            value.fault::<()>(format_args!(
                "there may be several: write [[{header}]], in double brackets"
            ));
            return Vec::new();
        }
        let items = value.items().unwrap_or_default();
        items.into_iter().filter_map(Field::section).collect()
    }

    /// All keys with their values, for a table whose keys are data.
    pub(super) fn into_entries(self) -> Vec<(&'r str, Field<'r, 't>)> {
        let names = self.table.keys().map(|key| key.get_ref().as_ref());
        names
            .filter_map(|name| Some((name, self.value(name)?)))
            .collect()
    }

    /// Enters every key that nobody asked for.
    pub(super) fn close(self) {
        for key in self.table.keys().filter(|key| !self.knows(key.get_ref())) {
            let name: &str = key.get_ref();
            let spot = self.spot.key(key.span().start, name);
            let message = match nearest(name, &self.asked) {
                Some(known) => format!("there is no such key here: did you mean `{known}`?"),
                None => format!(
                    "there is no such key here; there are: {}",
                    self.asked.join(", ")
                ),
            };
            self.report.fault(&spot, message);
        }
    }

    fn knows(&self, key: &str) -> bool {
        self.asked.contains(&key)
    }

    fn value(&self, key: &str) -> Option<Field<'r, 't>> {
        let (name, value) = self.table.get_key_value(key)?;
        let span = value.span();
        // A table of dotted keys stands nowhere; its first key does.
        let place = if span.is_empty() { name.span() } else { span };
        let spot = self.spot.key(place.start, key);
        Some(Field::new(self.report, value, spot))
    }
}

fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let spelled = name.to_lowercase().replace('-', "_");
    let distance = |key: &&'k str| strsim::osa_distance(&spelled, key);
    let near = known.iter().copied().min_by_key(distance)?;
    // Enough for two slips in a word of eight letters, and none in a tiny one.
    (distance(&near) <= near.len().div_ceil(4)).then_some(near)
}
