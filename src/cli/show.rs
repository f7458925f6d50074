//! Where data and words go. A reader that has left is the end of the command,
//! not an error.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::table::{Column, Table};

/// Words for people, on stderr.
pub(super) fn say(words: &str) {
    let _ = writeln!(io::stderr(), "{words}");
}

/// Rows of data, on stdout: one JSON object a line as they come, or a table.
pub(super) enum Rows {
    Json,
    Table(Table),
    /// Rows are kept for whoever asked.
    Kept(Arc<Mutex<Vec<Value>>>),
    /// A row is told in words of its own.
    Words(fn(&Value) -> String),
}

impl Rows {
    pub(super) fn new(json: bool, columns: &'static [Column]) -> Self {
        if json {
            Self::Json
        } else {
            Self::Table(Table::new(columns))
        }
    }

    /// False when the reader has left.
    pub(super) fn add(&mut self, row: &Value) -> bool {
        match self {
            Self::Json => writeln!(io::stdout(), "{row}").is_ok(),
            Self::Table(table) => {
                table.add(row);
                true
            }
            Self::Kept(rows) => {
                let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                rows.push(row.clone());
                true
            }
            Self::Words(words) => write!(io::stdout(), "{}", words(row)).is_ok(),
        }
    }

    pub(super) fn end(self) {
        if let Self::Table(table) = self {
            let _ = write!(io::stdout(), "{table}");
        }
    }
}
