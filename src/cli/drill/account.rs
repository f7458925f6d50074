//! The record beside what arrived: each arrival must be on record, with the
//! agent that caused it, and nothing that never arrived.

use std::collections::HashMap;
use std::sync::Arc;

use super::target::Target;
use crate::audit::{Event, Filter, events};
use crate::clock::Moment;
use crate::store::{Store, StoreError};

/// What the record says of a drill.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Calls that may have arrived.
    pub(super) calls: u64,
    /// How often a call was told to wait.
    pub(super) deferrals: u64,
    /// Calls without an agent.
    pub(super) unattributed: u64,
    /// By origin and path: no page is asked for twice, but one may be refused
    /// and asked for again.
    pages: HashMap<(String, String), u64>,
}

/// How record and arrivals differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Arrivals that are not on record.
    pub(super) unrecorded: u64,
    /// Calls on record that no target saw.
    pub(super) unseen: u64,
}

impl Account {
    /// Reads the record from `from` on.
    pub(super) fn read(store: &Store, from: Moment) -> Result<Self, StoreError> {
        let wanted = Filter {
            from: Some(from),
            ..Filter::default()
        };
        let mut account = Self::default();
        for recorded in events(store, wanted)? {
            match recorded?.event {
                Event::Call(call) if call.settlement.end.may_have_arrived() => {
                    account.calls += 1;
                    account.unattributed += u64::from(!call.intent.step.is_attributed());
                    let page = (
                        call.intent.target.origin.to_string(),
                        call.intent.path.to_string(),
                    );
                    *account.pages.entry(page).or_default() += 1;
                }
                Event::Deferred(deferred) => account.deferrals += deferred.count,
                _ => {}
            }
        }
        Ok(account)
    }

    /// Compares it with what the targets saw.
    pub(super) fn against(&self, targets: &[Arc<Target>]) -> Difference {
        let mut left = self.pages.clone();
        let mut difference = Difference::default();
        for target in targets {
            let origin = target.origin();
            for arrival in &target.log().arrivals {
                match left.get_mut(&(origin.clone(), arrival.path.clone())) {
                    Some(calls) if *calls > 0 => *calls -= 1,
                    _ => difference.unrecorded += 1,
                }
            }
        }
        difference.unseen = left.values().sum();
        difference
    }
}
