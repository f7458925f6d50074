//! What was seen of each host: how much it got, what it refused, and under
//! which envelope. What a first file of rules is made of.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::envelopes::envelope;
use super::event::{Call, Event};
use crate::budget::{Because, Envelope, Revision, Scope};
use crate::outcome::End;
use crate::store::{Store, StoreError};
use crate::target::Origin;

/// Nanoseconds of a minute.
const MINUTE: u64 = 60_000_000_000;
/// Minutes that are not over for certain: calls go on record when they end.
const OPEN: usize = 16;
/// Different words of a target that are kept.
const WORDS: usize = 3;

/// Hosts as they were seen.
#[derive(Debug, Default)]
pub struct Seen {
    hosts: HashMap<Origin, Host>,
}

#[derive(Debug, Default)]
struct Host {
    calls: u64,
    throttled: u64,
    words: BTreeSet<Arc<str>>,
    latest: Option<(Revision, Vec<Scope>)>,
    minutes: BTreeMap<u64, Minute>,
    clean: BTreeSet<u64>,
    least_refused: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    calls: u64,
    throttled: u64,
}

/// One host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeenHost {
    /// Which.
    pub target: Origin,
    /// Calls that may have arrived.
    pub calls: u64,
    /// Calls of these that it refused for now.
    pub throttled: u64,
    /// Some of its words when it did, such as `429 Retry-After: 120`.
    pub words: Vec<Arc<str>>,
    /// The envelope of its latest call.
    pub envelope_revision: Revision,
    /// The limits of that envelope.
    pub envelope: Envelope,
    /// The buckets that its latest call drew from.
    pub scopes: Vec<Scope>,
    /// The fewest calls of a minute in which it refused one.
    pub least_refused_per_min: Option<u64>,
    /// The most calls of a minute in which it refused none, below that.
    pub most_accepted_per_min: Option<u64>,
}

impl Seen {
    /// Takes an event in; those that say nothing of a host are left out.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Call(call) if call.settlement.end.may_have_arrived() => {
                let host = self.hosts.entry(call.intent.target.origin.clone());
                host.or_default().call(call);
            }
            Event::Paused { scope, pause, .. } if pause.because == Because::Throttled => {
                let (Scope::Host(origin) | Scope::Class(origin, _)) = scope else {
                    return;
                };
                let words = &mut self.hosts.entry(origin.clone()).or_default().words;
                if words.len() < WORDS {
                    words.insert(pause.reason.clone());
                }
            }
            _ => {}
        }
    }

    /// The hosts that got calls, those with most of them first.
    ///
    /// # Errors
    /// When an envelope cannot be read.
    pub fn hosts(self, store: &Store) -> Result<Vec<SeenHost>, StoreError> {
        let mut hosts = Vec::with_capacity(self.hosts.len());
        for (target, mut host) in self.hosts {
            host.close(0);
            let Some((revision, scopes)) = host.latest else {
                continue;
            };
            let Some(envelope) = envelope(store, revision)? else {
                continue;
            };
            let refused = host.least_refused;
            let mut below = host.clean.range(..refused.unwrap_or(u64::MAX));
            hosts.push(SeenHost {
                target,
                calls: host.calls,
                throttled: host.throttled,
                words: host.words.into_iter().collect(),
                envelope_revision: revision,
                envelope,
                scopes,
                least_refused_per_min: refused,
                most_accepted_per_min: below.next_back().copied(),
            });
        }
        hosts.sort_by(|a, b| (b.calls, &a.target).cmp(&(a.calls, &b.target)));
        Ok(hosts)
    }
}

impl Host {
    fn call(&mut self, call: &Call) {
        let throttled = u64::from(call.settlement.end == End::Throttled);
        self.calls += 1;
        self.throttled += throttled;
        let class = &call.intent.target.class;
        // A class's own call says nothing of the host that another one would not.
        if class.is_default() || self.latest.is_none() {
            self.latest = Some((call.intent.revision, call.intent.scopes.clone()));
        }
        let at = call.settlement.departed.unwrap_or(call.intent.decided);
        let minute = self.minutes.entry(at.as_nanos() / MINUTE).or_default();
        minute.calls += 1;
        minute.throttled += throttled;
        self.close(OPEN);
    }

    /// Keeps what `open` latest minutes hold, and of the others their sums.
    fn close(&mut self, open: usize) {
        while self.minutes.len() > open
            && let Some((_, minute)) = self.minutes.pop_first()
        {
            if minute.throttled == 0 {
                self.clean.insert(minute.calls);
            } else {
                let least = self.least_refused.unwrap_or(u64::MAX);
                self.least_refused = Some(least.min(minute.calls));
            }
        }
    }
}
