//! Volumes: files beside the database for what is written once, in order, and
//! goes as a whole. A byte there costs a byte; in the database it is written
//! again with its neighbours many times over.
//!
//! The database says how far a volume reaches. What is appended is on disk
//! before the batch that says so; bytes beyond were never acknowledged, and
//! are written over.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::{Store, StoreError};

pub(super) const FOLDER: &str = "record";

/// Bytes for a volume, and where in it they belong.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) volume: u64,
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
}

pub(super) fn path_of(folder: &Path, volume: u64) -> PathBuf {
    folder.join(FOLDER).join(format!("{volume:010}"))
}

/// The writer's side: what it has open.
#[derive(Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    open: Option<(u64, File)>,
}

impl Shelf {
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            open: None,
        }
    }

    /// Writes pieces; they are on disk when it returns.
    pub(super) fn write(&mut self, pieces: &[Piece]) -> Result<(), Error> {
        for pieces in pieces.chunk_by(|a, b| a.volume == b.volume) {
            let Some(first) = pieces.first() else {
                continue;
            };
            let file = self.file(first.volume)?;
            for piece in pieces {
                file.write_all_at(&piece.bytes, piece.at)?;
            }
            file.sync_data()?;
        }
        Ok(())
    }

    fn file(&mut self, volume: u64) -> Result<&File, Error> {
        let open = self.open.take().filter(|(open, _)| *open == volume);
        let open = match open {
            Some(open) => open,
            None => (volume, made(&path_of(&self.folder, volume))?),
        };
        Ok(&self.open.insert(open).1)
    }
}

/// A file to write to, its name on disk.
fn made(path: &Path) -> Result<File, Error> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    let folder = path.parent().unwrap_or(path);
    let file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            if let Some(above) = folder.parent() {
                File::open(above)?.sync_all()?;
            }
            options.open(path)?
        }
        opened => opened?,
    };
    File::open(folder)?.sync_all()?;
    Ok(file)
}

/// A volume to read from. What is read stays readable after it was removed.
#[derive(Debug)]
pub struct Volume {
    file: File,
    path: PathBuf,
}

impl Volume {
    pub(super) fn open(folder: &Path, volume: u64) -> Result<Self, StoreError> {
        let path = path_of(folder, volume);
        match File::open(&path) {
            Ok(file) => Ok(Self { file, path }),
            Err(error) => Err(StoreError::Io { path, error }),
        }
    }

    /// So many bytes from a place.
    ///
    /// # Errors
    /// When they are not there, or cannot be read.
    pub fn read(&self, at: u64, length: usize) -> Result<Vec<u8>, StoreError> {
        let mut bytes = vec![0; length];
        match self.file.read_exact_at(&mut bytes, at) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(self.error(error)),
        }
    }

    /// How many bytes the file holds.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn size(&self) -> Result<u64, StoreError> {
        let meta = self.file.metadata();
        meta.map(|meta| meta.len())
            .map_err(|error| self.error(error))
    }

    fn error(&self, error: Error) -> StoreError {
        let path = self.path.clone();
        StoreError::Io { path, error }
    }
}

/// Volumes open for reading, each opened once.
#[derive(Debug)]
pub struct Volumes<'a> {
    store: &'a Store,
    open: HashMap<u64, Volume>,
}

impl Volumes<'_> {
    /// A volume.
    ///
    /// # Errors
    /// When its file is not there or cannot be opened.
    pub fn get(&mut self, volume: u64) -> Result<&Volume, StoreError> {
        // A few are in use at a time; files are not held open for years of them.
        if self.open.len() > 8 && !self.open.contains_key(&volume) {
            self.open.clear();
        }
        match self.open.entry(volume) {
            std::collections::hash_map::Entry::Occupied(open) => Ok(open.into_mut()),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                Ok(vacant.insert(Volume::open(&self.store.folder, volume)?))
            }
        }
    }
}

impl Store {
    /// The volumes of this store.
    #[must_use]
    pub fn volumes(&self) -> Volumes<'_> {
        Volumes {
            store: self,
            open: HashMap::new(),
        }
    }

    /// Removes the files of volumes that are not wanted any more.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_volumes(&self, is_wanted: impl Fn(u64) -> bool) -> Result<(), StoreError> {
        for (volume, path) in self.volume_files()? {
            if is_wanted(volume) {
                continue;
            }
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StoreError::Io { path, error });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Keeps what volumes hold beyond what is known of them under names of
    /// their own, `VOLUME.aside-MARK`, which nothing reads, writes or removes.
    ///
    /// # Errors
    /// When that cannot be written; the volumes are as they were then.
    pub fn set_aside_volumes(
        &self,
        mark: u64,
        known: impl Fn(u64) -> u64,
    ) -> Result<(), StoreError> {
        for (volume, path) in self.volume_files()? {
            let aside = path.with_extension(format!("aside-{mark}"));
            let kept = std::fs::metadata(&path).and_then(|meta| match known(volume) {
                known if known >= meta.len() => Ok(false),
                0 => std::fs::rename(&path, &aside).map(|()| true),
                _ => std::fs::copy(&path, &aside).map(|_| true),
            });
            match kept {
                Ok(true) => tracing::warn!(
                    path = %aside.display(),
                    "the database is older than the record beside it; what it does not know is kept here"
                ),
                Ok(false) => {}
                Err(error) => return Err(StoreError::Io { path: aside, error }),
            }
        }
        Ok(())
    }

    fn volume_files(&self) -> Result<Vec<(u64, PathBuf)>, StoreError> {
        let folder = self.folder.join(FOLDER);
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(StoreError::Io {
                    path: folder,
                    error,
                });
            }
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let numbered = paths.filter_map(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            let volume = name.and_then(|name| name.parse::<u64>().ok())?;
            Some((volume, path))
        });
        Ok(numbered.collect())
    }
}
