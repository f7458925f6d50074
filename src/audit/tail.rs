//! The end of the log: what is closed and in no segment yet, and what the
//! next segment continues.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::Intent;
use super::frame::{Frame, Piece};
use super::frames::{blocks, volumes};
use super::head::{Head, HeadFile};
use super::index::Gathering;
use super::names::{Lexicon, Names};
use super::reach::{Reach, day_of};
use super::retention::pruned;
use super::segment::{Entry, Place, Segment, weight};
use crate::clock::Moment;
use crate::store::{Changes, Space, Store, StoreError, decode, encode, last_number, numbered};

/// What the store holds of a call or an event that is in no segment yet.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Open {
    /// A call under way.
    Under {
        /// Nanoseconds from decision time to the wall clock.
        wall_offset: i64,
        intent: Intent,
    },
    /// Something that is over.
    Over {
        /// Nanoseconds from decision time to the wall clock.
        wall_offset: i64,
        entry: Entry,
    },
}

/// A call that was under way when its gate died.
#[derive(Debug, Clone)]
pub struct Interrupted {
    /// Its number in the log.
    pub number: u64,
    /// What was granted.
    pub intent: Intent,
    /// Nanoseconds from decision time to the wall clock of its grant.
    pub(super) wall_offset: i64,
}

/// Events of a segment, and about how many bytes of them: as much as is read
/// for one event.
const SEGMENT_EVENTS: usize = 48;
const SEGMENT_BYTES: usize = 4096;
const SEGMENT_SPAN: Duration = Duration::from_mins(1);
/// While calls end faster than this, several segments are written together,
/// since each writing waits for the disk.
const BETWEEN_WRITES: Duration = Duration::from_millis(50);
/// What waits for that, at most.
const MOST_CLOSED: usize = 1024;
/// Steps of the wall clock that are remembered for the calls they fell into.
const MOST_STEPS: usize = 64;

#[derive(Debug)]
pub(super) struct Tail {
    closed: Vec<Entry>,
    bytes: usize,
    since: Moment,
    names: Names,
    volume: u64,
    reach: Reach,
    gathering: Gathering,
    /// When segments were written last.
    written: Moment,
    wall_offset: i64,
    day_offset: i64,
    steps: Vec<Stepped>,
    head: HeadFile,
    head_written: Arc<Mutex<Moment>>,
}

/// What to add to decision time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    /// To get what the wall clock shows.
    pub(super) wall_offset: i64,
    /// To get UTC.
    pub(super) utc_offset: i64,
}

#[derive(Clone, Copy, Debug)]
struct Stepped {
    at: Moment,
    nanos: i64,
}

/// What was found in no segment when a log was opened.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) interrupted: Vec<Interrupted>,
    /// The greatest number among them and what is closed.
    pub(super) greatest: u64,
    /// The last segment that the database knew, where it is not there.
    pub(super) lost: Option<Head>,
}

impl Tail {
    /// The tail as the store has it; the wall clock's offset counts where
    /// nothing is on record yet.
    pub(super) fn load(
        store: &Store,
        now: Moment,
        clock: Offsets,
    ) -> Result<(Self, Found), StoreError> {
        let (volume, reach) = Reach::latest(store)?.unwrap_or_default();
        let mut found = Found::default();
        let wall_offset = if reach.number == 0 {
            clock.wall_offset
        } else {
            reach.wall_offset
        };
        let mut tail = Self {
            closed: Vec::new(),
            bytes: 0,
            since: now,
            names: Names::load(store, reach.names_from)?,
            volume,
            wall_offset,
            reach,
            gathering: Gathering::default(),
            written: Moment::ZERO,
            day_offset: reach.day_offset(volume, now, clock.utc_offset),
            steps: Vec::new(),
            head: HeadFile::of(store),
            head_written: Arc::default(),
        };
        found.lost = tail.gather(store)?;
        for open in store.scan::<Open>(Space::Open, ..) {
            let (key, open) = open?;
            let number = last_number(&key);
            found.greatest = found.greatest.max(number);
            match open {
                Open::Under {
                    wall_offset,
                    intent,
                } => {
                    found.interrupted.push(Interrupted {
                        number,
                        intent,
                        wall_offset,
                    });
                }
                Open::Over { wall_offset, entry } => {
                    tail.wall_offset = wall_offset;
                    tail.bytes += weight(&entry.event);
                    tail.closed.push(entry);
                }
            }
        }
        tail.closed
            .sort_by_key(|entry| (entry.event.at(), entry.number));
        Ok((tail, found))
    }

    /// Takes in the segments that are in no block yet. Where the file ends
    /// before the database says, the log goes on behind what there is.
    fn gather(&mut self, store: &Store) -> Result<Option<Head>, StoreError> {
        let mut volumes = store.volumes();
        let was = self.reach.head();
        let loose = self.reach.loose(self.volume, &mut volumes);
        let loose = loose.or_else(|error| match error {
            StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Vec::new())
            }
            other => Err(other),
        })?;
        if self.reach.loose >= self.reach.length {
            return Ok(None);
        }
        let mut head = self.before_loose(store)?;
        let mut length = self.reach.loose;
        let mut lexicon = Lexicon::of(store);
        for piece in &loose {
            let frame = match piece {
                Piece::Whole(frame) => frame,
                Piece::Torn { size, before } => {
                    let first = head.number + 1;
                    head = before.map_or(was, |before| Head {
                        number: before.saturating_sub(1),
                        ..head
                    });
                    self.gathering.add_torn(first, head, *size);
                    length += size;
                    continue;
                }
            };
            head = Head {
                number: head.number + 1,
                hash: frame.hash(),
            };
            let entries = decode::<Segment>(&frame.bytes).ok();
            let entries = entries.and_then(|segment| segment.unpack(&mut lexicon).ok());
            self.gathering.add(head.number, frame, entries.as_deref());
            length += frame.size();
        }
        if head == was {
            return Ok(None);
        }
        self.reach = Reach {
            number: head.number,
            hash: head.hash,
            length,
            ..self.reach
        };
        Ok(Some(was))
    }

    /// The head of the chain in front of what is in no block yet.
    fn before_loose(&self, store: &Store) -> Result<Head, StoreError> {
        if let Some(block) = blocks(store, self.volume).last().transpose()? {
            return Ok(Head {
                number: block.first + block.count - 1,
                hash: block.hash,
            });
        }
        for entry in volumes(store).collect::<Vec<_>>().into_iter().rev() {
            let (volume, reach) = entry?;
            if volume < self.volume {
                return Ok(reach.head());
            }
        }
        Ok(pruned(store)?.map_or_else(Head::default, |pruned| pruned.head))
    }

    /// The last segment.
    pub(super) fn head(&self) -> Head {
        self.reach.head()
    }

    /// The volume that is written to, and how far it reaches.
    pub(super) fn end(&self) -> (u64, Reach) {
        (self.volume, self.reach)
    }

    pub(super) fn head_file(&self) -> &HeadFile {
        &self.head
    }

    /// Nanoseconds from decision time to the wall clock, as of the last look.
    pub(super) fn wall_offset(&self) -> i64 {
        self.wall_offset
    }

    /// Takes in that the wall clock was set. A segment has one offset, so
    /// what is closed goes into one of its own.
    pub(super) fn step(&mut self, nanos: i64, at: Moment, changes: &mut Changes) {
        self.pack(changes);
        self.wall_offset = self.wall_offset.saturating_add(nanos);
        if self.steps.len() >= MOST_STEPS {
            self.steps.remove(0);
        }
        self.steps.push(Stepped { at, nanos });
    }

    /// What to add to the offset of now for the one of `then`.
    pub(super) fn stepped_since(&self, then: Moment) -> i64 {
        let later = self.steps.iter().filter(|step| step.at > then);
        later.fold(0_i64, |sum, step| sum.saturating_sub(step.nanos))
    }

    pub(super) fn push(&mut self, entry: Entry, now: Moment, changes: &mut Changes) {
        let number = entry.number;
        if self.closed.is_empty() {
            self.since = now;
        }
        self.bytes += weight(&entry.event);
        let open = Open::Over {
            wall_offset: self.wall_offset,
            entry,
        };
        changes.put(Space::Open, &numbered(number), &open);
        if let Open::Over { entry, .. } = open {
            self.closed.push(entry);
        }
        let is_full = |events, bytes| bytes >= SEGMENT_BYTES || events >= SEGMENT_EVENTS;
        let is_time = now.since(self.written) >= BETWEEN_WRITES;
        if is_full(self.closed.len(), self.bytes) && (is_time || self.closed.len() >= MOST_CLOSED) {
            self.pack_while(is_full, changes);
            self.written = now;
        }
    }

    /// Packs what has been closed for a minute, so that a segment spans little
    /// more, and a query for an hour reads little more.
    pub(super) fn pack_old(&mut self, now: Moment, changes: &mut Changes) {
        if now.since(self.since) >= SEGMENT_SPAN {
            self.pack(changes);
        }
    }

    /// Packs all that is closed.
    pub(super) fn pack(&mut self, changes: &mut Changes) {
        self.pack_while(|_, _| true, changes);
    }

    /// Packs segment by segment for as long as what is left, events and bytes
    /// of them, is worth one.
    fn pack_while(&mut self, is_worth: impl Fn(usize, usize) -> bool, changes: &mut Changes) {
        let closed = std::mem::take(&mut self.closed);
        let mut rest = &*closed;
        while !rest.is_empty() && is_worth(rest.len(), self.bytes) {
            let mut bytes = 0;
            let fitting = rest.iter().take(SEGMENT_EVENTS).take_while(|entry| {
                let is_room = bytes < SEGMENT_BYTES;
                bytes += if is_room { weight(&entry.event) } else { 0 };
                is_room
            });
            let count = fitting.count();
            let (entries, behind) = rest.split_at_checked(count.max(1)).unwrap_or((rest, &[]));
            rest = behind;
            self.bytes = self.bytes.saturating_sub(bytes);
            self.pack_one(entries, changes);
        }
        if rest.len() < closed.len() {
            changes.put(Space::Volume, &numbered(self.volume), &self.reach);
            self.write_head(changes);
        }
        self.closed = rest.to_vec();
    }

    fn pack_one(&mut self, entries: &[Entry], changes: &mut Changes) {
        let last = entries.iter().map(|entry| entry.event.at()).max();
        let time = self.reach.last.max(last.unwrap_or(Moment::ZERO));
        let day = day_of(time, self.day_offset);
        if day > self.volume {
            self.turn_over(day, changes);
        }
        let place = Place {
            number: self.reach.number + 1,
            previous: self.reach.hash,
            wall_offset: self.wall_offset,
        };
        let segment = Segment::pack(place, entries, &mut self.names, changes);
        let bytes = match encode(&segment) {
            Ok(bytes) => bytes,
            Err(error) => return tracing::error!(%error, "a segment could not be written"),
        };
        let frame = Frame { time, bytes };
        changes.append(self.volume, self.reach.length, frame.write());
        self.gathering.add(place.number, &frame, Some(entries));
        self.reach = Reach {
            length: self.reach.length + frame.size(),
            number: place.number,
            hash: frame.hash(),
            last: time,
            wall_offset: self.wall_offset,
            ..self.reach
        };
        if self.gathering.is_complete() {
            self.finish_block(changes);
        }
        for entry in entries {
            changes.delete(Space::Open, &numbered(entry.number));
        }
    }

    /// Begins the volume of another day.
    fn turn_over(&mut self, day: u64, changes: &mut Changes) {
        self.finish_block(changes);
        if self.reach.number > 0 {
            changes.put(Space::Volume, &numbered(self.volume), &self.reach);
        }
        self.volume = day;
        self.reach = Reach {
            length: 0,
            loose: 0,
            names_from: self.names.begin_anew(),
            ..self.reach
        };
    }

    fn finish_block(&mut self, changes: &mut Changes) {
        let at = self.reach.loose;
        if let Some(end) = self.gathering.finish(self.volume, at, changes) {
            self.reach.length = end;
            self.reach.loose = end;
        }
    }

    fn write_head(&self, changes: &mut Changes) {
        let (file, head, last) = (self.head.clone(), self.head(), self.reach.last);
        let written = self.head_written.clone();
        changes.then(move || {
            // It may lag, so once a second is enough.
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            if last.since(*written) >= Duration::from_secs(1) {
                *written = last;
                file.write(head);
            }
        });
    }
}
