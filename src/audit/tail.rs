//! The end of the log: what is closed and in no segment yet, and what the
//! next segment continues.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::{Event, Intent};
use super::head::{Head, HeadFile};
use super::names::Names;
use super::segment::{Entry, Hash, Header, Place, Segment, hash_of};
use crate::clock::{Moment, nanos};
use crate::store::{Changes, Space, Store, StoreError, encode, last_number, numbered, paired};

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

/// Events of a segment, and about how many bytes of them: larger values make
/// the database hungry.
const SEGMENT_EVENTS: usize = 48;
const SEGMENT_BYTES: usize = 4096;
const SEGMENT_SPAN: Duration = Duration::from_mins(1);
/// A packed call, without the texts it spells out.
const CALL_BYTES: usize = 60;
/// The longest time that a segment spans, so that a query knows how far to look.
pub(super) const LONGEST: &[u8] = b"longest";
/// Steps of the wall clock that are remembered for the calls they fell into.
const MOST_STEPS: usize = 64;

#[derive(Debug)]
pub(super) struct Tail {
    closed: Vec<Entry>,
    bytes: usize,
    since: Moment,
    names: Names,
    number: u64,
    hash: Hash,
    /// The time in the key of the last segment: keys rise with numbers, even
    /// where one segment's events are all older than the last of another.
    last: Moment,
    longest: u64,
    wall_offset: i64,
    steps: Vec<Stepped>,
    head: HeadFile,
    head_written: Arc<Mutex<Moment>>,
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
}

impl Tail {
    /// The tail as the store has it; `wall_offset` counts where nothing is on
    /// record yet.
    pub(super) fn load(
        store: &Store,
        now: Moment,
        wall_offset: i64,
    ) -> Result<(Self, Found), StoreError> {
        let mut tail = Self {
            closed: Vec::new(),
            bytes: 0,
            since: now,
            names: Names::load(store)?,
            number: 0,
            hash: Hash::default(),
            last: Moment::ZERO,
            longest: store.get(Space::Meta, LONGEST)?.unwrap_or(0),
            wall_offset,
            steps: Vec::new(),
            head: HeadFile::of(store),
            head_written: Arc::default(),
        };
        if let Some((key, bytes)) = last_segment(store)? {
            tail.number = last_number(&key);
            tail.hash = hash_of(&bytes);
            tail.last = time_of(&key);
            if let Ok(header) = Header::read(&bytes) {
                tail.wall_offset = header.place.wall_offset;
            }
        }
        let mut found = Found::default();
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

    /// The last segment.
    pub(super) fn head(&self) -> Head {
        Head {
            number: self.number,
            hash: self.hash,
        }
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
        if self.bytes >= SEGMENT_BYTES || self.closed.len() >= SEGMENT_EVENTS {
            self.pack(changes);
        }
    }

    /// Packs what has been closed for a minute, so that a segment spans little
    /// more, and a query for an hour reads little more.
    pub(super) fn pack_old(&mut self, now: Moment, changes: &mut Changes) {
        if now.since(self.since) >= SEGMENT_SPAN {
            self.pack(changes);
        }
    }

    pub(super) fn pack(&mut self, changes: &mut Changes) {
        let Some(last) = self.closed.iter().map(|entry| entry.event.at()).max() else {
            return;
        };
        let number = self.number + 1;
        let place = Place {
            number,
            previous: self.hash,
            wall_offset: self.wall_offset,
        };
        let segment = Segment::pack(place, &self.closed, &mut self.names, changes);
        let bytes = match encode(&segment) {
            Ok(bytes) => bytes,
            Err(error) => return tracing::error!(%error, "a segment could not be written"),
        };
        self.hash = hash_of(&bytes);
        self.number = number;
        self.last = self.last.max(last);
        self.bytes = 0;
        changes.put_bytes(Space::Segment, &paired(self.last.as_nanos(), number), bytes);
        for entry in self.closed.drain(..) {
            changes.delete(Space::Open, &numbered(entry.number));
        }
        let spanned = nanos(self.last.since(segment.header.begin));
        if spanned > self.longest {
            // By doubling, so that it is written a few dozen times in all.
            self.longest = spanned.checked_next_power_of_two().unwrap_or(u64::MAX);
            changes.put(Space::Meta, LONGEST, &self.longest);
        }
        self.write_head(changes);
    }

    fn write_head(&self, changes: &mut Changes) {
        let (file, head, last) = (self.head.clone(), self.head(), self.last);
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

/// About how many bytes an event comes to in a segment.
fn weight(event: &Event) -> usize {
    match event {
        Event::Call(call) => CALL_BYTES + call.intent.path.len() + call.intent.step.step.len(),
        other => encode(other).map_or(0, |bytes| bytes.len()),
    }
}

type Stored = (Vec<u8>, sled::IVec);

fn last_segment(store: &Store) -> Result<Option<Stored>, StoreError> {
    let Some(key) = store.last_key(Space::Segment)? else {
        return Ok(None);
    };
    store.scan_bytes(Space::Segment, key..).next().transpose()
}

/// The time in the key of a segment.
pub(super) fn time_of(key: &[u8]) -> Moment {
    let time = key
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes));
    Moment::from_nanos(time)
}
