//! `results.jsonl`: whole lines only, one a complete task, and always a beginning of the list that
//! the store keeps. The store is the truth; whatever a crash leaves of the file is completed from
//! it, and a file that does not belong to it is set aside, never written over.

mod beginning;
mod extent;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use beginning::is_beginning;
use extent::Extent;

/// Lines from the store are written in pieces of about so many bytes.
const PIECE: usize = 256 << 10;

/// The results of a job, in its output folder.
#[derive(Debug)]
pub struct Results {
    file: File,
    written: u64,
    /// Length of the lines written.
    bytes: u64,
    tail: Tail,
    /// Results that came before their turn.
    waiting: BTreeMap<u64, String>,
    set_aside: Option<PathBuf>,
}

/// How the file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// With a line.
    Whole,
    /// Perhaps with a part of one, left by a write that failed.
    Torn,
}

type Stored<'a> = &'a dyn Fn(u64) -> io::Result<Option<String>>;

impl Results {
    /// Opens the file and brings it up to the `count` results that are in the store, where `stored`
    /// finds the line of each place.
    ///
    /// # Errors
    /// When the file cannot be read or written, or the store lacks a result below `count`.
    pub fn open(path: &Path, stored: Stored<'_>, count: u64) -> io::Result<Self> {
        let new = beside(path, ".new");
        if new.exists() {
            fs::remove_file(&new)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::Error::other("another run writes its results here"));
        }
        let extent = Extent::of(&mut file)?;
        let mut results = if is_beginning(&mut file, &extent, stored, count)? {
            if extent.rest() > 0 {
                file.set_len(extent.whole)?;
            }
            Self {
                written: extent.lines,
                bytes: extent.whole,
                ..Self::empty(file)
            }
        } else {
            Self::rebuilt(path, &new, stored, count)?
        };
        results.fill(stored, count)?;
        Ok(results)
    }

    fn empty(file: File) -> Self {
        let waiting = BTreeMap::new();
        Self {
            file,
            written: 0,
            bytes: 0,
            tail: Tail::Whole,
            waiting,
            set_aside: None,
        }
    }

    /// The old file keeps its content under another name: it may be the only copy of the results
    /// of another store.
    fn rebuilt(path: &Path, new: &Path, stored: Stored<'_>, count: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(new)?;
        let mut results = Self::empty(file);
        results.fill(stored, count)?;
        results.file.sync_all()?;
        let mut names = (1..=u32::MAX).map(|number| beside(path, &format!(".old-{number}")));
        let free = names
            .find(|name| !name.exists())
            .unwrap_or_else(|| beside(path, ".old"));
        fs::rename(path, &free)?;
        fs::rename(new, path)?;
        results.set_aside = Some(free);
        Ok(results)
    }

    fn fill(&mut self, stored: Stored<'_>, count: u64) -> io::Result<()> {
        let mut piece = String::new();
        let mut next = self.written;
        while next < count {
            push(&mut piece, &result(stored, next)?)?;
            next += 1;
            if piece.len() >= PIECE || next == count {
                self.write(&piece, next)?;
                piece.clear();
            }
        }
        Ok(())
    }

    /// Adds the result at a place. Results may come in any order; one that is not next waits for
    /// those before it. One that is in the file already changes nothing.
    ///
    /// # Errors
    /// When it cannot be written: it waits then, and is written with the next one. `line` must be
    /// one line, without its end.
    pub fn append(&mut self, place: u64, line: &str) -> io::Result<()> {
        push(&mut String::new(), line)?;
        if place >= self.written {
            self.waiting.insert(place, line.to_owned());
        }
        let mut piece = String::new();
        let mut next = self.written;
        while let Some(line) = self.waiting.get(&next) {
            push(&mut piece, line)?;
            next += 1;
        }
        if !piece.is_empty() {
            self.write(&piece, next)?;
            self.waiting = self.waiting.split_off(&next);
        }
        Ok(())
    }

    fn write(&mut self, lines: &str, next: u64) -> io::Result<()> {
        if self.tail == Tail::Torn {
            self.file.set_len(self.bytes)?;
            self.tail = Tail::Whole;
        }
        if let Err(error) = self.file.write_all(lines.as_bytes()) {
            // Half a line must not be seen; where it cannot be removed now, the next write does.
            if self.file.set_len(self.bytes).is_err() {
                self.tail = Tail::Torn;
            }
            return Err(error);
        }
        self.bytes += lines.len() as u64;
        self.written = next;
        Ok(())
    }

    /// Lines in the file.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.written
    }

    /// True when the file has no line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Where the file went that was found at [`Self::open`] and did not belong to the store.
    #[must_use]
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }
}

fn result(stored: Stored<'_>, place: u64) -> io::Result<String> {
    stored(place)?.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the store lacks the result {place}"),
        )
    })
}

fn push(lines: &mut String, line: &str) -> io::Result<()> {
    if line.is_empty() || line.contains('\n') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a result must be one line",
        ));
    }
    lines.push_str(line);
    lines.push('\n');
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
