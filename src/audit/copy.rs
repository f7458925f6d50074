//! A copy of the record that is whole: as it stood at one instant, while the
//! gate goes on. Tasks and results stay behind; calls under way are in it as
//! such.

use std::collections::BTreeMap;
use std::path::Path;

use super::frame::{End, Piece, pieces};
use super::head::HeadFile;
use super::index::Block;
use super::reach::Reach;
use crate::store::{Copying, Space, Store, StoreError, ValueError, decode, last_number};

/// What must be of one instant.
const STILL: &[Space] = &[
    Space::Meta,
    Space::Open,
    Space::Stop,
    Space::Manual,
    Space::Volume,
    Space::Block,
];
/// What is only added to, or is the more careful the later it is read.
const GROWING: &[Space] = &[Space::Name, Space::Envelope, Space::Bucket];

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Segments of packed events, counted from the first that ever was.
    pub segments: u64,
    /// Days.
    pub days: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Calls under way, and events in no segment yet.
    pub open: u64,
}

/// Copies the record into `folder`, which must be missing or empty. Blocks the
/// thread; days are not let go meanwhile.
///
/// # Errors
/// When the record cannot be read, the copy cannot be written or has no room, or its end is
/// not that of the record. Nothing in `folder` is a store then.
pub fn copy(store: &Store, folder: &Path) -> Result<Copied, StoreError> {
    let _kept = store.keep();
    let copying = store.copying(folder)?;
    let still = store.still(STILL)?;
    let of = |space: Space| {
        still
            .iter()
            .filter(move |(key, _)| key.first() == Some(&(space as u8)))
    };
    let mut volumes = BTreeMap::new();
    for (key, value) in of(Space::Volume) {
        let reach: Reach = decode(value).map_err(|error| damaged(store, error))?;
        volumes.insert(last_number(key), reach);
    }
    let mut left: u64 = volumes.values().map(|reach| reach.length).sum();
    copying.has_room(store, left)?;
    copying.put(&still)?;
    for space in GROWING {
        copying.put_space(store, *space)?;
    }
    for (volume, reach) in &volumes {
        // The gate goes on writing meanwhile, and so may others.
        copying.has_room(store, left)?;
        left = left.saturating_sub(reach.length);
        copying.put_volume(store, *volume, reach.length)?;
    }
    if let Some((volume, reach)) = volumes.last_key_value() {
        let last = of(Space::Block).next_back();
        let last = last.map(|(_, value)| decode::<Block>(value)).transpose();
        let last = last.map_err(|error| damaged(store, error))?;
        if found(&copying, *volume, reach, last.as_ref())? != Some(reach.hash) {
            return Err(damaged(store, ValueError::Damaged));
        }
        HeadFile::in_folder(copying.folder()).write(reach.head());
    }
    let copied = Copied {
        segments: volumes
            .last_key_value()
            .map_or(0, |(_, reach)| reach.number),
        days: volumes.len() as u64,
        bytes: volumes.values().map(|reach| reach.length).sum(),
        open: of(Space::Open).count() as u64,
    };
    copying.finish()?;
    Ok(copied)
}

/// The hash of the last segment, as the copy has it.
fn found(
    copying: &Copying,
    volume: u64,
    reach: &Reach,
    last: Option<&Block>,
) -> Result<Option<super::segment::Hash>, StoreError> {
    let (at, bytes) = match last {
        Some(block) if reach.loose >= reach.length => (block.at, block.bytes),
        _ => (reach.loose, reach.length.saturating_sub(reach.loose)),
    };
    let bytes = copying.read_volume(volume, at, usize::try_from(bytes).unwrap_or(0))?;
    Ok(match pieces(&bytes, End::Whole).last() {
        Some(Piece::Whole(frame)) => Some(frame.hash()),
        _ => None,
    })
}

fn damaged(store: &Store, error: ValueError) -> StoreError {
    StoreError::Value {
        folder: store.folder().to_owned(),
        error,
    }
}
