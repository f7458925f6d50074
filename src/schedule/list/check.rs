//! The whole file before its first task: a slip in the last line should not cost a night.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fmt;
use std::io::{self, BufRead};

use super::entries::{Entries, Entry};
use super::identity::digest;
use super::{BadLine, Context, ListFault};

/// Bad lines, and kinds of them, that are kept to be shown; the others are counted.
pub const MOST_SHOWN: usize = 100;

/// What is in a task file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Tasks, each counted once.
    pub tasks: usize,
    /// Lines that ask once more for a task of the file, in the same words.
    pub duplicates: usize,
    /// Lines with a task that is not wanted.
    pub left_out: usize,
    /// The first [`MOST_SHOWN`] bad lines.
    pub bad: Vec<BadLine>,
    /// All bad lines.
    pub bad_count: usize,
    /// The first [`MOST_SHOWN`] kinds of bad lines, in the order in which they occur.
    pub kinds: Vec<BadKind>,
}

/// Lines that are bad in the same place for the same reason: a slip in a program that wrote the
/// list is in thousands of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKind {
    /// The first of them.
    pub first: BadLine,
    /// The numbers of the next two.
    pub next: Vec<usize>,
    /// How many there are.
    pub count: usize,
}

/// Lines of a kind that are named beside the first.
const NAMED: usize = 2;

/// What is remembered of a task: a list of millions has to fit into memory.
struct Seen {
    content: [u8; 16],
    line: u32,
}

impl fmt::Display for BadKind {
    /// `line 3: url: is missing (so in lines 4, 7 and 20 more)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        let next: Vec<_> = self.next.iter().map(ToString::to_string).collect();
        match self.count.saturating_sub(1 + next.len()) {
            0 if next.is_empty() => Ok(()),
            0 => write!(f, " (so in line {})", next.join(" and ")),
            more => write!(f, " (so in lines {} and {more} more)", next.join(", ")),
        }
    }
}

/// Reads a task file to its end, in memory that grows by some 40 bytes a task.
///
/// # Errors
/// When the file cannot be read.
pub fn check(reader: impl BufRead, context: Context<'_>) -> io::Result<Checked> {
    let mut checked = Checked::default();
    let mut seen = HashMap::new();
    let mut entries = Entries::new(reader, context);
    for entry in &mut entries {
        match entry {
            Ok(entry) => checked.add(&entry, &mut seen),
            Err(ListFault::Line(bad)) => checked.refuse(bad),
            Err(ListFault::File(error)) => return Err(error),
        }
    }
    checked.left_out = entries.left_out();
    Ok(checked)
}

impl Checked {
    fn add(&mut self, entry: &Entry, seen: &mut HashMap<[u8; 16], Seen>) {
        let Entry { line, new } = entry;
        match seen.entry(digest([new.task.id.as_bytes()])) {
            Slot::Vacant(slot) => {
                slot.insert(Seen {
                    content: new.content,
                    line: u32::try_from(*line).unwrap_or(u32::MAX),
                });
                self.tasks += 1;
            }
            Slot::Occupied(slot) if slot.get().content == new.content => self.duplicates += 1,
            Slot::Occupied(slot) => {
                let message = format!(
                    "line {} has the same id and asks for another call; one of them needs an id of its own",
                    slot.get().line
                );
                self.refuse(BadLine {
                    line: *line,
                    field: Some("id".to_owned()),
                    message,
                });
            }
        }
    }

    fn refuse(&mut self, bad: BadLine) {
        self.bad_count += 1;
        let is_same = |kind: &&mut BadKind| {
            kind.first.field == bad.field && kind.first.message == bad.message
        };
        if let Some(kind) = self.kinds.iter_mut().find(is_same) {
            kind.count += 1;
            if kind.next.len() < NAMED {
                kind.next.push(bad.line);
            }
        } else if self.kinds.len() < MOST_SHOWN {
            self.kinds.push(BadKind {
                first: bad.clone(),
                next: Vec::new(),
                count: 1,
            });
        }
        if self.bad.len() < MOST_SHOWN {
            self.bad.push(bad);
        }
    }
}
