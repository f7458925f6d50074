//! A store made from another one: the parts that are asked for, as they stood
//! at one instant, in a folder that is a store only when all of it is there.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::folder::{self, Making};
use super::{DATABASE, IfMissing, Space, Store, StoreError, volume};
use crate::store::Changes;

/// Keys of one batch.
const BATCH: usize = 4096;

/// Keys and values as they stand.
pub type Pairs = Vec<(sled::IVec, sled::IVec)>;

/// A store that is being made.
#[derive(Debug)]
pub struct Copying {
    db: sled::Db,
    folder: PathBuf,
    _lock: File,
}

impl Store {
    /// All of some spaces, as of one instant: between two writes. They are
    /// held in memory, and the writer waits meanwhile.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn still(&self, spaces: &'static [Space]) -> Result<Pairs, StoreError> {
        let (done, read) = std::sync::mpsc::channel();
        let db = self.db.clone();
        let mut changes = Changes::default();
        changes.then(move || {
            let pairs: sled::Result<Pairs> = spaces
                .iter()
                .flat_map(|space| db.scan_prefix([*space as u8]))
                .collect();
            let _ = done.send(pairs);
        });
        self.write(changes).wait_blocking()?;
        match read.recv() {
            Ok(pairs) => pairs.map_err(|error| self.database(&error)),
            // Whoever was to read them is gone without a word.
            Err(_) => Err(StoreError::Unwritten(super::writer::closed())),
        }
    }

    /// Begins a copy of this store in `folder`, which must be missing or
    /// empty, or hold what a copy left that was broken off.
    ///
    /// # Errors
    /// When it holds anything else, or cannot be made.
    pub fn copying(&self, folder: &Path) -> Result<Copying, StoreError> {
        let is_taken = || StoreError::NotEmpty(folder.to_owned());
        if folder.join(folder::MARKER).exists() {
            return Err(is_taken());
        }
        folder::prepare(folder, IfMissing::Create).map_err(|error| match error {
            StoreError::NotAStore(_) => is_taken(),
            other => other,
        })?;
        let lock = folder::lock(folder)?;
        if Making::of(folder)? == Making::Over {
            return Err(is_taken());
        }
        let records = folder.join(volume::FOLDER);
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| StoreError::Io { path, error }
        };
        std::fs::create_dir_all(&records).map_err(io(&records))?;
        let config = sled::Config::new()
            .path(folder.join(DATABASE))
            .flush_every_ms(None);
        let db = config.open().map_err(|error| StoreError::Database {
            folder: folder.to_owned(),
            error: error.to_string(),
        })?;
        Ok(Copying {
            db,
            folder: folder.to_owned(),
            _lock: lock,
        })
    }
}

impl Copying {
    /// Takes over pairs.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn put(&self, pairs: &Pairs) -> Result<(), StoreError> {
        for pairs in pairs.chunks(BATCH) {
            let mut batch = sled::Batch::default();
            for (key, value) in pairs {
                batch.insert(key, value);
            }
            self.db
                .apply_batch(batch)
                .map_err(|error| self.database(&error))?;
        }
        Ok(())
    }

    /// Takes over a space as it stands, piece by piece.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn put_space(&self, from: &Store, space: Space) -> Result<(), StoreError> {
        let mut piece = Pairs::new();
        for pair in from.db.scan_prefix([space as u8]) {
            piece.push(pair.map_err(|error| from.database(&error))?);
            if piece.len() >= BATCH {
                self.put(&piece)?;
                piece.clear();
            }
        }
        self.put(&piece)
    }

    /// Whether so many bytes more leave what must stay free.
    ///
    /// # Errors
    /// When they do not.
    pub fn has_room(&self, from: &Store, needed: u64) -> Result<(), StoreError> {
        let Ok(disk) = rustix::fs::statvfs(&self.folder) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let min_free = from.writer.min_free;
        if free >= needed.saturating_add(min_free) {
            return Ok(());
        }
        Err(StoreError::NoRoom {
            folder: self.folder.clone(),
            free,
            needed,
            min_free,
        })
    }

    /// Takes over the front of a volume.
    ///
    /// # Errors
    /// When it is shorter than that, or cannot be read or written.
    pub fn put_volume(&self, from: &Store, number: u64, length: u64) -> Result<(), StoreError> {
        let (source, place) = (
            volume::path_of(&from.folder, number),
            volume::path_of(&self.folder, number),
        );
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| StoreError::Io { path, error }
        };
        let file = File::open(&source).map_err(io(&source))?;
        let mut copy = File::create(&place).map_err(io(&place))?;
        let copied = std::io::copy(&mut file.take(length), &mut copy).map_err(io(&place))?;
        if copied < length {
            let error = std::io::ErrorKind::UnexpectedEof.into();
            return Err(StoreError::Io {
                path: source,
                error,
            });
        }
        copy.sync_all().map_err(io(&place))
    }

    /// Bytes of a volume of the copy.
    ///
    /// # Errors
    /// When they are not there.
    pub fn read_volume(&self, number: u64, at: u64, length: usize) -> Result<Vec<u8>, StoreError> {
        volume::Volume::open(&self.folder, number)?.read(at, length)
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All is there: from now on it is a store.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn finish(self) -> Result<(), StoreError> {
        self.db.flush().map_err(|error| self.database(&error))?;
        for path in [self.folder.join(volume::FOLDER), self.folder.clone()] {
            let synced = File::open(&path).and_then(|folder| folder.sync_all());
            synced.map_err(|error| StoreError::Io { path, error })?;
        }
        folder::finish(&self.folder)
    }

    fn database(&self, error: &sled::Error) -> StoreError {
        StoreError::Database {
            folder: self.folder.clone(),
            error: error.to_string(),
        }
    }
}
