//! Which segments speak of whom, so that one target's day out of a hundred
//! million calls is some dozens of segments and not seventy thousand.
//!
//! Every so many segments are a block. When its last segment is written, its
//! index goes behind it, in the same write: a directory with the times and
//! sizes of its segments, and shelves of terms, each with the segments that
//! hold it. The end of the log, which is no block yet, is read through.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::frame::Frame;
use super::head::Head;
use super::segment::{Entry, Hash};
use super::terms::{SHELVES, Sought, Term, Wanted, terms_of};
use crate::clock::Moment;
use crate::store::{Changes, Space, StoreError, ValueError, Volume, decode, encode, paired};

/// Segments of a block.
pub(super) const BLOCK: usize = 1024;
/// A term in one of so many segments is taken to be in all.
const DENSE: usize = 4;

/// Segments with their index, as the database knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Block {
    /// Where in its volume it begins.
    pub(super) at: u64,
    /// Bytes of its segments.
    pub(super) bytes: u64,
    /// The number of its first segment.
    pub(super) first: u64,
    /// How many there are.
    pub(super) count: u64,
    /// The earliest moment that any event in it speaks of.
    pub(super) begin: Moment,
    /// The latest at which one became known.
    pub(super) end: Moment,
    /// The hash of its last segment.
    pub(super) hash: Hash,
    /// Bytes of the directory, and of each shelf behind it.
    index: Vec<u32>,
}

/// A segment of a block, unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) time: Moment,
    pub(super) at: u64,
    pub(super) size: usize,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Directory {
    /// The times of the segments, each as what it adds.
    times: Vec<u64>,
    sizes: Vec<u64>,
    /// Segments that could not be read when the block was made: always read.
    unread: Vec<usize>,
}

/// The segments of a term, each as what it adds; none at all stands for all.
#[derive(Debug, Serialize, Deserialize)]
struct Posting {
    after: u32,
    slots: Vec<usize>,
}

impl Block {
    pub(super) fn key(&self, volume: u64) -> [u8; 16] {
        paired(volume, self.first)
    }

    /// Where it ends, its index included.
    pub(super) fn ends(&self) -> u64 {
        let index: u64 = self.index.iter().copied().map(u64::from).sum();
        self.at + self.bytes + index
    }

    /// Its segments in which what is wanted may be, not over before `from`.
    pub(super) fn spots(
        &self,
        volume: &Volume,
        wanted: &Wanted,
        from: Moment,
    ) -> Result<Vec<Spot>, Unreadable> {
        let directory: Directory = self.part(volume, 0)?;
        let mut chosen = vec![true; directory.times.len()];
        for alternatives in wanted {
            let held = self.holding(volume, alternatives, &directory)?;
            chosen
                .iter_mut()
                .zip(held)
                .for_each(|(chosen, held)| *chosen &= held);
        }
        let (mut time, mut at) = (0_u64, self.at);
        let frames = directory
            .times
            .iter()
            .zip(&directory.sizes)
            .map(|(by, size)| {
                time = time.saturating_add(*by);
                let spot = Spot {
                    time: Moment::from_nanos(time),
                    at,
                    size: usize::try_from(*size).unwrap_or(0),
                };
                at = at.saturating_add(*size);
                spot
            });
        let frames = frames.zip(chosen).enumerate();
        let frames = frames.filter(|(slot, (spot, chosen))| {
            *chosen && (spot.time >= from || directory.unread.contains(slot))
        });
        Ok(frames.map(|(_, (spot, _))| spot).collect())
    }

    /// Which segments hold one of these.
    fn holding(
        &self,
        volume: &Volume,
        alternatives: &[Sought],
        directory: &Directory,
    ) -> Result<Vec<bool>, Unreadable> {
        let mut held = vec![false; directory.times.len()];
        let mut mark = |slot: usize| {
            if let Some(held) = held.get_mut(slot) {
                *held = true;
            }
        };
        directory.unread.iter().copied().for_each(&mut mark);
        for Sought { shelf, from, to } in alternatives {
            let postings: Vec<Posting> = self.part(volume, 1 + usize::from(*shelf))?;
            let mut at = 0_u32;
            for Posting { after, slots } in postings {
                at = at.saturating_add(after);
                if at < *from || at > *to {
                    continue;
                }
                if slots.is_empty() {
                    (0..directory.times.len()).for_each(&mut mark);
                }
                let mut slot = 0;
                for by in slots {
                    slot += by;
                    mark(slot);
                }
            }
        }
        Ok(held)
    }

    /// The directory, or a shelf behind it.
    fn part<T: DeserializeOwned + Default>(
        &self,
        volume: &Volume,
        part: usize,
    ) -> Result<T, Unreadable> {
        let before = self
            .index
            .iter()
            .take(part)
            .copied()
            .map(u64::from)
            .sum::<u64>();
        let length = self.index.get(part).copied().unwrap_or(0);
        if length == 0 {
            return Ok(T::default());
        }
        let length = usize::try_from(length).unwrap_or(0);
        let bytes = volume.read(self.at + self.bytes + before, length)?;
        Ok(decode(&bytes)?)
    }
}

/// An index that says nothing; what it is of is read through instead.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// What the writer gathers for the block that is not complete yet.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    first: u64,
    begin: Option<Moment>,
    end: Moment,
    hash: Hash,
    bytes: u64,
    last: u64,
    times: Vec<u64>,
    sizes: Vec<u64>,
    unread: Vec<usize>,
    terms: Vec<(Term, usize)>,
}

impl Gathering {
    /// Takes in a segment with its events; none where they cannot be read.
    pub(super) fn add(&mut self, number: u64, frame: &Frame, entries: Option<&[Entry]>) {
        let slot = self.times.len();
        if slot == 0 {
            self.first = number;
        }
        self.last = number;
        self.times.push(frame.time.max(self.end).as_nanos());
        self.sizes.push(frame.size());
        self.bytes += frame.size();
        self.end = self.end.max(frame.time);
        self.hash = frame.hash();
        let Some(entries) = entries else {
            self.begin = Some(Moment::ZERO);
            return self.unread.push(slot);
        };
        let begin = entries.iter().map(|entry| entry.event.begin()).min();
        self.begin = self.begin.into_iter().chain(begin).min();
        let terms = entries.iter().flat_map(|entry| terms_of(&entry.event));
        let mut own: Vec<_> = terms.collect();
        own.sort_unstable();
        own.dedup();
        self.terms.extend(own.into_iter().map(|term| (term, slot)));
    }

    /// Takes in segments up to `head` whose bounds are lost, `first` their first.
    pub(super) fn add_torn(&mut self, first: u64, head: Head, size: u64) {
        let slot = self.times.len();
        if slot == 0 {
            self.first = first;
        }
        self.last = head.number;
        self.hash = head.hash;
        self.times.push(self.end.as_nanos());
        self.sizes.push(size);
        self.bytes += size;
        self.begin = Some(Moment::ZERO);
        self.unread.push(slot);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.times.len() >= BLOCK
    }

    /// Writes the index behind the segments. Returns where the next block
    /// begins; nothing where there is no segment.
    pub(super) fn finish(&mut self, volume: u64, at: u64, changes: &mut Changes) -> Option<u64> {
        let gathered = std::mem::take(self);
        if gathered.times.is_empty() {
            return None;
        }
        let index = gathered.index();
        let block = Block {
            at,
            bytes: gathered.bytes,
            first: gathered.first,
            count: (gathered.last + 1).saturating_sub(gathered.first),
            begin: gathered.begin.unwrap_or(Moment::ZERO),
            end: gathered.end,
            hash: gathered.hash,
            index: index
                .iter()
                .map(|part| u32::try_from(part.len()).unwrap_or(0))
                .collect(),
        };
        changes.append(volume, at + block.bytes, index.concat());
        changes.put(Space::Block, &block.key(volume), &block);
        Some(block.ends())
    }

    /// The directory, then every shelf.
    fn index(&self) -> Vec<Vec<u8>> {
        let directory = Directory {
            times: steps(&self.times),
            sizes: self.sizes.clone(),
            unread: self.unread.clone(),
        };
        let mut terms = self.terms.clone();
        terms.sort_unstable();
        let mut index = vec![encode(&directory).unwrap_or_default()];
        index.resize(1 + usize::from(SHELVES), Vec::new());
        for shelf in terms.chunk_by(|(a, _), (b, _)| a.shelf == b.shelf) {
            let at = shelf.first().map_or(0, |(term, _)| usize::from(term.shelf));
            if let Some(part) = index.get_mut(1 + at) {
                *part = encode(&self.postings(shelf)).unwrap_or_default();
            }
        }
        index
    }

    fn postings(&self, shelf: &[(Term, usize)]) -> Vec<Posting> {
        let mut last = 0;
        let postings = shelf.chunk_by(|(a, _), (b, _)| a == b).map(|found| {
            let mark = found.first().map_or(last, |(term, _)| term.mark);
            let after = mark - last;
            last = mark;
            let slots: Vec<usize> = found.iter().map(|(_, slot)| *slot).collect();
            let is_dense = slots.len() * DENSE > self.times.len();
            let slots = if is_dense { Vec::new() } else { steps(&slots) };
            Posting { after, slots }
        });
        postings.collect()
    }
}

/// Rising numbers, each as what it adds to the one before.
fn steps<N: Copy + Default + std::ops::Sub<Output = N>>(numbers: &[N]) -> Vec<N> {
    let before = std::iter::once(N::default()).chain(numbers.iter().copied());
    numbers
        .iter()
        .zip(before)
        .map(|(is, was)| *is - was)
        .collect()
}
