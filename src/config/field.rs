//! One value of the file, read as what belongs there.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use super::report::{Report, Spot};
use super::section::Section;

/// A value and its place. Each reader gives what it read, or enters a fault
/// that says what belongs there and gives nothing.
#[derive(Debug)]
pub(super) struct Field<'r, 't> {
    report: &'r Report<'t>,
    value: &'r Spanned<DeValue<'t>>,
    spot: Spot,
}

impl<'r, 't> Field<'r, 't> {
    pub(super) fn new(report: &'r Report<'t>, value: &'r Spanned<DeValue<'t>>, spot: Spot) -> Self {
        Self {
            report,
            value,
            spot,
        }
    }

    pub(super) fn spot(&self) -> &Spot {
        &self.spot
    }

    /// Enters a fault, and gives nothing.
    pub(super) fn fault<T>(&self, message: impl Display) -> Option<T> {
        self.report.fault(&self.spot, message);
        None
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.get_ref().is_array()
    }

    pub(super) fn is_empty_list(&self) -> bool {
        let list = self.value.get_ref().as_array();
        list.is_some_and(|list| list.is_empty())
    }

    /// Text, and what `read` makes of it.
    pub(super) fn text<T, E: Display>(&self, read: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        match self.value.get_ref() {
            DeValue::String(text) => match read(text) {
                Ok(read) => Some(read),
                Err(error) => self.fault(error),
            },
            DeValue::Array(_) => self.fault("must be text in quotes, not a list"),
            DeValue::Table(_) => self.fault("must be text in quotes, not a table"),
            // A number or a date where text belongs is mostly a missing pair of
            // quotes; if not, the reader knows best what belongs there.
            _ => {
                let written = self.report.written(self.value.span());
                match read(written) {
                    Ok(_) => self.fault(format_args!("write it in quotes: \"{written}\"")),
                    Err(error) => self.fault(error),
                }
            }
        }
    }

    /// One of several words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        self.text(|text| {
            let found = choices.iter().find(|(word, _)| *word == text);
            found.map(|(_, meaning)| *meaning).ok_or_else(|| {
                let words: Vec<String> = choices
                    .iter()
                    .map(|(word, _)| format!("\"{word}\""))
                    .collect();
                format!("`{text}` means nothing here: write {}", words.join(" or "))
            })
        })
    }

    /// A whole number.
    pub(super) fn number(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let number = self.value.get_ref().as_integer();
        let read = number.and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
        read.filter(|n| range.contains(n)).or_else(|| {
            let (least, most) = range.into_inner();
            let quotes = match self.value.get_ref() {
                DeValue::String(_) => ", without quotes",
                _ => "",
            };
            self.fault(format_args!(
                "must be a whole number from {least} to {most}{quotes}"
            ))
        })
    }

    /// True or false.
    pub(super) fn flag(&self) -> Option<bool> {
        let flag = self.value.get_ref().as_bool();
        flag.or_else(|| self.fault("must be true or false, without quotes"))
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Option<Vec<Field<'r, 't>>> {
        let Some(list) = self.value.get_ref().as_array() else {
            return self.fault("must be a list in brackets");
        };
        let items = list.iter().enumerate().map(|(index, value)| {
            let spot = self.spot.item(value.span().start, index);
            Self::new(self.report, value, spot)
        });
        Some(items.collect())
    }

    /// A list of texts; an item that cannot be read is left out.
    pub(super) fn texts<T, E: Display>(
        &self,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let items = self.items()?;
        Some(items.iter().filter_map(|item| item.text(&read)).collect())
    }

    /// A table.
    pub(super) fn section(self) -> Option<Section<'r, 't>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Some(Section::new(self.report, table, self.spot)),
            DeValue::Array(_) => self.fault(format_args!(
                "there is only one: write [{}], in single brackets",
                self.spot.header()
            )),
            _ => self.fault("must be a table of keys and values"),
        }
    }
}
