//! Packed segments: some dozens of closed events in one piece. A call is 820
//! bytes as a record of its own, and under 100 here: times are differences,
//! and strings that repeat are numbers. Each segment carries the hash of the
//! one before, so that none can be altered, removed or moved unseen.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::{Call, Event, Intent, Settlement, TaskRef};
use super::names::{Lexicon, Names};
use crate::budget::{Revision, Scope};
use crate::clock::{Moment, nanos};
use crate::outcome::End;
use crate::step::Step;
use crate::store::{Changes, StoreError, ValueError, decode, encode};

/// The hash of a segment's bytes.
pub(super) type Hash = [u8; 32];

pub(super) fn hash_of(bytes: &[u8]) -> Hash {
    *blake3::hash(bytes).as_bytes()
}

/// An event with its number in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its number: the permit's, for a call.
    pub(super) number: u64,
    /// Nanoseconds to add to the segment's offset for the one of a call's
    /// grant: minus the steps of the wall clock in between.
    pub(super) stepped: i64,
    pub(super) event: Event,
}

/// Where a segment stands in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) previous: Hash,
    /// Nanoseconds from decision time to the wall clock of its events.
    pub(super) wall_offset: i64,
}

/// What a segment says of itself, in front of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) place: Place,
    /// The earliest moment that any event in it speaks of.
    pub(super) begin: Moment,
    pub(super) holds: Holds,
    /// The number of its first event.
    first: u64,
}

/// What can be known of a segment's events without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Holds {
    /// Nothing but calls.
    Calls,
    /// Events of other kinds too.
    Others,
}

impl Header {
    /// The header of a stored segment, its events unread.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ValueError> {
        decode(bytes)
    }
}

/// A segment as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) header: Header,
    records: Vec<Record>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Record {
    Call(Row),
    Other(Entry),
}

/// A call with numbers for names and differences for times.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    after_first: i64,
    stepped: i64,
    gate: u64,
    target: u64,
    method: u64,
    path: Arc<str>,
    agent: u64,
    trajectory: u64,
    step: Arc<str>,
    goal: u64,
    revision: Revision,
    cost: u32,
    attempt: u32,
    hop: u32,
    task: Option<TaskRef>,
    scopes: Vec<Drawn>,
    user_agent: u64,
    after_begin: u64,
    departed_after: Option<u64>,
    ended_after: u64,
    end: End,
    status: Option<u16>,
    bytes: u64,
    peer: Option<IpAddr>,
    error: Option<u64>,
}

/// A bucket that a call drew from: most follow from its target.
#[derive(Debug, Serialize, Deserialize)]
enum Drawn {
    Host,
    /// A group with so many bytes of the end of its host for a name. Not by
    /// the list of suffixes, which is another one tomorrow.
    Domain(usize),
    Named(u64),
}

impl Segment {
    pub(super) fn pack(
        place: Place,
        entries: &[Entry],
        names: &mut Names,
        changes: &mut Changes,
    ) -> Self {
        let begin = entries.iter().map(|entry| entry.event.begin()).min();
        let is_call = |entry: &Entry| matches!(entry.event, Event::Call(_));
        let header = Header {
            place,
            begin: begin.unwrap_or(Moment::ZERO),
            holds: if entries.iter().all(is_call) {
                Holds::Calls
            } else {
                Holds::Others
            },
            first: entries.first().map_or(0, |entry| entry.number),
        };
        let records = entries.iter().map(|entry| match &entry.event {
            Event::Call(call) => Record::Call(row(entry, call, &header, names, changes)),
            _ => Record::Other(entry.clone()),
        });
        Self {
            header,
            records: records.collect(),
        }
    }

    /// The events.
    ///
    /// # Errors
    /// When a name of theirs cannot be read.
    pub(super) fn unpack(self, lexicon: &mut Lexicon<'_>) -> Result<Vec<Entry>, StoreError> {
        let Header { begin, first, .. } = self.header;
        let entries = self.records.into_iter().map(|record| match record {
            Record::Call(row) => Ok(Entry {
                number: first.wrapping_add_signed(row.after_first),
                stepped: row.stepped,
                event: Event::Call(call(row, begin, lexicon)?),
            }),
            Record::Other(entry) => Ok(entry),
        });
        entries.collect()
    }
}

fn row(
    entry: &Entry,
    call: &Call,
    header: &Header,
    names: &mut Names,
    changes: &mut Changes,
) -> Row {
    let Call { intent, settlement } = call;
    let mut name = |text: &str| names.number(text, changes);
    let from = intent.decided;
    Row {
        after_first: entry.number.wrapping_sub(header.first).cast_signed(),
        stepped: entry.stepped,
        gate: intent.gate,
        target: name(&intent.target.to_string()),
        method: name(&intent.method),
        path: intent.path.clone(),
        agent: name(&intent.step.agent),
        trajectory: name(&intent.step.trajectory),
        step: intent.step.step.clone(),
        goal: name(&intent.step.goal),
        revision: intent.revision,
        cost: intent.cost,
        attempt: intent.attempt,
        hop: intent.hop,
        task: intent.task,
        scopes: intent
            .scopes
            .iter()
            .map(|scope| match scope {
                Scope::Host(origin) if *origin == intent.target.origin => Drawn::Host,
                Scope::Group(group) if intent.target.origin.host().ends_with(&**group) => {
                    Drawn::Domain(group.len())
                }
                other => Drawn::Named(name(&other.to_string())),
            })
            .collect(),
        user_agent: name(&intent.user_agent),
        after_begin: nanos(from.since(header.begin)),
        departed_after: settlement
            .departed
            .map(|departed| nanos(departed.since(from))),
        ended_after: nanos(settlement.ended.since(from)),
        end: settlement.end,
        status: settlement.status,
        bytes: settlement.bytes,
        peer: settlement.peer,
        error: settlement.error.as_deref().map(name),
    }
}

fn call(row: Row, begin: Moment, lexicon: &mut Lexicon<'_>) -> Result<Call, StoreError> {
    let later = |from: Moment, by: u64| from.after(Duration::from_nanos(by));
    let decided = later(begin, row.after_begin);
    let target = lexicon.target(row.target)?;
    let scopes: Result<Vec<Scope>, _> = row
        .scopes
        .into_iter()
        .map(|scope| match scope {
            Drawn::Host => Ok(Scope::Host(target.origin.clone())),
            Drawn::Domain(length) => {
                let host = target.origin.host();
                let domain = host.get(host.len().saturating_sub(length)..);
                Ok(Scope::Group(domain.unwrap_or(host).into()))
            }
            Drawn::Named(scope) => lexicon.scope(scope),
        })
        .collect();
    let intent = Intent {
        gate: row.gate,
        target,
        method: lexicon.text(row.method)?,
        path: row.path,
        step: Step {
            agent: lexicon.text(row.agent)?,
            trajectory: lexicon.text(row.trajectory)?,
            step: row.step,
            goal: lexicon.text(row.goal)?,
        },
        revision: row.revision,
        cost: row.cost,
        attempt: row.attempt,
        hop: row.hop,
        task: row.task,
        decided,
        scopes: scopes?,
        user_agent: lexicon.text(row.user_agent)?,
    };
    let settlement = Settlement {
        departed: row.departed_after.map(|by| later(decided, by)),
        ended: later(decided, row.ended_after),
        end: row.end,
        status: row.status,
        bytes: row.bytes,
        peer: row.peer,
        error: row.error.map(|error| lexicon.text(error)).transpose()?,
    };
    Ok(Call { intent, settlement })
}

/// A packed call, without the texts it spells out.
const CALL_BYTES: usize = 60;

/// About how many bytes an event comes to in a segment.
pub(super) fn weight(event: &Event) -> usize {
    match event {
        Event::Call(call) => CALL_BYTES + call.intent.path.len() + call.intent.step.step.len(),
        other => encode(other).map_or(0, |bytes| bytes.len()),
    }
}
