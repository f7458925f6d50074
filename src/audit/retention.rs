//! What is kept, and for how long: whole days go at once, the oldest first,
//! and that they went is itself on record.
//!
//! Calls under way, what is spent, pauses, holds and envelopes are no part of
//! a day and stay. The dictionary goes with the days that name it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::frames::{blocks, volumes};
use super::head::Head;
use super::log::Log;
use super::reach::{Reach, day_of};
use crate::clock::Moment;
use crate::store::{Changes, Space, Store, StoreError, numbered};

const PRUNED: &[u8] = b"pruned";
/// Strings of the dictionary that go in one step.
const NAMES: usize = 1024;

/// Up to where the record was pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pruned {
    /// The last segment that is gone: the one before the first that is kept.
    pub(super) head: Head,
    /// Its day.
    pub(super) day: u64,
}

/// Up to where the record was pruned, if it ever was.
pub(super) fn pruned(store: &Store) -> Result<Option<Pruned>, StoreError> {
    store.get(Space::Meta, PRUNED)
}

/// What a step of pruning did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retained {
    /// Nothing is left to do for now.
    All,
    /// There is more to do.
    More,
}

impl Log {
    /// Lets go of the oldest day if its last event is older than `keep`: one
    /// day, or some strings that nothing names any more, at a time, so that
    /// calls are not delayed. Blocks the thread for some flushes.
    ///
    /// Decision time alone counts: a wall clock that is ahead for one boot
    /// must not cost the record. Time in which the machine is off is no part
    /// of it, so that days may stay longer than asked for, and never shorter.
    ///
    /// # Errors
    /// When the record cannot be read or written.
    pub fn retain(&self, keep: Duration) -> Result<Retained, StoreError> {
        // A copy that is being made holds it all.
        let Some(_right) = self.store.let_go() else {
            return Ok(Retained::All);
        };
        let now = self.clock.now();
        // What is written to another day by now is read to its end below.
        let (current, _) = self.lock().end();
        self.store.settle()?;
        let oldest = volumes(&self.store).next().transpose()?;
        let Some((day, reach)) = oldest else {
            return Ok(Retained::All);
        };
        if day != current && now.since(reach.last) >= keep {
            self.prune(day, &reach, now)?;
            return Ok(Retained::More);
        }
        self.forget_names(&reach)
    }

    fn prune(&self, day: u64, reach: &Reach, now: Moment) -> Result<(), StoreError> {
        let gone = Pruned {
            head: reach.head(),
            day,
        };
        let keys: Result<Vec<_>, _> = blocks(&self.store, day)
            .map(|block| block.map(|block| block.key(day)))
            .collect();
        let keys = keys?;
        let event = Event::Pruned {
            // A day may be counted from a wall clock that was wrong when it began.
            day: date_of(day_of(reach.last, reach.wall_offset)).into(),
            segment: reach.number,
            hash: blake3::Hash::from_bytes(reach.hash)
                .to_hex()
                .as_str()
                .into(),
            bytes: reach.length,
            at: now,
        };
        let noted = self.note_with(event, |changes| {
            changes.put(Space::Meta, PRUNED, &gone);
            changes.delete(Space::Volume, &numbered(day));
            keys.iter()
                .for_each(|key| changes.delete(Space::Block, key));
        });
        noted.wait_blocking()?;
        self.store.remove_volumes(|volume| volume != day)
    }

    fn forget_names(&self, oldest: &Reach) -> Result<Retained, StoreError> {
        let mut changes = Changes::default();
        let unnamed = ..numbered(oldest.names_from).to_vec();
        for (gone, entry) in self.store.scan_bytes(Space::Name, unnamed).enumerate() {
            if gone >= NAMES {
                break;
            }
            changes.delete(Space::Name, &entry?.0);
        }
        if changes.is_empty() {
            return Ok(Retained::All);
        }
        self.store.write(changes).wait_blocking()?;
        Ok(Retained::More)
    }
}

/// What a kill left of a day that is pruned on record.
///
/// Where the head beside it is ahead of the database, that one came from a
/// backup: what it does not know is kept under other names, since it would be
/// written over.
pub(super) fn clear(store: &Store, head: Option<Head>) -> Result<(), StoreError> {
    let known: Result<BTreeMap<u64, Reach>, _> = volumes(store).collect();
    let known = known?;
    if let Some(pruned) = pruned(store)? {
        store.remove_volumes(|volume| volume > pruned.day || known.contains_key(&volume))?;
    }
    let latest = known.last_key_value().map(|(_, reach)| reach.number);
    if let Some(head) = head.filter(|head| head.number > latest.unwrap_or(0)) {
        store.set_aside_volumes(head.number, |volume| {
            known.get(&volume).map_or(0, |reach| reach.length)
        })?;
    }
    Ok(())
}

/// A day counted from 1970, as a date.
fn date_of(day: u64) -> String {
    let seconds = i64::try_from(day.saturating_mul(86_400)).unwrap_or(i64::MAX);
    let date = jiff::Timestamp::from_second(seconds);
    date.map_or_else(|_| day.to_string(), |date| date.strftime("%F").to_string())
}
