//! Packed segments: some dozens of closed events under one key. A call is 820
//! bytes as a record of its own, and under 100 here: times are differences,
//! and strings that repeat are numbers. Each segment carries the hash of the
//! one before, so that none can be altered, removed or moved unseen.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::{Call, Event, Intent, Settlement, TaskRef};
use super::names::Names;
use crate::budget::{Revision, Scope};
use crate::clock::{Moment, nanos};
use crate::outcome::End;
use crate::step::Step;
use crate::store::Changes;

/// The hash of a segment's bytes.
pub(super) type Hash = [u8; 32];

/// An event with its number in the log.
#[derive(Clone, Debug)]
pub struct Numbered {
    /// Its number: the permit's, for a call.
    pub number: u64,
    /// The event.
    pub event: Event,
}

/// A segment as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) previous: Hash,
    /// Nanoseconds from decision time to the wall clock of these events.
    pub(super) wall_offset: i64,
    /// The earliest moment of any event in it.
    pub(super) begin: Moment,
    entries: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Entry {
    Call(Row),
    Other(u64, Event),
}

/// A call with numbers for names and differences for times.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    number: u64,
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
    scopes: u64,
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

/// Scopes are written as one string, since calls of a target share them.
const BETWEEN_SCOPES: &str = "\n";

impl Segment {
    pub(super) fn pack(
        number: u64,
        previous: Hash,
        wall_offset: i64,
        events: &[Numbered],
        names: &mut Names,
        changes: &mut Changes,
    ) -> Self {
        let begin = events
            .iter()
            .map(|entry| entry.event.begin())
            .min()
            .unwrap_or(Moment::ZERO);
        let entries = events.iter().map(|Numbered { number, event }| match event {
            Event::Call(call) => Entry::Call(row(*number, call, begin, names, changes)),
            other => Entry::Other(*number, other.clone()),
        });
        Self {
            number,
            previous,
            wall_offset,
            begin,
            entries: entries.collect(),
        }
    }

    /// The events, as far as their names are known.
    pub(super) fn unpack(self, names: &Names) -> impl Iterator<Item = Option<Numbered>> {
        let begin = self.begin;
        self.entries.into_iter().map(move |entry| match entry {
            Entry::Call(row) => {
                let number = row.number;
                call(row, begin, names).map(|call| Numbered {
                    number,
                    event: Event::Call(call),
                })
            }
            Entry::Other(number, event) => Some(Numbered { number, event }),
        })
    }
}

fn row(number: u64, call: &Call, begin: Moment, names: &mut Names, changes: &mut Changes) -> Row {
    let Call { intent, settlement } = call;
    let mut name = |text: &Arc<str>| names.number(text, changes);
    let scopes: Vec<String> = intent.scopes.iter().map(Scope::to_string).collect();
    let from = intent.decided;
    Row {
        number,
        gate: intent.gate,
        target: name(&intent.target.to_string().into()),
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
        scopes: name(&scopes.join(BETWEEN_SCOPES).into()),
        user_agent: name(&intent.user_agent),
        after_begin: nanos(from.since(begin)),
        departed_after: settlement
            .departed
            .map(|departed| nanos(departed.since(from))),
        ended_after: nanos(settlement.ended.since(from)),
        end: settlement.end,
        status: settlement.status,
        bytes: settlement.bytes,
        peer: settlement.peer,
        error: settlement.error.as_ref().map(name),
    }
}

fn call(row: Row, begin: Moment, names: &Names) -> Option<Call> {
    let later = |from: Moment, by: u64| from.after(Duration::from_nanos(by));
    let decided = later(begin, row.after_begin);
    let scopes = names.text(row.scopes)?;
    let scopes = scopes
        .split(BETWEEN_SCOPES)
        .filter_map(|scope| scope.parse().ok());
    Some(Call {
        intent: Intent {
            gate: row.gate,
            target: names.text(row.target)?.parse().ok()?,
            method: names.text(row.method)?,
            path: row.path,
            step: Step {
                agent: names.text(row.agent)?,
                trajectory: names.text(row.trajectory)?,
                step: row.step,
                goal: names.text(row.goal)?,
            },
            revision: row.revision,
            cost: row.cost,
            attempt: row.attempt,
            hop: row.hop,
            task: row.task,
            decided,
            scopes: scopes.collect(),
            user_agent: names.text(row.user_agent)?,
        },
        settlement: Settlement {
            departed: row.departed_after.map(|by| later(decided, by)),
            ended: later(decided, row.ended_after),
            end: row.end,
            status: row.status,
            bytes: row.bytes,
            peer: row.peer,
            error: match row.error {
                Some(number) => Some(names.text(number)?),
                None => None,
            },
        },
    })
}
