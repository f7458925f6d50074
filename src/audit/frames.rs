//! The segments in their order, as they stand at one instant: of each block
//! those that may hold what is wanted, then those that are in no block yet.

use std::collections::VecDeque;

use super::frame::{End, Frame, Piece, pieces};
use super::index::{Block, Spot};
use super::reach::Reach;
use super::terms::Wanted;
use crate::clock::Moment;
use crate::store::{Space, Store, StoreError, ValueError, Volumes, numbered};

/// The times of interest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Not over before.
    pub(super) from: Moment,
    /// Begun before.
    pub(super) to: Moment,
}

pub(super) struct Frames<'a> {
    store: &'a Store,
    volumes: Volumes<'a>,
    wanted: Wanted,
    span: Span,
    blocks: VecDeque<(u64, Block)>,
    latest: Option<(u64, Reach)>,
    spots: VecDeque<(u64, Spot)>,
    ready: VecDeque<Result<(u64, Frame), StoreError>>,
}

impl<'a> Frames<'a> {
    /// The segments as of now.
    pub(super) fn of(store: &'a Store, wanted: Wanted, span: Span) -> Result<Self, StoreError> {
        let latest = Reach::latest(store)?;
        let mut blocks = VecDeque::new();
        for entry in store.scan::<Block>(Space::Block, ..) {
            let (key, block) = entry?;
            let volume = key
                .first_chunk::<8>()
                .map_or(0, |bytes| u64::from_be_bytes(*bytes));
            // What was completed since the look at the end is still loose in it.
            let is_before = latest.as_ref().is_some_and(|(last, reach)| {
                volume < *last || (volume == *last && block.at < reach.loose)
            });
            if is_before && block.end >= span.from && block.begin < span.to {
                blocks.push_back((volume, block));
            }
        }
        Ok(Self {
            store,
            volumes: store.volumes(),
            wanted,
            span,
            blocks,
            latest,
            spots: VecDeque::new(),
            ready: VecDeque::new(),
        })
    }

    /// True when a volume is gone from the record on purpose.
    pub(super) fn is_pruned(&self, volume: u64) -> Result<bool, StoreError> {
        Ok(Reach::of(self.store, volume)?.is_none())
    }

    fn refill(&mut self) -> Option<Result<(), StoreError>> {
        if let Some((volume, spot)) = self.spots.pop_front() {
            return Some(self.read(volume, spot));
        }
        if let Some((volume, block)) = self.blocks.pop_front() {
            return Some(self.open(volume, &block));
        }
        let (volume, reach) = self.latest.take()?;
        let loose = reach.loose(volume, &mut self.volumes);
        let loose = self.unless_pruned(volume, loose);
        Some(loose.map(|loose| self.take(volume, loose.unwrap_or_default())))
    }

    fn take(&mut self, volume: u64, pieces: Vec<Piece>) {
        let times = pieces.iter().filter_map(|piece| match piece {
            Piece::Whole(frame) => Some(frame.time),
            Piece::Torn { .. } => None,
        });
        // A time that is damaged hides nothing.
        let is_ordered = times.is_sorted();
        for piece in pieces {
            match piece {
                Piece::Whole(frame) if is_ordered && frame.time < self.span.from => {}
                Piece::Whole(frame) => self.ready.push_back(Ok((volume, frame))),
                Piece::Torn { .. } => self.ready.push_back(Err(self.torn())),
            }
        }
    }

    /// Takes bytes of which it is known that they are one segment.
    fn take_exactly(&mut self, volume: u64, spot: Spot, bytes: &[u8]) {
        let frame = Frame::exactly(bytes).ok_or_else(|| self.torn());
        self.ready.push_back(frame.map(|frame| {
            let time = spot.time;
            (volume, Frame { time, ..frame })
        }));
    }

    fn torn(&self) -> StoreError {
        StoreError::Value {
            folder: self.store.folder().to_owned(),
            error: ValueError::Damaged,
        }
    }

    fn open(&mut self, volume: u64, block: &Block) -> Result<(), StoreError> {
        let file = self.volumes.get(volume).map(|_| ());
        let Some(()) = self.unless_pruned(volume, file)? else {
            return Ok(());
        };
        let file = self.volumes.get(volume)?;
        // An index that cannot be read hides nothing.
        let spots = block.spots(file, &self.wanted, self.span.from).ok();
        if let Some(spots) = spots.as_ref().filter(|_| !self.wanted.is_empty()) {
            let spots = spots.iter().map(|spot| (volume, *spot));
            self.spots.extend(spots);
            return Ok(());
        }
        let bytes = file.read(block.at, usize::try_from(block.bytes).unwrap_or(0))?;
        let Some(spots) = spots else {
            self.take(volume, pieces(&bytes, End::Whole));
            return Ok(());
        };
        for spot in spots {
            let from = usize::try_from(spot.at.saturating_sub(block.at)).unwrap_or(usize::MAX);
            let own = bytes.get(from..from.saturating_add(spot.size));
            self.take_exactly(volume, spot, own.unwrap_or_default());
        }
        Ok(())
    }

    fn read(&mut self, volume: u64, spot: Spot) -> Result<(), StoreError> {
        let read = self
            .volumes
            .get(volume)
            .and_then(|file| file.read(spot.at, spot.size));
        if let Some(bytes) = self.unless_pruned(volume, read)? {
            self.take_exactly(volume, spot, &bytes);
        }
        Ok(())
    }

    /// What was pruned since the reading began is passed over.
    fn unless_pruned<T>(
        &self,
        volume: u64,
        read: Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(_) if self.is_pruned(volume)? => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<(u64, Frame), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if let Err(error) = self.refill()? {
                return Some(Err(error));
            }
        }
    }
}

/// Every volume, with how far it reaches.
pub(super) fn volumes(store: &Store) -> impl Iterator<Item = Result<(u64, Reach), StoreError>> {
    store.scan::<Reach>(Space::Volume, ..).map(|entry| {
        let (key, reach) = entry?;
        Ok((crate::store::last_number(&key), reach))
    })
}

/// The blocks of a volume.
pub(super) fn blocks(
    store: &Store,
    volume: u64,
) -> impl Iterator<Item = Result<Block, StoreError>> {
    let range = numbered(volume).to_vec()..numbered(volume + 1).to_vec();
    store
        .scan::<Block>(Space::Block, range)
        .map(|entry| entry.map(|(_, block)| block))
}
