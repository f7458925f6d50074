//! Reading the log as it stands at one instant, while it may go on.

use std::collections::HashMap;

use super::event::{Event, Intent};
use super::filter::Filter;
use super::frame::Frame;
use super::frames::{Frames, Span};
use super::names::Lexicon;
use super::segment::{Entry, Header, Holds, Segment};
use super::tail::Open;
use super::terms::{self, wanted};
use crate::clock::Moment;
use crate::store::{Space, Store, StoreError, decode, last_number};

/// An event as it was found, with what translates its moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number in the log: the permit's, for a call.
    pub number: u64,
    /// The event.
    pub event: Event,
    /// Nanoseconds from decision time to the wall clock of then.
    pub wall_offset: i64,
    /// The same for when a call was granted: another number where the wall
    /// clock was set, or the machine was off, before the call ended.
    pub begun_offset: i64,
}

impl Recorded {
    fn new(entry: Entry, wall_offset: i64) -> Self {
        let Entry {
            number,
            stepped,
            event,
        } = entry;
        Self {
            number,
            event,
            wall_offset,
            begun_offset: wall_offset.saturating_add(stepped),
        }
    }
}

/// The log as it stands: events in the order in which they became known. What
/// is damaged is one error, and hides nothing behind it.
///
/// # Errors
/// When the record cannot be read.
pub fn events(
    store: &Store,
    filter: Filter,
) -> Result<impl Iterator<Item = Result<Recorded, StoreError>> + use<'_>, StoreError> {
    read(store, filter, Kinds::All)
}

/// All events that are no calls; segments that hold calls alone are passed over.
pub(super) fn beside_calls(
    store: &Store,
) -> Result<impl Iterator<Item = Result<Recorded, StoreError>> + use<'_>, StoreError> {
    let events = read(store, Filter::default(), Kinds::BesideCalls)?;
    let is_call = |found: &Recorded| matches!(found.event, Event::Call(_));
    Ok(events.filter(move |found| !found.as_ref().is_ok_and(is_call)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    All,
    BesideCalls,
}

fn read(
    store: &Store,
    filter: Filter,
    kinds: Kinds,
) -> Result<impl Iterator<Item = Result<Recorded, StoreError>> + use<'_>, StoreError> {
    // What is closed now may be packed at any time: looked at first, it is
    // seen here or in a segment up to the last one of a moment later.
    let over: HashMap<u64, Recorded> = open(store)?.over;
    let over = over
        .into_iter()
        .filter(|(_, found)| filter.matches(&found.event))
        .collect();
    let span = Span {
        from: filter.from.unwrap_or(Moment::ZERO),
        to: filter.to.unwrap_or(Moment::MAX),
    };
    let wanted = match kinds {
        Kinds::All => wanted(&filter),
        Kinds::BesideCalls => terms::beside_calls(),
    };
    Ok(Reading {
        store,
        frames: Frames::of(store, wanted, span)?,
        filter,
        kinds,
        lexicon: Lexicon::of(store),
        ready: Vec::new().into_iter(),
        rest: Rest::Unsorted(over),
    })
}

struct Reading<'a> {
    store: &'a Store,
    frames: Frames<'a>,
    filter: Filter,
    kinds: Kinds,
    lexicon: Lexicon<'a>,
    ready: std::vec::IntoIter<Recorded>,
    rest: Rest,
}

/// What was in no segment when reading began.
enum Rest {
    Unsorted(HashMap<u64, Recorded>),
    Sorted(std::vec::IntoIter<Recorded>),
}

impl Iterator for Reading<'_> {
    type Item = Result<Recorded, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.ready.find(|found| self.filter.matches(&found.event)) {
                return Some(Ok(found));
            }
            let read = match self.frames.next() {
                Some(frame) => frame.and_then(|(volume, frame)| self.read(volume, &frame)),
                None => return self.rest.next().map(Ok),
            };
            match read {
                Ok(found) => self.ready = found.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Reading<'_> {
    fn read(&mut self, volume: u64, frame: &Frame) -> Result<Vec<Recorded>, StoreError> {
        let value = |error| StoreError::Value {
            folder: self.store.folder().to_owned(),
            error,
        };
        let header = Header::read(&frame.bytes).map_err(value)?;
        let is_after = self.filter.to.is_some_and(|to| header.begin >= to);
        if is_after || (self.kinds == Kinds::BesideCalls && header.holds == Holds::Calls) {
            return Ok(Vec::new());
        }
        let segment = decode::<Segment>(&frame.bytes).map_err(value)?;
        match self.unpack(segment) {
            // The names of a day go with it.
            Err(_) if self.frames.is_pruned(volume)? => Ok(Vec::new()),
            unpacked => unpacked,
        }
    }

    fn unpack(&mut self, segment: Segment) -> Result<Vec<Recorded>, StoreError> {
        let wall_offset = segment.header.place.wall_offset;
        let entries = segment.unpack(&mut self.lexicon)?;
        if let Rest::Unsorted(over) = &mut self.rest {
            for entry in &entries {
                over.remove(&entry.number);
            }
        }
        Ok(entries
            .into_iter()
            .map(|entry| Recorded::new(entry, wall_offset))
            .collect())
    }
}

impl Rest {
    fn next(&mut self) -> Option<Recorded> {
        if let Self::Unsorted(over) = self {
            let mut left: Vec<_> = over.drain().map(|(_, found)| found).collect();
            left.sort_by_key(|found| (found.event.at(), found.number));
            *self = Self::Sorted(left.into_iter());
        }
        match self {
            Self::Sorted(left) => left.next(),
            Self::Unsorted(_) => None,
        }
    }
}

/// Calls that are under way now, by number.
///
/// # Errors
/// When the record cannot be read.
pub fn under_way(store: &Store) -> Result<Vec<(u64, Intent)>, StoreError> {
    Ok(open(store)?.under)
}

#[derive(Default)]
struct Unpacked {
    over: HashMap<u64, Recorded>,
    under: Vec<(u64, Intent)>,
}

fn open(store: &Store) -> Result<Unpacked, StoreError> {
    let mut unpacked = Unpacked::default();
    for open in store.scan::<Open>(Space::Open, ..) {
        let (key, open) = open?;
        match open {
            Open::Over { wall_offset, entry } => {
                unpacked
                    .over
                    .insert(entry.number, Recorded::new(entry, wall_offset));
            }
            Open::Under { intent, .. } => unpacked.under.push((last_number(&key), intent)),
        }
    }
    Ok(unpacked)
}
