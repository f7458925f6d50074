//! One JSON object a line, field by field. Not a derived `Deserialize`: its errors repeat the
//! offending value, and here a value may be a secret.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::nearest::nearest;

/// What is wrong with a line; which line is for the reader of the file to say.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) field: Option<String>,
    pub(super) message: String,
}

impl Bad {
    pub(super) fn line(message: impl fmt::Display) -> Self {
        Self {
            field: None,
            message: message.to_string(),
        }
    }

    pub(super) fn field(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self {
            field: Some(field.into()),
            message: message.to_string(),
        }
    }
}

/// The fields of a line that nobody has asked for yet.
pub(super) struct Fields(Vec<(String, Raw)>);

enum Raw {
    Null,
    Text(String),
    Integer(i64),
    Object(Vec<(String, Raw)>),
    Other,
}

impl Fields {
    /// A line that says only this.
    pub(super) fn only(field: &str, text: &str) -> Self {
        Self(vec![(field.to_owned(), Raw::Text(text.to_owned()))])
    }

    /// Reads an object whose fields are all among `known`, each at most once.
    pub(super) fn read(text: &str, known: &[&str]) -> Result<Self, Bad> {
        let fields = match serde_json::from_str(text) {
            Ok(Raw::Object(fields)) => fields,
            Ok(_) => return Err(Bad::line("is neither a JSON object nor a URL")),
            Err(error) => return Err(Bad::line(not_json(&error))),
        };
        for (place, (name, _)) in fields.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let hint = match nearest(name, known) {
                    Some(meant) => format!("; did you mean `{meant}`?"),
                    None => format!("; there are {}", known.join(", ")),
                };
                return Err(Bad::field(
                    shown(name),
                    format!("is no field of a task{hint}"),
                ));
            }
            if fields.iter().take(place).any(|(before, _)| before == name) {
                return Err(Bad::field(name, "is given twice"));
            }
        }
        Ok(Self(fields))
    }

    fn take(&mut self, name: &str) -> Raw {
        let place = self.0.iter().position(|(field, _)| field == name);
        place.map_or(Raw::Null, |place| self.0.swap_remove(place).1)
    }

    /// A string; `null` is none.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Bad> {
        match self.take(name) {
            Raw::Null => Ok(None),
            Raw::Text(text) => Ok(Some(text)),
            Raw::Integer(_) | Raw::Object(_) | Raw::Other => {
                Err(Bad::field(name, "must be a string"))
            }
        }
    }

    /// A whole number that fits; `null` is none.
    pub(super) fn number<N: TryFrom<i64>>(
        &mut self,
        name: &str,
        range: &str,
    ) -> Result<Option<N>, Bad> {
        let number = match self.take(name) {
            Raw::Null => return Ok(None),
            Raw::Integer(number) => N::try_from(number).ok(),
            Raw::Text(_) | Raw::Object(_) | Raw::Other => None,
        };
        let must = || Bad::field(name, format!("must be a whole number {range}"));
        number.map(Some).ok_or_else(must)
    }

    /// An object of strings, each name once whatever its case; `null` is none.
    pub(super) fn pairs(&mut self, name: &str) -> Result<Vec<(String, String)>, Bad> {
        let members = match self.take(name) {
            Raw::Null => return Ok(Vec::new()),
            Raw::Object(members) => members,
            Raw::Text(_) | Raw::Integer(_) | Raw::Other => {
                return Err(Bad::field(name, "must be an object of strings"));
            }
        };
        let mut pairs = Vec::with_capacity(members.len());
        let mut seen = std::collections::HashSet::new();
        for (member, value) in members {
            let bad = |message| Bad::field(format!("{name}.{}", shown(&member)), message);
            let Raw::Text(value) = value else {
                return Err(bad("must be a string"));
            };
            if !seen.insert(member.to_ascii_lowercase()) {
                return Err(bad("is given twice"));
            }
            pairs.push((member, value));
        }
        Ok(pairs)
    }
}

fn not_json(error: &serde_json::Error) -> String {
    let words = error
        .to_string()
        .replace(" at line 1 column ", " at column ");
    format!("is not a JSON object on one line: {words}")
}

/// A name for a message: short, nothing that a terminal obeys, and no more of it than a name has,
/// in case a value was written into it.
fn shown(name: &str) -> String {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let shown: String = name.chars().take_while(is_name).take(40).collect();
    if shown.len() == name.len() {
        shown
    } else {
        shown + "…"
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

/// Takes every value, so that no error of serde's own can repeat one.
struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Other)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        Ok(i64::try_from(number).map_or(Raw::Other, Raw::Integer))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Raw, E> {
        Ok(Raw::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Raw::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Raw, A::Error> {
        let mut all = Vec::new();
        while let Some(member) = members.next_entry()? {
            all.push(member);
        }
        Ok(Raw::Object(all))
    }
}
