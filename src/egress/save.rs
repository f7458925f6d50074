//! Bodies on disk, by the hash of what they hold: in bounded memory, and under
//! their name only when they are whole. A body that fits in memory is written in
//! one go, and not at all where it is already: many pages of a host are the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;

use super::reply::{BodyFault, Reply};

/// A folder of bodies.
#[derive(Clone, Debug)]
pub struct Bodies {
    pub(super) folder: PathBuf,
    pub(super) written: Arc<AtomicU64>,
    next: Arc<AtomicU64>,
    writers: Arc<Semaphore>,
}

/// A body that arrived whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Relative to the folder's parent: `bodies/ab/cd/<hash>`. None when empty.
    pub path: Option<String>,
    /// Its length.
    pub bytes: u64,
}

/// Why a body was not kept.
#[derive(Debug, thiserror::Error)]
pub enum Unsaved {
    /// It did not arrive whole.
    #[error(transparent)]
    Body(#[from] BodyFault),
    /// The disk said no.
    #[error("the answer could not be written to {}: {error}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// What it said.
        error: std::io::Error,
    },
}

pub(super) const UNFINISHED: &str = "unfinished";
/// Bytes up to which a body is held in memory until it is whole.
const SMALL: usize = 64 << 10;
/// Bodies written at once: more only queue up before the same directory.
const WRITERS: usize = 8;

impl Bodies {
    /// The folder `bodies` in `out`. What a run before left unfinished is
    /// removed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn in_folder(out: &Path) -> std::io::Result<Self> {
        let folder = out.join("bodies");
        let unfinished = folder.join(UNFINISHED);
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished)?;
        }
        std::fs::create_dir_all(&unfinished)?;
        Ok(Self {
            folder,
            written: Arc::default(),
            next: Arc::default(),
            writers: Arc::new(Semaphore::new(WRITERS)),
        })
    }

    /// Reads a reply's body to disk. Nothing is left of one that is not whole.
    ///
    /// # Errors
    /// When it does not arrive whole, or cannot be written.
    pub async fn save(&self, reply: &mut Reply) -> Result<Saved, Unsaved> {
        let mut held = Vec::new();
        while let Some(chunk) = reply.chunk().await? {
            held.extend_from_slice(&chunk);
            if held.len() > SMALL {
                let beside = self.beside();
                let saved = self.stream(reply, &held, &beside).await;
                if saved.is_err() {
                    let _ = tokio::fs::remove_file(&beside).await;
                }
                return saved;
            }
        }
        if held.is_empty() {
            return Ok(Saved {
                path: None,
                bytes: 0,
            });
        }
        let (place, path) = self.place(&blake3::hash(&held));
        let bytes = held.len() as u64;
        let beside = self.beside();
        let disk = Unsaved::at(&place);
        let turn = self.writers.clone().acquire_owned().await;
        let written = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            keep(&held, &place, &beside)
        });
        written
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(disk)?;
        Ok(self.saved(path, bytes))
    }

    fn saved(&self, path: String, bytes: u64) -> Saved {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        Saved {
            path: Some(path),
            bytes,
        }
    }

    async fn stream(
        &self,
        reply: &mut Reply,
        held: &[u8],
        beside: &Path,
    ) -> Result<Saved, Unsaved> {
        let disk = Unsaved::at;
        let mut file = File::create(beside).await.map_err(disk(beside))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(held);
        file.write_all(held).await.map_err(disk(beside))?;
        while let Some(chunk) = reply.chunk().await? {
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(disk(beside))?;
        }
        file.flush().await.map_err(disk(beside))?;
        drop(file);
        let (place, path) = self.place(&hasher.finalize());
        if let Some(folder) = place.parent() {
            let made = tokio::fs::create_dir_all(folder).await;
            made.map_err(disk(folder))?;
        }
        let renamed = tokio::fs::rename(beside, &place).await;
        renamed.map_err(disk(&place))?;
        Ok(self.saved(path, reply.bytes()))
    }

    /// Whether a body of this length is still where a result says, as [`Saved::path`] does. It is
    /// as young as what asks for it.
    pub async fn holds(&self, path: &str, bytes: u64) -> bool {
        let place = self.whole(path);
        let found = tokio::fs::metadata(&place).await;
        found.is_ok_and(|found| found.is_file() && found.len() == bytes && touch(&place).is_ok())
    }

    /// The file of a body that is whole.
    #[must_use]
    pub fn whole(&self, path: &str) -> PathBuf {
        self.folder.parent().unwrap_or(&self.folder).join(path)
    }

    /// Where a body is while it is not whole.
    fn beside(&self) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.folder.join(UNFINISHED).join(number.to_string())
    }

    /// Where a body belongs, and how results name that place.
    fn place(&self, hash: &blake3::Hash) -> (PathBuf, String) {
        let hash = hash.to_hex();
        let (front, middle) = (
            hash.get(..2).unwrap_or_default(),
            hash.get(2..4).unwrap_or_default(),
        );
        let place = self.folder.join(front).join(middle).join(hash.as_str());
        (place, format!("bodies/{front}/{middle}/{hash}"))
    }
}

impl Unsaved {
    fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Disk { path, error }
    }
}

/// What is named by a new result is as young as that.
fn touch(place: &Path) -> std::io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
    let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps {
        last_access: at(UTIME_OMIT),
        last_modification: at(UTIME_NOW),
    };
    Ok(utimensat(CWD, place, &times, AtFlags::empty())?)
}

/// A file of another length was cut by a loss of power: it is written again.
fn keep(body: &[u8], place: &Path, beside: &Path) -> std::io::Result<()> {
    let is_there = |found: std::fs::Metadata| found.len() == body.len() as u64;
    if std::fs::metadata(place).is_ok_and(is_there) && touch(place).is_ok() {
        return Ok(());
    }
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let written = std::fs::write(beside, body).and_then(|()| std::fs::rename(beside, place));
    if written.is_err() {
        let _ = std::fs::remove_file(beside);
    }
    written
}
