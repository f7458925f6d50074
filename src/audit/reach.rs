//! How far the record reaches: for each day a volume, whose end the database
//! knows.

use serde::{Deserialize, Serialize};

use super::frame::{End, Piece, pieces};
use super::head::Head;
use super::segment::Hash;
use crate::clock::Moment;
use crate::store::{Space, Store, StoreError, Volumes, last_number, numbered};

const DAY: i128 = 86_400_000_000_000;

/// The end of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reach {
    /// Bytes of it that count.
    pub(super) length: u64,
    /// Where the segments begin that are in no block yet.
    pub(super) loose: u64,
    /// The number of its last segment.
    pub(super) number: u64,
    /// The hash of that one.
    pub(super) hash: Hash,
    /// The time of that one.
    pub(super) last: Moment,
    /// Nanoseconds from decision time to the wall clock of then.
    pub(super) wall_offset: i64,
    /// The first string of the dictionary that this volume names.
    pub(super) names_from: u64,
}

impl Reach {
    pub(super) fn head(&self) -> Head {
        Head {
            number: self.number,
            hash: self.hash,
        }
    }

    /// The last volume there is.
    pub(super) fn latest(store: &Store) -> Result<Option<(u64, Self)>, StoreError> {
        let Some(key) = store.last_key(Space::Volume)? else {
            return Ok(None);
        };
        let volume = last_number(&key);
        Ok(Self::of(store, volume)?.map(|reach| (volume, reach)))
    }

    pub(super) fn of(store: &Store, volume: u64) -> Result<Option<Self>, StoreError> {
        store.get(Space::Volume, &numbered(volume))
    }

    /// The segments in no block yet, as far as the file has them.
    pub(super) fn loose(
        &self,
        volume: u64,
        volumes: &mut Volumes<'_>,
    ) -> Result<Vec<Piece>, StoreError> {
        if self.loose >= self.length {
            return Ok(Vec::new());
        }
        let file = volumes.get(volume)?;
        let size = file.size()?;
        let length = self.length.min(size).saturating_sub(self.loose);
        let bytes = file.read(self.loose, usize::try_from(length).unwrap_or(0))?;
        let end = if size < self.length {
            End::Cut
        } else {
            End::Whole
        };
        Ok(pieces(&bytes, end))
    }
}

/// The day of a moment, counted from 1970, given what to add to it to get UTC.
pub(super) fn day_of(moment: Moment, utc_offset: i64) -> u64 {
    let utc = i128::from(moment.as_nanos()) + i128::from(utc_offset);
    u64::try_from(utc.div_euclid(DAY)).unwrap_or(0)
}

impl Reach {
    /// What to add to a moment of this boot to get the day it belongs to: UTC,
    /// unless that is no day that can follow `volume`, the last one. A wall
    /// clock far ahead would begin a day that never ends, and one far behind
    /// would never end this one.
    pub(super) fn day_offset(&self, volume: u64, now: Moment, utc_offset: i64) -> i64 {
        if self.number == 0 {
            return utc_offset;
        }
        let is = day_of(now, utc_offset);
        let passed = u64::try_from(now.since(self.last).as_nanos() / DAY.unsigned_abs());
        let latest = volume.saturating_add(passed.unwrap_or(0)).saturating_add(1);
        let days = i128::from(is.clamp(volume.saturating_sub(1), latest)) - i128::from(is);
        let offset = i128::from(utc_offset) + days * DAY;
        i64::try_from(offset).unwrap_or(utc_offset)
    }
}
