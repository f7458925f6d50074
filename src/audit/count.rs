//! A flood of deferrals must not become a flood of records: each kind is
//! counted per target, agent and minute.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::event::{Deferred, Event, Refused};
use crate::budget::Cause;
use crate::clock::Moment;
use crate::target::TargetKey;

/// What a minute's counts came to.
#[derive(Debug, Default)]
pub(super) struct Tick {
    /// The counts of the minute before.
    pub(super) over: Vec<Event>,
    /// The first of its kind, put on record at once.
    pub(super) first: Option<Event>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    since: Moment,
    deferred: HashMap<(TargetKey, Arc<str>, Cause), Deferred>,
    refused: HashMap<(Arc<str>, Arc<str>, Arc<str>), Refused>,
}

const MINUTE: Duration = Duration::from_mins(1);
/// Kinds held in memory; more are written out early.
const MOST_KINDS: usize = 10_000;

impl Counts {
    pub(super) fn defer(&mut self, deferred: Deferred) -> Tick {
        let over = self.turn(deferred.at);
        let key = (
            deferred.target.clone(),
            deferred.step.agent.clone(),
            deferred.cause,
        );
        let first = match self.deferred.get_mut(&key) {
            Some(known) => {
                known.count += deferred.count;
                None
            }
            None => {
                self.deferred.insert(
                    key,
                    Deferred {
                        count: 0,
                        ..deferred.clone()
                    },
                );
                Some(Event::Deferred(deferred))
            }
        };
        Tick { over, first }
    }

    pub(super) fn refuse(&mut self, refused: Refused) -> Tick {
        let over = self.turn(refused.at);
        let key = (
            refused.target.clone(),
            refused.step.agent.clone(),
            refused.reason.clone(),
        );
        let first = match self.refused.get_mut(&key) {
            Some(known) => {
                known.count += refused.count;
                None
            }
            None => {
                self.refused.insert(
                    key,
                    Refused {
                        count: 0,
                        ..refused.clone()
                    },
                );
                Some(Event::Refused(refused))
            }
        };
        Tick { over, first }
    }

    fn turn(&mut self, now: Moment) -> Vec<Event> {
        let full = self.deferred.len() + self.refused.len() >= MOST_KINDS;
        if now.since(self.since) < MINUTE && !full {
            return Vec::new();
        }
        self.since = now;
        self.flush()
    }

    /// What has been counted and is not on record.
    pub(super) fn flush(&mut self) -> Vec<Event> {
        let deferred = self
            .deferred
            .drain()
            .filter(|(_, kind)| kind.count > 0)
            .map(|(_, kind)| Event::Deferred(kind));
        let refused = self
            .refused
            .drain()
            .filter(|(_, kind)| kind.count > 0)
            .map(|(_, kind)| Event::Refused(kind));
        deferred.chain(refused).collect()
    }
}
