//! Reading the log as it stands at one instant, while it may go on.

use std::collections::HashMap;
use std::ops::Bound;

use super::event::{Event, Intent};
use super::filter::Filter;
use super::names::Lexicon;
use super::segment::{Entry, Header, Holds, Segment};
use super::tail::{LONGEST, Open};
use crate::clock::Moment;
use crate::store::{Space, Store, StoreError, decode, last_number, paired};

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
    let range = range(store, &filter)?;
    let to = filter.to;
    let segments = store.scan_bytes(Space::Segment, range);
    let segments = segments.map(move |stored| {
        let bytes = stored?.1;
        let value = |error| StoreError::Value {
            folder: store.folder().to_owned(),
            error,
        };
        let header = Header::read(&bytes).map_err(value)?;
        let is_after = to.is_some_and(|to| header.begin >= to);
        if is_after || (kinds == Kinds::BesideCalls && header.holds == Holds::Calls) {
            return Ok(None);
        }
        decode::<Segment>(&bytes).map(Some).map_err(value)
    });
    let segments = segments.filter_map(Result::transpose);
    let ready = Vec::new().into_iter();
    Ok(Reading {
        filter,
        segments,
        lexicon: Lexicon::of(store),
        ready,
        rest: Rest::Unsorted(over),
    })
}

type Keys = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys of the segments in which what is wanted can lie.
fn range(store: &Store, filter: &Filter) -> Result<Keys, StoreError> {
    let last = store.last_key(Space::Segment)?.unwrap_or_default();
    let longest: u64 = store.get(Space::Meta, LONGEST)?.unwrap_or(0);
    let from = filter.from.unwrap_or(Moment::ZERO).as_nanos();
    let to = filter
        .to
        .map(|to| paired(to.as_nanos().saturating_add(longest), u64::MAX).to_vec());
    let to = to.map_or_else(|| last.clone(), |to| to.min(last.clone()));
    let from = paired(from, 0).to_vec();
    // An empty range must not be a reversed one.
    let to = if to < from {
        Bound::Excluded(from.clone())
    } else {
        Bound::Included(to)
    };
    Ok((Bound::Included(from), to))
}

struct Reading<'a, S> {
    filter: Filter,
    segments: S,
    lexicon: Lexicon<'a>,
    ready: std::vec::IntoIter<Recorded>,
    rest: Rest,
}

/// What was in no segment when reading began.
enum Rest {
    Unsorted(HashMap<u64, Recorded>),
    Sorted(std::vec::IntoIter<Recorded>),
}

impl<S: Iterator<Item = Result<Segment, StoreError>>> Iterator for Reading<'_, S> {
    type Item = Result<Recorded, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.ready.find(|found| self.filter.matches(&found.event)) {
                return Some(Ok(found));
            }
            match self.segments.next() {
                Some(Ok(segment)) => match self.unpack(segment) {
                    Ok(found) => self.ready = found.into_iter(),
                    Err(error) => return Some(Err(error)),
                },
                Some(Err(error)) => return Some(Err(error)),
                None => return self.rest.next().map(Ok),
            }
        }
    }
}

impl<S> Reading<'_, S> {
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
