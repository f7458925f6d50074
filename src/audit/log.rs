//! Appending: intents before a call leaves, settlements when it has ended,
//! events beside them, packed into segments as they close.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::count::{Counts, Tick};
use super::event::{Call, Deferred, Event, Intent, Refused, Settlement};
use super::head::{Head, HeadFile};
use super::names::Names;
use super::segment::{Hash, Numbered, Segment};
use crate::clock::{Clock, Moment, nanos, wall_offset};
use crate::outcome::End;
use crate::store::{
    Changes, Durable, Space, Store, StoreError, encode, last_number, numbered, paired,
};

/// What the store holds of a call or an event that is in no segment yet.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "lives for one encoding")]
pub(super) enum Entry {
    /// A call under way.
    Under(Intent),
    /// Something that is over.
    Over(Event),
}

/// A call that was under way when its gate died.
#[derive(Debug, Clone)]
pub struct Interrupted {
    /// Its number in the log.
    pub number: u64,
    /// What was granted.
    pub intent: Intent,
}

/// Events of a segment; with calls of some 60 bytes that is about 3 KB.
const SEGMENT_EVENTS: usize = 48;
const SEGMENT_SPAN: u64 = 60_000_000_000;
/// A difference to the wall clock by more than this is a step; less is drift.
const STEP: u64 = 500_000_000;
const WALL: &[u8] = b"wall";
/// The longest time a call took, so that a query knows how far to look.
pub(super) const LONGEST: &[u8] = b"longest";

/// The log of one store.
#[derive(Debug)]
pub struct Log {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    gate: u64,
    next: AtomicU64,
    tail: Mutex<Tail>,
}

#[derive(Debug)]
struct Tail {
    closed: Vec<Numbered>,
    since: Moment,
    names: Names,
    number: u64,
    hash: Hash,
    wall_offset: i64,
    longest: u64,
    counts: Counts,
    head: HeadFile,
    head_written: Arc<Mutex<Moment>>,
}

impl Log {
    /// Opens the log; the calls that were under way are the caller's to
    /// settle, before anything is granted.
    ///
    /// # Errors
    /// When the record is damaged.
    pub fn open(
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Vec<Interrupted>), StoreError> {
        let mut interrupted = Vec::new();
        let mut closed = Vec::new();
        let mut gate = 0;
        for entry in store.scan::<Entry>(Space::Open, ..) {
            let (key, entry) = entry?;
            let number = last_number(&key);
            match entry {
                Entry::Under(intent) => interrupted.push(Interrupted { number, intent }),
                Entry::Over(event) => closed.push(Numbered { number, event }),
            }
        }
        let reserved: Option<(u64, u64)> = store.get(Space::Meta, SEQUENCE)?;
        let (mut next, last_gate) = reserved.unwrap_or((1, 0));
        let known = interrupted
            .iter()
            .map(|call| call.number)
            .chain(closed.iter().map(|entry| entry.number));
        next = next.max(known.max().unwrap_or(0) + 1);
        gate += last_gate + 1;
        let head = HeadFile::of(&store);
        let last = store.last_key(Space::Segment)?;
        let last = last
            .map(|key| store.scan_bytes(Space::Segment, key..).next().transpose())
            .transpose()?
            .flatten();
        let (number, hash) = last.map_or((0, [0; 32]), |(key, bytes)| {
            (last_number(&key), hash_of(&bytes))
        });
        let now = clock.now();
        let offset = wall_offset(&*clock);
        let tail = Tail {
            since: closed
                .first()
                .map_or(now, |entry: &Numbered| entry.event.at()),
            closed,
            names: Names::load(&store)?,
            number,
            hash,
            wall_offset: store.get(Space::Meta, WALL)?.unwrap_or(offset),
            longest: store.get(Space::Meta, LONGEST)?.unwrap_or(0),
            counts: Counts::default(),
            head_written: Arc::default(),
            head: head.clone(),
        };
        let log = Self {
            store,
            clock,
            gate,
            next: AtomicU64::new(next),
            tail: Mutex::new(tail),
        };
        log.reserve(next);
        if let Some(expected) = head.read()
            && expected.number > number
        {
            log.note(Event::Truncated {
                expected: expected.number,
                found: number,
                at: now,
            })
            .detach();
        }
        Ok((log, interrupted))
    }

    /// Which run of a gate this is, counted in its store.
    #[must_use]
    pub fn gate(&self) -> u64 {
        self.gate
    }

    /// The store beneath.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Numbers are reserved in blocks, so that none is used twice even if
    /// every trace of its use was packed and pruned.
    fn reserve(&self, from: u64) {
        let mut changes = Changes::default();
        changes.put(Space::Meta, SEQUENCE, &(from + BLOCK, self.gate));
        self.store.write(changes).detach();
    }

    fn number(&self) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(BLOCK / 2) {
            self.reserve(number);
        }
        number
    }

    /// Puts a call on record before it may leave. Returns its number, and
    /// when the record is durable.
    pub fn begin(&self, intent: Intent) -> (u64, Durable) {
        let number = self.number();
        let mut changes = Changes::default();
        changes.put(Space::Open, &numbered(number), &Entry::Under(intent));
        (number, self.store.write(changes))
    }

    /// Puts the end of a call on record, together with other changes. What
    /// `also` adds is read in the order of the log: of two ends, the later
    /// one's state is the one that stays.
    pub fn finish(&self, number: u64, call: Call, also: impl FnOnce(&mut Changes)) -> Durable {
        self.append(number, Event::Call(call), also)
    }

    /// Settles a call whose gate died.
    pub fn interrupt(
        &self,
        call: Interrupted,
        now: Moment,
        also: impl FnOnce(&mut Changes),
    ) -> Durable {
        let settlement = Settlement {
            departed: None,
            ended: now,
            end: End::Interrupted,
            status: None,
            bytes: 0,
            peer: None,
            error: Some("the gate was killed while this call was under way".into()),
        };
        self.finish(
            call.number,
            Call {
                intent: call.intent,
                settlement,
            },
            also,
        )
    }

    /// Puts an event on record.
    pub fn note(&self, event: Event) -> Durable {
        self.note_with(event, |_| {})
    }

    /// Puts an event on record, together with other changes, in the order of
    /// the log.
    pub fn note_with(&self, event: Event, also: impl FnOnce(&mut Changes)) -> Durable {
        self.append(self.number(), event, also)
    }

    /// Counts a deferral: the first of a kind is put on record at once, the
    /// rest as a number when the minute is over.
    pub fn defer(&self, deferred: Deferred) {
        let mut tail = self.lock();
        let tick = tail.counts.defer(deferred);
        self.count(&mut tail, tick);
    }

    /// Counts a refusal in the same way.
    pub fn refuse(&self, refused: Refused) {
        let mut tail = self.lock();
        let tick = tail.counts.refuse(refused);
        self.count(&mut tail, tick);
    }

    fn count(&self, tail: &mut Tail, tick: Tick) {
        for event in tick.over.into_iter().chain(tick.first) {
            self.append_to(tail, self.number(), event, |_| {}).detach();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, number: u64, event: Event, also: impl FnOnce(&mut Changes)) -> Durable {
        let mut tail = self.lock();
        self.append_to(&mut tail, number, event, also)
    }

    /// Writes happen under the tail's lock, so that the order on disk is the
    /// order of the log.
    fn append_to(
        &self,
        tail: &mut Tail,
        number: u64,
        event: Event,
        also: impl FnOnce(&mut Changes),
    ) -> Durable {
        let mut changes = Changes::default();
        also(&mut changes);
        self.notice_step(tail, &mut changes);
        tail.push(number, event, &mut changes);
        self.store.write(changes)
    }

    fn notice_step(&self, tail: &mut Tail, changes: &mut Changes) {
        let offset = wall_offset(&*self.clock);
        let by = offset.saturating_sub(tail.wall_offset);
        if by.unsigned_abs() <= STEP {
            return;
        }
        tail.pack(changes);
        tail.wall_offset = offset;
        changes.put(Space::Meta, WALL, &offset);
        let stepped = Event::ClockStepped {
            nanos: by,
            at: self.clock.now(),
        };
        tail.push(self.number(), stepped, changes);
    }

    /// Packs what is closed and writes it: at the end of a run.
    pub fn close(&self) -> Durable {
        let mut tail = self.lock();
        let over = tail.counts.flush();
        self.count(&mut tail, Tick { over, first: None });
        let mut changes = Changes::default();
        let closed = Event::Closed {
            gate: self.gate,
            at: self.clock.now(),
        };
        tail.push(self.number(), closed, &mut changes);
        tail.pack(&mut changes);
        let (head, at) = (
            tail.head.clone(),
            Head {
                number: tail.number,
                hash: tail.hash,
            },
        );
        changes.then(move || head.write(at));
        self.store.write(changes)
    }
}

const SEQUENCE: &[u8] = b"sequence";
const BLOCK: u64 = 4096;

impl Tail {
    fn push(&mut self, number: u64, event: Event, changes: &mut Changes) {
        if let Event::Call(call) = &event {
            let took = nanos(call.settlement.ended.since(call.intent.decided));
            if took > self.longest {
                // By doubling, so that it is written a few dozen times in all.
                self.longest = took.saturating_mul(2);
                changes.put(Space::Meta, LONGEST, &self.longest);
            }
        }
        if self.closed.is_empty() {
            self.since = event.at();
        }
        let entry = Entry::Over(event);
        changes.put(Space::Open, &numbered(number), &entry);
        let Entry::Over(event) = entry else { return };
        let minute_over = nanos(event.at().since(self.since)) >= SEGMENT_SPAN;
        self.closed.push(Numbered { number, event });
        if minute_over || self.closed.len() >= SEGMENT_EVENTS {
            self.pack(changes);
        }
    }

    fn pack(&mut self, changes: &mut Changes) {
        let Some(last) = self.closed.iter().map(|entry| entry.event.at()).max() else {
            return;
        };
        let number = self.number + 1;
        let segment = Segment::pack(
            number,
            self.hash,
            self.wall_offset,
            &self.closed,
            &mut self.names,
            changes,
        );
        let Ok(bytes) = encode(&segment) else { return };
        self.hash = hash_of(&bytes);
        self.number = number;
        changes.put_bytes(Space::Segment, &paired(last.as_nanos(), number), bytes);
        for entry in self.closed.drain(..) {
            changes.delete(Space::Open, &numbered(entry.number));
        }
        let (file, head) = (
            self.head.clone(),
            Head {
                number,
                hash: self.hash,
            },
        );
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

fn hash_of(bytes: &[u8]) -> Hash {
    *blake3::hash(bytes).as_bytes()
}
