//! Appending: intents before a call leaves, settlements when it has ended,
//! events beside them, packed into segments as they close.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::count::Counts;
use super::event::{Call, Deferred, Event, Intent, Refused, Settlement};
use super::head::{Head, HeadFile};
use super::retention::clear;
use super::segment::Entry;
use super::tail::{Found, Interrupted, Offsets, Open, Tail};
use crate::budget::Cause;
use crate::clock::{Clock, Moment, nanos, wall_offset};
use crate::outcome::End;
use crate::store::{Changes, Durable, Space, Store, StoreError, numbered};
use crate::target::TargetKey;

/// A difference to the wall clock by more than this is a step; less is drift.
const STEP: u64 = 500_000_000;
/// A look at both clocks that took longer than this tells nothing.
const GLANCE: u64 = 50_000_000;
const SEQUENCE: &[u8] = b"sequence";
const BLOCK: u64 = 4096;

/// The log of one store.
#[derive(Debug)]
pub struct Log {
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<dyn Clock>,
    gate: u64,
    next: AtomicU64,
    reserved: Mutex<u64>,
    /// The tail's, to be read without its lock.
    wall_offset: AtomicI64,
    /// Never locked while the tail is waited for.
    counts: Mutex<Counts>,
    tail: Mutex<Tail>,
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
        let now = clock.now();
        let offsets = Offsets {
            wall_offset: wall_offset(&*clock),
            utc_offset: clock.utc_offset(),
        };
        clear(&store, HeadFile::of(&store).read())?;
        let (tail, found) = Tail::load(&store, now, offsets)?;
        let Found {
            interrupted,
            greatest,
            lost,
        } = found;
        let saved: Option<(u64, u64)> = store.get(Space::Meta, SEQUENCE)?;
        let (reserved, last_gate) = saved.unwrap_or((1, 0));
        let next = reserved.max(greatest + 1);
        let (is, was) = (tail.head(), tail.head_file().read());
        let log = Self {
            store,
            clock,
            gate: last_gate + 1,
            next: AtomicU64::new(next),
            reserved: Mutex::default(),
            wall_offset: AtomicI64::new(tail.wall_offset()),
            counts: Mutex::new(Counts::by(tail.wall_offset())),
            tail: Mutex::new(tail),
        };
        log.reserve(next);
        let is_other =
            |was: &Head| was.number > is.number || (was.number == is.number && was.hash != is.hash);
        let was = [lost, was].into_iter().flatten().filter(is_other);
        if let Some(was) = was.max_by_key(|was| was.number) {
            let event = Event::Truncated {
                expected: was.number,
                found: is.number,
                at: now,
            };
            // Noticed once: from here on the shorter chain is the chain.
            let file = log.lock().head_file().clone();
            let (volume, reach) = log.lock().end();
            let noted = log.note_with(event, |changes| {
                changes.put(Space::Volume, &numbered(volume), &reach);
                changes.then(move || file.write(is));
            });
            noted.detach();
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
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let to = from + BLOCK;
        if to > *reserved {
            *reserved = to;
            let mut changes = Changes::default();
            changes.put(Space::Meta, SEQUENCE, &(to, self.gate));
            self.store.write(changes).detach();
        }
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
        let known = self.wall_offset.load(Ordering::Acquire);
        let mut changes = Changes::default();
        let mut tail = self.step(known).is_some().then(|| self.lock());
        if let Some(tail) = &mut tail {
            self.catch_up(tail, intent.decided, &mut changes);
        }
        let wall_offset = tail.as_ref().map_or(known, |tail| tail.wall_offset());
        let under = Open::Under {
            wall_offset,
            intent,
        };
        changes.put(Space::Open, &numbered(number), &under);
        (number, self.store.write(changes))
    }

    /// Puts the end of a call on record, together with other changes. What
    /// `also` adds is read in the order of the log: of two ends, the later
    /// one's state is the one that stays.
    pub fn finish(&self, number: u64, call: Call, also: impl FnOnce(&mut Changes)) -> Durable {
        let decided = call.intent.decided;
        self.append(also, |tail| Entry {
            number,
            stepped: tail.stepped_since(decided),
            event: Event::Call(call),
        })
    }

    /// Puts calls on record that began and ended elsewhere, in one write: for
    /// an import, or for a record of a size that no test could wait for.
    #[doc(hidden)]
    pub fn append_ended(&self, calls: Vec<Call>) -> Durable {
        let now = self.clock.now();
        let mut tail = self.lock();
        let mut changes = Changes::default();
        self.catch_up(&mut tail, now, &mut changes);
        for call in calls {
            let entry = Entry {
                number: self.number(),
                stepped: tail.stepped_since(call.intent.decided),
                event: Event::Call(call),
            };
            tail.push(entry, now, &mut changes);
        }
        self.store.write(changes)
    }

    /// Settles a call whose gate died.
    pub fn interrupt(
        &self,
        call: Interrupted,
        now: Moment,
        also: impl FnOnce(&mut Changes),
    ) -> Durable {
        let Interrupted {
            number,
            intent,
            wall_offset,
        } = call;
        let settlement = Settlement {
            departed: None,
            ended: now,
            end: End::Interrupted,
            status: None,
            bytes: 0,
            peer: None,
            error: Some("the gate was killed while this call was under way".into()),
        };
        let event = Event::Call(Call { intent, settlement });
        self.append(also, |tail| Entry {
            number,
            stepped: wall_offset.saturating_sub(tail.wall_offset()),
            event,
        })
    }

    /// Puts an event on record.
    pub fn note(&self, event: Event) -> Durable {
        self.note_with(event, |_| {})
    }

    /// Puts an event on record, together with other changes, in the order of
    /// the log.
    pub fn note_with(&self, event: Event, also: impl FnOnce(&mut Changes)) -> Durable {
        self.append(also, |_| self.entry(event))
    }

    /// Counts a deferral: the first of a kind is put on record at once, the
    /// rest as a number when the minute is over.
    pub fn defer(&self, deferred: Deferred) {
        let at = deferred.at;
        self.count(at, |counts| counts.defer(deferred));
    }

    /// Counts another deferral of a kind that has been counted within its
    /// minute, without the words that only the first is told in. False when
    /// there is none, and [`Self::defer`] has to be told of it.
    #[must_use]
    pub fn defer_again(
        &self,
        target: &TargetKey,
        agent: &Arc<str>,
        cause: Cause,
        now: Moment,
    ) -> bool {
        let kind = (target.clone(), agent.clone(), cause);
        let mut counts = self.counts();
        let known = counts.defer_again(&kind, now);
        let is_due = counts.is_due(now);
        drop(counts);
        if known && is_due {
            self.turn();
        }
        known
    }

    /// Counts a refusal in the same way.
    pub fn refuse(&self, refused: Refused) {
        let at = refused.at;
        self.count(at, |counts| counts.refuse(refused));
    }

    /// A flood passes without the tail's lock.
    fn count(&self, now: Moment, count: impl FnOnce(&mut Counts) -> Option<Event>) {
        let mut counts = self.counts();
        let first = count(&mut counts);
        let is_due = counts.is_due(now);
        drop(counts);
        match first {
            Some(first) => self.note(first).detach(),
            None if is_due => self.turn(),
            None => {}
        }
    }

    /// Puts on record what time alone brings: counts whose minute is over, a
    /// step of the wall clock. Everything that is appended does so too; where
    /// nothing is, somebody has to call this now and then.
    pub fn turn(&self) {
        let now = self.clock.now();
        let mut tail = self.lock();
        let mut changes = Changes::default();
        self.catch_up(&mut tail, now, &mut changes);
        if !changes.is_empty() {
            self.store.write(changes).detach();
        }
    }

    /// Packs what is closed and writes it: at the end of a run.
    pub fn close(&self) -> Durable {
        let now = self.clock.now();
        let mut tail = self.lock();
        let mut changes = Changes::default();
        self.catch_up(&mut tail, now, &mut changes);
        let closed = Event::Closed {
            gate: self.gate,
            at: now,
        };
        let counted = self.counts().flush();
        for event in counted.into_iter().chain([closed]) {
            tail.push(self.entry(event), now, &mut changes);
        }
        tail.pack(&mut changes);
        let (file, head) = (tail.head_file().clone(), tail.head());
        changes.then(move || file.write(head));
        self.store.write(changes)
    }

    fn entry(&self, event: Event) -> Entry {
        Entry {
            number: self.number(),
            stepped: 0,
            event,
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes happen under the tail's lock, so that the order on disk is the
    /// order of the log.
    fn append(
        &self,
        also: impl FnOnce(&mut Changes),
        entry: impl FnOnce(&Tail) -> Entry,
    ) -> Durable {
        let now = self.clock.now();
        let mut tail = self.lock();
        let mut changes = Changes::default();
        also(&mut changes);
        self.catch_up(&mut tail, now, &mut changes);
        let entry = entry(&tail);
        tail.push(entry, now, &mut changes);
        self.store.write(changes)
    }

    fn catch_up(&self, tail: &mut Tail, now: Moment, changes: &mut Changes) {
        if let Some(nanos) = self.step(tail.wall_offset()) {
            tail.step(nanos, now, changes);
            self.wall_offset
                .store(tail.wall_offset(), Ordering::Release);
            self.counts().step(tail.wall_offset());
            tail.push(
                self.entry(Event::ClockStepped { nanos, at: now }),
                now,
                changes,
            );
        }
        let counted = self.counts().due(now);
        for event in counted {
            tail.push(self.entry(event), now, changes);
        }
        tail.pack_old(now, changes);
    }

    /// By how much the wall clock was set since it was looked at last.
    fn step(&self, known: i64) -> Option<i64> {
        let before = self.clock.now();
        let by = wall_offset(&*self.clock).saturating_sub(known);
        if by.unsigned_abs() <= STEP {
            return None;
        }
        // A thread that was put aside between the two clocks sees a step too.
        let took = nanos(self.clock.now().since(before));
        (took <= GLANCE).then_some(by)
    }
}
