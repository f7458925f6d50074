//! The embedded store: one folder, one sled tree, volumes beside it, one writer.
//!
//! What is written together is durable together ([`Changes`]); what is
//! acknowledged ([`Durable`]) survives kill -9 and loss of power. A folder
//! belongs to one process at a time, is marked with the version of its format,
//! and is never created over somebody else's files.

mod copying;
mod folder;
mod keys;
mod value;
mod volume;
mod writer;

use std::fs::File;
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use serde::de::DeserializeOwned;

pub use copying::{Copying, Pairs};
use folder::Making;
pub use keys::{Space, last_number, numbered, paired};
pub use value::{ValueError, as_bytes, decode, decode_all, encode};
pub use volume::{Volume, Volumes};
pub use writer::{Changes, Durable, Fault};

use crate::clock::{Anchor, Moment, SystemClock};

const DATABASE: &str = "db";
const CACHE_BYTES: u64 = 128 << 20;

/// Why a store cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Files of somebody else.
    #[error("{} is not a tidegate store: it holds other files; name an empty or a new folder with --store", .0.display())]
    NotAStore(PathBuf),
    /// There is none.
    #[error("there is no store at {}: `tidegate run` makes one; name another with --store", .0.display())]
    Missing(PathBuf),
    /// Where a copy was to go.
    #[error("{} is not empty: name a folder for the copy that is missing or empty", .0.display())]
    NotEmpty(PathBuf),
    /// A copy that the disk has no room for.
    #[error("{} has {free} bytes free: a copy takes {needed} more, and min_free = {min_free} must stay free; name a folder on another disk", folder.display())]
    NoRoom {
        /// Where the copy was to go.
        folder: PathBuf,
        /// Bytes free there.
        free: u64,
        /// Bytes that the copy still takes there.
        needed: u64,
        /// Bytes that must stay free.
        min_free: u64,
    },
    /// Another layout.
    #[error("{} has store format {found}; this build reads format {}: use the version of tidegate that wrote it, or another --store", folder.display(), folder::FORMAT)]
    OtherFormat {
        /// Where.
        folder: PathBuf,
        /// What its marker says.
        found: String,
    },
    /// Another process holds it.
    #[error("the store {} is in use by another process; stop that one first. Another folder (--store) has budgets of its own: targets of both would get what each allows", .0.display())]
    InUse(PathBuf),
    /// The operating system said no.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        error: std::io::Error,
    },
    /// sled said no.
    #[error("the database in {} cannot be read ({error}); keep the folder as it is, and start with another --store or a copy from a backup", folder.display())]
    Database {
        /// Where.
        folder: PathBuf,
        /// What it said.
        error: String,
    },
    /// What had to be on disk first cannot be written.
    #[error(transparent)]
    Unwritten(#[from] Fault),
    /// A value is damaged, or of another version.
    #[error("the record in {} holds a value that cannot be read: {error}", folder.display())]
    Value {
        /// Where.
        folder: PathBuf,
        /// What is wrong with it.
        error: ValueError,
    },
}

/// What to do where there is no store yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// Make one.
    Create,
    /// Say so.
    Fail,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    writer: writer::Writer,
    db: sled::Db,
    folder: PathBuf,
    clock: Arc<SystemClock>,
    /// Held while nothing old may go.
    kept: Mutex<()>,
    // Released last, when everything is on disk.
    _lock: File,
}

impl Store {
    /// Opens the store in `folder`. Below `min_free` bytes of free disk
    /// nothing new is granted.
    ///
    /// # Errors
    /// When it cannot be opened; nothing in it has been changed then.
    pub fn open(folder: &Path, if_missing: IfMissing, min_free: u64) -> Result<Self, StoreError> {
        folder::prepare(folder, if_missing)?;
        let lock = folder::lock(folder)?;
        let making = Making::of(folder)?;
        let config = sled::Config::new()
            .path(folder.join(DATABASE))
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(None);
        let database = |error: String| StoreError::Database {
            folder: folder.to_owned(),
            error,
        };
        let io = |error| StoreError::Io {
            path: folder.to_owned(),
            error,
        };
        // sled panics on some kinds of damage; to the caller that is one more failed open.
        let db = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| open_database(&config)))
            .map_err(|_| database("it is damaged".into()))?
            .map_err(|error| match error {
                sled::Error::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                    io(error)
                }
                other => database(other.to_string()),
            })?;
        let saved = saved_clock(&db);
        if saved.is_none() && making == Making::Over {
            // sled takes a log that it cannot read for a new one, and a new one has every budget full.
            return Err(database("what it held is gone".into()));
        }
        let clock = Arc::new(SystemClock::resumed(saved));
        let writer =
            writer::Writer::start(db.clone(), clock.clone(), folder, min_free).map_err(io)?;
        let store = Self {
            writer,
            db,
            folder: folder.to_owned(),
            clock,
            kept: Mutex::default(),
            _lock: lock,
        };
        let mut changes = Changes::default();
        changes.put(Space::Meta, ANCHOR, store.clock.anchor());
        // First in line, so it is durable before anything that leans on it.
        store.write(changes).detach();
        if making == Making::UnderWay {
            store.settle()?;
            folder::finish(folder)?;
        }
        Ok(store)
    }

    /// The clock that goes on from what this store has seen.
    #[must_use]
    pub fn clock(&self) -> Arc<SystemClock> {
        self.clock.clone()
    }

    /// The store's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// While this is held, nothing old is let go.
    pub fn keep(&self) -> MutexGuard<'_, ()> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to let something go; none while somebody keeps it.
    pub fn let_go(&self) -> Option<MutexGuard<'_, ()>> {
        match self.kept.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Hands changes to the writer. What is handed over first is durable first.
    pub fn write(&self, changes: Changes) -> Durable {
        self.writer.write(changes)
    }

    /// Waits until everything handed over so far is on disk, and so is what is
    /// read from now on. Blocks the thread for about one flush; for the start
    /// of a run, where what comes next leans on it.
    ///
    /// # Errors
    /// When it will never be.
    pub fn settle(&self) -> Result<(), StoreError> {
        let (done, settled) = std::sync::mpsc::channel();
        let mut changes = Changes::default();
        changes.then(move || {
            let _ = done.send(());
        });
        self.write(changes).detach();
        settled.recv().map_err(|_| {
            // A write that fails drops what was to follow it.
            let closed = Fault::Broken("the store is closed".into());
            StoreError::Unwritten(self.health().err().unwrap_or(closed))
        })
    }

    /// Whether new calls may be granted.
    ///
    /// # Errors
    /// Why not.
    pub fn health(&self) -> Result<(), Fault> {
        self.writer.health()
    }

    /// One value.
    ///
    /// # Errors
    /// When the database or the value is damaged.
    pub fn get<T: DeserializeOwned>(
        &self,
        space: Space,
        rest: &[u8],
    ) -> Result<Option<T>, StoreError> {
        let found = self
            .db
            .get(keys::key(space, rest))
            .map_err(|error| self.database(&error))?;
        found
            .map(|bytes| decode(&bytes).map_err(|error| self.value(error)))
            .transpose()
    }

    /// Values of a space in the order of their keys, which come without the
    /// space. Ends at the first damage: sled would repeat it for ever.
    pub fn scan<T: DeserializeOwned>(
        &self,
        space: Space,
        range: impl RangeBounds<Vec<u8>>,
    ) -> impl Iterator<Item = Result<(Vec<u8>, T), StoreError>> {
        self.scan_bytes(space, range).map(|entry| {
            let (key, bytes) = entry?;
            decode(&bytes)
                .map(|value| (key, value))
                .map_err(|error| self.value(error))
        })
    }

    /// As [`Store::scan`], values as they stand.
    pub fn scan_bytes(
        &self,
        space: Space,
        range: impl RangeBounds<Vec<u8>>,
    ) -> impl Iterator<Item = Result<(Vec<u8>, sled::IVec), StoreError>> {
        let start = match range.start_bound() {
            Bound::Included(rest) => Bound::Included(keys::key(space, rest)),
            Bound::Excluded(rest) => Bound::Excluded(keys::key(space, rest)),
            Bound::Unbounded => Bound::Included(vec![space as u8]),
        };
        let end = match range.end_bound() {
            Bound::Included(rest) => Bound::Included(keys::key(space, rest)),
            Bound::Excluded(rest) => Bound::Excluded(keys::key(space, rest)),
            Bound::Unbounded => Bound::Excluded(vec![space as u8 + 1]),
        };
        let entries = self.db.range((start, end)).map(|entry| {
            let (key, value) = entry.map_err(|error| self.database(&error))?;
            Ok((key.get(1..).unwrap_or_default().to_vec(), value))
        });
        entries.scan(false, |failed, entry| {
            let entry = (!*failed).then_some(entry)?;
            *failed = entry.is_err();
            Some(entry)
        })
    }

    /// The greatest key of a space, without the space.
    ///
    /// # Errors
    /// When the database is damaged.
    pub fn last_key(&self, space: Space) -> Result<Option<Vec<u8>>, StoreError> {
        let last = self
            .db
            .range(vec![space as u8]..vec![space as u8 + 1])
            .next_back()
            .transpose();
        let last = last.map_err(|error| self.database(&error))?;
        Ok(last.and_then(|(key, _)| key.get(1..).map(<[u8]>::to_vec)))
    }

    /// Writes what has been handed over and lets the folder go.
    pub fn close(&self) {
        self.writer.close();
    }

    fn database(&self, error: &sled::Error) -> StoreError {
        // After a write that failed, sled says the same to every reader.
        if let Err(fault @ Fault::Broken(_)) = self.health() {
            return fault.into();
        }
        StoreError::Database {
            folder: self.folder.clone(),
            error: error.to_string(),
        }
    }

    fn value(&self, error: ValueError) -> StoreError {
        StoreError::Value {
            folder: self.folder.clone(),
            error,
        }
    }
}

/// The folder is ours by its lock, so whoever still holds sled's own is a
/// thread of a store that this process has closed a moment ago.
fn open_database(config: &sled::Config) -> sled::Result<sled::Db> {
    let is_closing = |error: &sled::Error| {
        let sled::Error::Io(error) = error else {
            return false;
        };
        error.to_string().contains("could not acquire lock")
    };
    for _ in 0..200 {
        match config.open() {
            Err(error) if is_closing(&error) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened,
        }
    }
    config.open()
}

const ANCHOR: &[u8] = b"anchor";
/// Decision time at the last batch.
const LATEST: &[u8] = b"latest";

fn saved_clock(db: &sled::Db) -> Option<(Anchor, Moment)> {
    let read = |name: &[u8]| db.get(keys::key(Space::Meta, name)).ok().flatten();
    let anchor = decode(&read(ANCHOR)?).ok()?;
    let latest = read(LATEST)
        .and_then(|bytes| decode(&bytes).ok())
        .unwrap_or(Moment::ZERO);
    Some((anchor, latest))
}

#[cfg(test)]
mod tests;
