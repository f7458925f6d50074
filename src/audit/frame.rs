//! A segment as it lies in its volume: how long it is, its time, its bytes.

use super::segment::Hash;
use crate::clock::Moment;

const FRONT: usize = 12;

/// A segment with its place in a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The latest moment at which one of its events became known, and never
    /// before that of the segment before.
    pub(super) time: Moment,
    pub(super) bytes: Vec<u8>,
}

impl Frame {
    /// What it adds to its volume.
    pub(super) fn size(&self) -> u64 {
        (FRONT + self.bytes.len()) as u64
    }

    pub(super) fn hash(&self) -> Hash {
        super::segment::hash_of(&self.bytes)
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let mut written = Vec::with_capacity(FRONT + self.bytes.len());
        written.extend(length.to_be_bytes());
        written.extend(self.time.as_nanos().to_be_bytes());
        written.extend(&self.bytes);
        written
    }

    /// The frame at the front, and what follows it; none where there is no
    /// whole one.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (time, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (bytes, rest) = rest.split_at_checked(length)?;
        let frame = Self {
            time: Moment::from_nanos(u64::from_be_bytes(*time)),
            bytes: bytes.to_vec(),
        };
        Some((frame, rest))
    }
}
