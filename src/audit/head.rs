//! The head of the chain, kept in a file outside the database: an end that
//! was cut off shows nowhere else.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::segment::Hash;
use crate::store::Store;

const FILE: &str = "head";

/// The last segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) number: u64,
    pub(super) hash: Hash,
}

/// Where the head is kept.
#[derive(Clone, Debug)]
pub(super) struct HeadFile(PathBuf);

impl HeadFile {
    pub(super) fn of(store: &Store) -> Self {
        Self::in_folder(store.folder())
    }

    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join(FILE))
    }

    /// The head as it was written last; none when there is none to read.
    pub(super) fn read(&self) -> Option<Head> {
        let path = self.0.display();
        let text = match std::fs::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%path, %error, "the head of the record cannot be read");
                return None;
            }
        };
        let head = serde_json::from_slice(&text);
        head.inspect_err(|error| tracing::warn!(%path, %error, "this is no head of a record"))
            .ok()
    }

    /// Replaces the file as a whole. It may lag behind the record, never lead it.
    pub(super) fn write(&self, head: Head) {
        let beside = self.0.with_extension("new");
        let text = serde_json::to_vec(&head).unwrap_or_default();
        let written = File::create(&beside)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| std::fs::rename(&beside, &self.0));
        if let Err(error) = written {
            let path = self.0.display();
            tracing::warn!(%path, %error, "the head of the record could not be written beside it");
        }
    }
}
