//! A task file: one JSON object a line, or one URL a line.
//!
//! [`check`] reads all of it before anything is sent; [`tasks`] reads it again to hand the tasks
//! over. What cannot be done as asked is an error with its line and field, and repeats no secret:
//! neither userinfo nor query of a URL, no header's value, no body.

mod check;
mod entries;
mod identity;
mod line;
mod nearest;
mod object;
mod template;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, BufRead};

pub use check::{BadKind, Checked, MOST_SHOWN, check};
pub use entries::MAX_LINE_BYTES;
pub(super) use identity::{content, default_id};
pub use line::read_line;
pub use template::{Template, TemplateError};

use super::NewTask;

/// What a line means depends on where it is read.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Looks up an environment variable that a header names.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Nanoseconds from a moment to the wall clock; see [`crate::clock::wall_offset`].
    pub wall_offset: i64,
    /// What a line fills, where it is no task by itself.
    pub template: Option<&'a Template>,
    /// Which tasks are meant, by their URL as it is written; all where there is none.
    pub wanted: Option<&'a dyn Fn(&str) -> bool>,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("wall_offset", &self.wall_offset)
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}

/// A line that is no task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// The field that is wrong, where it is one: `url`, `headers.x-key`.
    pub field: Option<String>,
    /// What is wrong with it, without secrets.
    pub message: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "line {}: {field}: {}", self.line, self.message),
            None => write!(f, "line {}: {}", self.line, self.message),
        }
    }
}

impl std::error::Error for BadLine {}

/// Why a task cannot be had from a file.
#[derive(Debug, thiserror::Error)]
pub enum ListFault {
    /// This line is bad; the next one can be read.
    #[error(transparent)]
    Line(#[from] BadLine),
    /// The file cannot be read any further: there may be tasks that nobody has seen.
    #[error("the list of tasks cannot be read: {0}")]
    File(#[from] io::Error),
}

/// The tasks of a file that are wanted, in its order, as they are read. Tasks that occur twice come
/// twice.
pub fn tasks<'a, R: BufRead + 'a>(
    reader: R,
    context: Context<'a>,
) -> impl Iterator<Item = Result<NewTask, ListFault>> + 'a {
    entries::Entries::new(reader, context).map(|entry| entry.map(|entry| entry.new))
}
