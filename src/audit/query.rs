//! Reading the log: by time, target, agent and trajectory.

use std::collections::HashMap;
use std::ops::Bound;

use super::event::{Event, Intent};
use super::log::{Entry, LONGEST};
use super::names::Names;
use super::segment::{Numbered, Segment};
use crate::clock::Moment;
use crate::store::{Space, Store, StoreError, last_number, paired};
use crate::target::TargetKey;

/// Which events are wanted. Everything unset matches all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// A target; its origin alone stands for all its classes.
    pub target: Option<TargetKey>,
    /// A registrable domain or host, with everything below it.
    pub site: Option<String>,
    /// Whose calls.
    pub agent: Option<String>,
    /// Of which trajectory.
    pub trajectory: Option<String>,
    /// Not before.
    pub from: Option<Moment>,
    /// Before.
    pub to: Option<Moment>,
}

/// An event as it was found, with what translates its moments.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its number in the log.
    pub number: u64,
    /// The event.
    pub event: Event,
    /// Nanoseconds from decision time to the wall clock of then.
    pub wall_offset: i64,
}

/// The log as it stands: events in the order in which they became known.
///
/// # Errors
/// When the record cannot be read.
pub fn events(
    store: &Store,
    filter: Filter,
) -> Result<impl Iterator<Item = Result<Recorded, StoreError>> + use<'_>, StoreError> {
    // What is open now may be packed while segments are read: it is looked at
    // first, and what a segment then shows again is the same event.
    let (over, _) = open_entries(store)?;
    let mut over: HashMap<u64, Event> = over
        .into_iter()
        .map(|entry| (entry.number, entry.event))
        .collect();
    let names = Names::load(store)?;
    let longest: u64 = store.get(Space::Meta, LONGEST)?.unwrap_or(0);
    let offset: i64 = store.get(Space::Meta, b"wall")?.unwrap_or(0);
    let from = filter.from.map_or(Bound::Unbounded, |from| {
        Bound::Included(paired(from.as_nanos(), 0).to_vec())
    });
    let to = filter.to.map_or(Bound::Unbounded, |to| {
        Bound::Excluded(paired(to.as_nanos().saturating_add(longest), u64::MAX).to_vec())
    });
    let mut segments = store.scan::<Segment>(Space::Segment, (from, to));
    let mut ready: Vec<Result<Recorded, StoreError>> = Vec::new();
    let mut rest = None;
    let mut ended = false;
    let all = std::iter::from_fn(move || {
        loop {
            if let Some(next) = ready.pop() {
                return Some(next);
            }
            if ended {
                let rest = rest.get_or_insert_with(|| {
                    let mut left: Vec<(u64, Event)> = over.drain().collect();
                    left.sort_by_key(|(number, event)| std::cmp::Reverse((event.at(), *number)));
                    left
                });
                let (number, event) = rest.pop()?;
                return Some(Ok(Recorded {
                    number,
                    event,
                    wall_offset: offset,
                }));
            }
            match segments.next() {
                None => ended = true,
                Some(Err(error)) => {
                    ended = true;
                    over.clear();
                    return Some(Err(error));
                }
                Some(Ok((_, segment))) => {
                    let wall_offset = segment.wall_offset;
                    let events =
                        segment
                            .unpack(&names)
                            .flatten()
                            .map(|Numbered { number, event }| {
                                over.remove(&number);
                                Ok(Recorded {
                                    number,
                                    event,
                                    wall_offset,
                                })
                            });
                    ready = events.collect();
                    ready.reverse();
                }
            }
        }
    });
    Ok(all.filter(move |entry| {
        entry
            .as_ref()
            .map_or(true, |recorded| filter.matches(&recorded.event))
    }))
}

/// Calls that are under way now.
///
/// # Errors
/// When the record cannot be read.
pub fn under_way(store: &Store) -> Result<Vec<(u64, Intent)>, StoreError> {
    open_entries(store).map(|(_, under)| under)
}

type Open = (Vec<Numbered>, Vec<(u64, Intent)>);

fn open_entries(store: &Store) -> Result<Open, StoreError> {
    let (mut over, mut under) = (Vec::new(), Vec::new());
    for entry in store.scan::<Entry>(Space::Open, ..) {
        let (key, entry) = entry?;
        let number = last_number(&key);
        match entry {
            Entry::Over(event) => over.push(Numbered { number, event }),
            Entry::Under(intent) => under.push((number, intent)),
        }
    }
    Ok((over, under))
}

impl Filter {
    /// Does the event belong to what was asked for?
    #[must_use]
    pub fn matches(&self, event: &Event) -> bool {
        let at = event.begin();
        if self.from.is_some_and(|from| event.at() < from) || self.to.is_some_and(|to| at >= to) {
            return false;
        }
        let step = match event {
            Event::Call(call) => Some(&call.intent.step),
            Event::Deferred(deferred) => Some(&deferred.step),
            Event::Refused(refused) => Some(&refused.step),
            Event::Paused { pause, .. } => Some(&pause.step),
            Event::Task { step, .. } => Some(step),
            _ => None,
        };
        let named = |wanted: &Option<String>, name: fn(&crate::step::Step) -> &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| step.is_some_and(|step| name(step) == wanted))
        };
        named(&self.agent, |step| &step.agent)
            && named(&self.trajectory, |step| &step.trajectory)
            && self.speaks_of(event)
    }

    fn speaks_of(&self, event: &Event) -> bool {
        if self.target.is_none() && self.site.is_none() {
            return true;
        }
        let target = match event {
            Event::Call(call) => call.intent.target.to_string(),
            Event::Deferred(deferred) => deferred.target.to_string(),
            Event::Refused(refused) => refused.target.to_string(),
            Event::Paused { scope, .. }
            | Event::Resumed { scope, .. }
            | Event::Held { scope, .. }
            | Event::Released { scope, .. } => scope.name(),
            _ => return false,
        };
        let Ok(found) = target.parse::<TargetKey>() else {
            return self.target.is_none() && self.site.as_deref() == Some(&target);
        };
        let on_target = self.target.as_ref().is_none_or(|wanted| {
            wanted.origin == found.origin
                && (wanted.class == found.class || wanted.class == crate::target::Class::default())
        });
        let on_site = self.site.as_ref().is_none_or(|site| {
            let host = found.origin.host();
            host == site
                || host
                    .strip_suffix(site.as_str())
                    .is_some_and(|front| front.ends_with('.'))
        });
        on_target && on_site
    }
}
