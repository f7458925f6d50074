//! The head of the chain, kept in a file outside the database: an end that
//! was cut off shows nowhere else.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

const FILE: &str = "head";

/// The last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) number: u64,
    pub(super) hash: [u8; 32],
}

#[derive(Clone, Debug)]
pub(super) struct HeadFile(PathBuf);

impl HeadFile {
    pub(super) fn of(store: &crate::store::Store) -> Self {
        Self(store.folder().join(FILE))
    }

    pub(super) fn read(&self) -> Option<Head> {
        let text = std::fs::read_to_string(&self.0).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Replaces the file as a whole. It may lag behind the record, never lead it.
    pub(super) fn write(&self, head: Head) {
        let beside = self.0.with_extension("new");
        let text = serde_json::to_vec(&head).unwrap_or_default();
        let written = File::create(&beside)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| std::fs::rename(&beside, &self.0));
        if let Err(error) = written {
            tracing::warn!(path = %self.0.display(), %error, "the head of the record could not be written beside it");
        }
    }
}
