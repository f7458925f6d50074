//! A segment as it lies in its volume: how long it is, its time, its bytes.

use super::segment::{Hash, Header, Segment};
use crate::clock::Moment;
use crate::store::decode_all;

const FRONT: usize = 12;
/// Damaged segments in a row, at most, whose bounds are still believed.
const HOPS: usize = 16;

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

    /// The frame that is all of these bytes.
    pub(super) fn exactly(bytes: &[u8]) -> Option<Self> {
        let Front {
            time,
            segment,
            behind,
        } = Front::read(bytes)?;
        behind.is_empty().then(|| Self {
            time,
            bytes: segment.to_vec(),
        })
    }
}

/// The frame at the front of some bytes, where there is a whole one.
#[derive(Clone, Copy, Debug)]
struct Front<'a> {
    time: Moment,
    segment: &'a [u8],
    behind: &'a [u8],
}

impl<'a> Front<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (time, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (segment, behind) = rest.split_at_checked(length)?;
        Some(Self {
            time: Moment::from_nanos(u64::from_be_bytes(*time)),
            segment,
            behind,
        })
    }

    fn number(&self) -> Option<u64> {
        let header = Header::read(self.segment).ok()?;
        Some(header.place.number)
    }

    /// True where its length is right.
    fn is_bounded(&self) -> bool {
        self.is_followed() || decode_all::<Segment>(self.segment).is_ok()
    }

    /// True where what follows are frames up to one that reads as a segment,
    /// or to the end: a length that is damaged leads elsewhere.
    fn is_followed(&self) -> bool {
        let mut behind = self.behind;
        for _ in 0..HOPS {
            if behind.is_empty() {
                return true;
            }
            let Some(next) = Self::read(behind) else {
                return false;
            };
            if next.number().is_some() {
                return true;
            }
            behind = next.behind;
        }
        false
    }
}

/// Bytes of a volume that were written as segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A segment, which may be damaged within.
    Whole(Frame),
    /// Segments whose bounds are lost.
    Torn {
        /// Bytes of them.
        size: u64,
        /// The number of the segment behind them; none at the end.
        before: Option<u64>,
    },
}

/// What is written after a torn piece is found by its own front. What is cut
/// off at the end is no piece.
pub(super) fn pieces(bytes: &[u8], end: End) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let front = Front::read(rest);
        if let Some(front) = front.filter(Front::is_bounded) {
            pieces.push(Piece::Whole(Frame {
                time: front.time,
                bytes: front.segment.to_vec(),
            }));
            rest = front.behind;
            continue;
        }
        let found = (1..rest.len()).find_map(|at| {
            let front = Front::read(rest.get(at..)?)?;
            let number = front.number()?;
            front.is_bounded().then_some((at, number))
        });
        let (size, before) = match found {
            Some((at, number)) => (at, Some(number)),
            None if end == End::Cut => break,
            None => (rest.len(), None),
        };
        pieces.push(Piece::Torn {
            size: size as u64,
            before,
        });
        rest = rest.get(size..).unwrap_or_default();
    }
    pieces
}

/// Whether all that was written is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Cut,
}
