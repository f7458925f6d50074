//! Bodies on disk, by the hash of what they hold: written as they arrive, in
//! bounded memory, and under their name only when they are whole.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use super::reply::{BodyFault, Reply};

/// A folder of bodies.
#[derive(Debug)]
pub struct Bodies {
    folder: PathBuf,
    next: AtomicU64,
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

const UNFINISHED: &str = "unfinished";

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
            next: AtomicU64::new(0),
        })
    }

    /// Reads a reply's body to disk. Nothing is left of one that is not whole.
    ///
    /// # Errors
    /// When it does not arrive whole, or cannot be written.
    pub async fn save(&self, reply: &mut Reply) -> Result<Saved, Unsaved> {
        let Some(first) = reply.chunk().await? else {
            return Ok(Saved {
                path: None,
                bytes: 0,
            });
        };
        let beside = self
            .folder
            .join(UNFINISHED)
            .join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let saved = self.write(reply, first, &beside).await;
        if saved.is_err() {
            let _ = tokio::fs::remove_file(&beside).await;
        }
        saved
    }

    async fn write(
        &self,
        reply: &mut Reply,
        first: bytes::Bytes,
        beside: &Path,
    ) -> Result<Saved, Unsaved> {
        let disk = |path: &Path| {
            let path = path.to_owned();
            move |error| Unsaved::Disk { path, error }
        };
        let mut file = File::create(beside).await.map_err(disk(beside))?;
        let mut hasher = blake3::Hasher::new();
        let mut next = Some(first);
        while let Some(chunk) = next {
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(disk(beside))?;
            next = reply.chunk().await?;
        }
        file.flush().await.map_err(disk(beside))?;
        drop(file);
        let hash = hasher.finalize().to_hex().to_string();
        let (front, middle) = (
            hash.get(..2).unwrap_or_default(),
            hash.get(2..4).unwrap_or_default(),
        );
        let folder = self.folder.join(front).join(middle);
        tokio::fs::create_dir_all(&folder)
            .await
            .map_err(disk(&folder))?;
        let place = folder.join(&hash);
        tokio::fs::rename(beside, &place)
            .await
            .map_err(disk(&place))?;
        Ok(Saved {
            path: Some(format!("bodies/{front}/{middle}/{hash}")),
            bytes: reply.bytes(),
        })
    }
}
