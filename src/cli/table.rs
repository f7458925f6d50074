//! Tables for people, made of the same rows that programs get as JSON.

use std::fmt;

use serde_json::Value;

/// A column: its heading, and where in a row its value is (`a.b`).
pub(super) struct Column(pub(super) &'static str, pub(super) &'static str);

pub(super) struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(columns: &'static [Column]) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: &Value) {
        let cells = self.columns.iter().map(|Column(_, path)| {
            let cell = cell(row, path);
            if LONG.contains(path) { cut(cell) } else { cell }
        });
        self.rows.push(cells.collect());
    }
}

/// Words of others, which may be long; all of them are in the JSON.
const LONG: [&str; 4] = ["pause.reason", "hold.note", "error", "why"];
/// Characters of such a cell.
const MOST: usize = 60;

fn cut(text: String) -> String {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "…",
        None => text,
    }
}

/// What a row has at a path; of a list, what its items have there, each once.
fn cell(row: &Value, path: &str) -> String {
    let (name, rest) = path
        .split_once('.')
        .map_or((path, None), |(name, rest)| (name, Some(rest)));
    if let Value::Array(items) = row {
        let mut found: Vec<String> = items.iter().map(|item| cell(item, path)).collect();
        found.retain(|text| !text.is_empty());
        found.dedup();
        return found.join(", ");
    }
    match (row.get(name), rest) {
        (Some(value), Some(rest)) => cell(value, rest),
        (Some(value), None) => text(value),
        (None, _) => String::new(),
    }
}

/// A value in a cell: no quotes, nothing for null, lists in words.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(fields) if fields.contains_key("limit") => {
            let field = |name: &str| fields.get(name).map(text).unwrap_or_default();
            let left = fields
                .get("left")
                .map(|left| format!(" ({left} left)"))
                .unwrap_or_default();
            format!("{} {}{left}", field("scope"), field("limit"))
        }
        Value::Object(fields) => {
            let words = fields.iter().filter(|(_, value)| !value.is_null());
            words
                .map(|(name, value)| format!("{name} {}", text(value)))
                .collect::<Vec<_>>()
                .join(", ")
        }
        other => other.to_string(),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = self
            .columns
            .iter()
            .map(|Column(head, _)| (*head).to_owned())
            .collect();
        let lines = || std::iter::once(&heads).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                lines()
                    .filter_map(|line: &Vec<String>| line.get(column))
                    .map(|cell| cell.chars().count())
                    .max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        for line in lines() {
            let mut written = String::new();
            for (cell, width) in line.iter().zip(&widths) {
                written.push_str(&format!("{cell:<width$}  "));
            }
            writeln!(f, "{}", written.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_wide_as_its_widest_cell() {
        static COLUMNS: [Column; 2] = [Column("TARGET", "target"), Column("LEFT", "limits.left")];
        let mut table = Table::new(&COLUMNS);
        table.add(&serde_json::json!({"target": "http://a.example", "limits": {"left": 3}}));
        table.add(&serde_json::json!({"target": "x"}));
        assert_eq!(
            table.to_string(),
            "TARGET            LEFT\nhttp://a.example  3\nx\n"
        );
    }

    #[test]
    fn words_of_others_are_cut_and_nothing_else_is() {
        static COLUMNS: [Column; 2] = [Column("PAUSE", "pause.reason"), Column("URL", "url")];
        let long = "é".repeat(300);
        let mut table = Table::new(&COLUMNS);
        table.add(&serde_json::json!({"pause": {"reason": long}, "url": long}));
        let shown = table.to_string();
        assert!(
            shown.contains(&format!("{}…  {long}\n", "é".repeat(MOST))),
            "{shown}"
        );
    }

    #[test]
    fn a_list_shows_what_its_items_have_each_once() {
        let row =
            serde_json::json!({"layers": [{"author": "a"}, {"author": "a"}, {"author": null}, {}]});
        assert_eq!(cell(&row, "layers.author"), "a");
    }

    #[test]
    fn nothing_in_a_cell_moves_the_cursor() {
        assert_eq!(text(&serde_json::json!("a\u{1b}[2Jb\n")), "a?[2Jb?");
    }
}
