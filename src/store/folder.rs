//! The folder of a store: whose it is, whether its making was finished, and
//! that it belongs to one process at a time.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::Path;

use super::{DATABASE, IfMissing, StoreError, volume};

/// The version of the folder's layout that this build reads and writes.
pub(super) const FORMAT: &str = "3";
pub(super) const MARKER: &str = "tidegate-store";
const UNFINISHED_MARKER: &str = "tidegate-store.new";
const LOCK: &str = "lock";
/// What the record keeps beside the database.
const HEAD: [&str; 2] = ["head", "head.new"];

/// Makes sure that the folder is a store of this format.
pub(super) fn prepare(folder: &Path, if_missing: IfMissing) -> Result<(), StoreError> {
    let marker = folder.join(MARKER);
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| StoreError::Io { path, error }
    };
    match std::fs::read_to_string(&marker) {
        Ok(text) => {
            let found = text
                .trim()
                .strip_prefix("format ")
                .unwrap_or("unknown")
                .to_owned();
            return if found == FORMAT {
                Ok(())
            } else {
                Err(StoreError::OtherFormat {
                    folder: folder.to_owned(),
                    found,
                })
            };
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(io(&marker)(error)),
    }
    let unfinished = folder.join(UNFINISHED_MARKER);
    let mut ours = vec![LOCK, UNFINISHED_MARKER];
    if unfinished.exists() {
        ours.extend([DATABASE, volume::FOLDER].iter().chain(&HEAD));
    }
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries
            .filter_map(Result::ok)
            .filter(|entry| !ours.iter().any(|name| entry.file_name() == *name))
            .count(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => return Err(io(folder)(error)),
    };
    if entries > 0 {
        return Err(StoreError::NotAStore(folder.to_owned()));
    }
    if if_missing == IfMissing::Fail && !is_finished(&unfinished) {
        return Err(StoreError::Missing(folder.to_owned()));
    }
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let touched = File::options().create(true).append(true).open(&unfinished);
    touched.map(drop).map_err(io(&unfinished))
}

/// A store has its marker only when its database is there and begun, so that a
/// kill before leaves nothing that could be mistaken for a store, and damage
/// after is never mistaken for a new one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Making {
    UnderWay,
    Over,
}

impl Making {
    /// For whoever has the lock. Clears away what a kill left of an earlier
    /// try, unless only the marker's last name was lost, with the power.
    pub(super) fn of(folder: &Path) -> Result<Self, StoreError> {
        if folder.join(MARKER).exists() {
            return Ok(Self::Over);
        }
        let unfinished = folder.join(UNFINISHED_MARKER);
        if is_finished(&unfinished) {
            name(folder).map_err(|error| StoreError::Io {
                path: unfinished,
                error,
            })?;
            return Ok(Self::Over);
        }
        for path in [DATABASE, volume::FOLDER].map(|name| folder.join(name)) {
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::Io { path, error });
                }
                _ => {}
            }
        }
        Ok(Self::UnderWay)
    }
}

/// The database is there: from now on the folder is a store.
pub(super) fn finish(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(UNFINISHED_MARKER);
    File::create(&path)
        .and_then(|mut file| {
            file.write_all(text().as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| name(folder))
        .map_err(|error| StoreError::Io { path, error })
}

fn text() -> String {
    format!("format {FORMAT}\n")
}

/// It is written in full only when the database is there and begun.
fn is_finished(unfinished: &Path) -> bool {
    std::fs::read_to_string(unfinished).is_ok_and(|found| found == text())
}

/// Gives the marker its last name, on disk.
fn name(folder: &Path) -> std::io::Result<()> {
    std::fs::rename(folder.join(UNFINISHED_MARKER), folder.join(MARKER))?;
    File::open(folder)?.sync_all()
}

/// Held until the file is dropped.
pub(super) fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let io = |error| StoreError::Io {
        path: path.clone(),
        error,
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}
