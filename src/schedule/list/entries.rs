//! The lines of a task file, one at a time and of bounded length.

use std::io::{self, BufRead, Read as _};

use super::line::read_line;
use super::{BadLine, Context, ListFault};
use crate::schedule::NewTask;

/// The longest line that is read, in bytes, without its end.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// A task and the line it stands in.
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) new: NewTask,
}

/// The tasks of a file.
pub(super) struct Entries<'a, R> {
    reader: R,
    context: Context<'a>,
    buffer: Vec<u8>,
    line: usize,
    left_out: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    Ended,
}

enum Found {
    Nothing,
    Line,
    TooLong,
}

impl<'a, R: BufRead> Entries<'a, R> {
    pub(super) fn new(reader: R, context: Context<'a>) -> Self {
        Self {
            reader,
            context,
            buffer: Vec::new(),
            line: 0,
            left_out: 0,
            state: State::Reading,
        }
    }

    /// Tasks read so far that are not wanted.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    fn is_wanted(&self, new: &NewTask) -> bool {
        let wanted = self.context.wanted;
        wanted.is_none_or(|wanted| wanted(&new.task.call.url))
    }

    fn fill(&mut self) -> io::Result<Found> {
        self.buffer.clear();
        self.line += 1;
        let most = MAX_LINE_BYTES as u64 + 1;
        let read = self
            .reader
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(Found::Nothing);
        }
        if self.buffer.len() > MAX_LINE_BYTES && !self.buffer.ends_with(b"\n") {
            self.reader.skip_until(b'\n')?;
            return Ok(Found::TooLong);
        }
        Ok(Found::Line)
    }

    fn read(&self) -> Result<Option<NewTask>, BadLine> {
        let text = std::str::from_utf8(&self.buffer).map_err(|error| {
            self.bad(format!(
                "is not UTF-8 from its byte {} on",
                error.valid_up_to() + 1
            ))
        })?;
        read_line(text, self.line, &self.context)
    }

    fn bad(&self, message: String) -> BadLine {
        BadLine {
            line: self.line,
            field: None,
            message,
        }
    }
}

impl<R: BufRead> Iterator for Entries<'_, R> {
    type Item = Result<Entry, ListFault>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.state == State::Reading {
            match self.fill() {
                Ok(Found::Line) => match self.read() {
                    Ok(None) => {}
                    Ok(Some(new)) if !self.is_wanted(&new) => self.left_out += 1,
                    Ok(Some(new)) => {
                        return Some(Ok(Entry {
                            line: self.line,
                            new,
                        }));
                    }
                    Err(bad) => return Some(Err(bad.into())),
                },
                Ok(Found::TooLong) => {
                    let most = MAX_LINE_BYTES >> 20;
                    return Some(Err(self.bad(format!("is longer than {most} MiB")).into()));
                }
                Ok(Found::Nothing) => self.state = State::Ended,
                Err(error) => {
                    self.state = State::Ended;
                    return Some(Err(error.into()));
                }
            }
        }
        None
    }
}
