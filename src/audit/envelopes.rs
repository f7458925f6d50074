//! The envelopes that were ever in force, and their limits in words.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::event::Event;
use super::query::beside_calls;
use crate::budget::{Envelope, Layer, Limit, Reset, Revision, rfc3339};
use crate::store::{Space, Store, StoreError, last_number, numbered};

/// All envelopes of a store, by number.
pub fn envelopes(
    store: &Store,
) -> impl Iterator<Item = Result<(Revision, Envelope), StoreError>> + use<'_> {
    store.scan::<Envelope>(Space::Envelope, ..).map(|entry| {
        let (key, envelope) = entry?;
        Ok((Revision(last_number(&key)), envelope))
    })
}

/// The envelope of a number, if there is one.
///
/// # Errors
/// When the record cannot be read.
pub fn envelope(store: &Store, revision: Revision) -> Result<Option<Envelope>, StoreError> {
    store.get(Space::Envelope, &numbered(revision.0))
}

/// All envelopes as rows, with the time at which each came into force first.
///
/// # Errors
/// When the record cannot be read.
pub fn envelope_rows(store: &Store) -> Result<Vec<Value>, StoreError> {
    let mut since: HashMap<Revision, String> = HashMap::new();
    for found in beside_calls(store)? {
        let found = found?;
        if let Event::Revised { revision, at, .. } = found.event {
            since
                .entry(revision)
                .or_insert_with(|| rfc3339(at, found.wall_offset));
        }
    }
    let row = |entry: Result<(Revision, Envelope), _>| {
        entry.map(|(revision, envelope)| {
            let since = since.get(&revision).map(String::as_str);
            envelope_json(revision, &envelope, since)
        })
    };
    envelopes(store).map(row).collect()
}

/// An envelope as a row: its number, since when, and its layers.
#[must_use]
pub fn envelope_json(revision: Revision, envelope: &Envelope, since: Option<&str>) -> Value {
    json!({
        "envelope_revision": revision,
        "in_force_since": since,
        "limits": limits_in_words(envelope),
        "layers": layers_json(envelope),
    })
}

pub(super) fn layers_json(envelope: &Envelope) -> Vec<Value> {
    envelope.layers.iter().map(layer_json).collect()
}

fn layer_json(layer: &Layer) -> Value {
    let limits = layer.limits.iter().map(|limit| {
        json!({
            "limit": limit.to_string(),
            "words": in_words(limit),
            "burst": limit.burst(),
            "interval_ns": limit.interval(),
        })
    });
    json!({
        "scope": layer.scope,
        "pool": layer.pool,
        "limits": limits.collect::<Vec<_>>(),
        "concurrency": layer.concurrency,
        "arrival_margin_ms": u64::try_from(layer.arrival_margin.as_millis()).unwrap_or(u64::MAX),
        "source": layer.provenance.source,
        "as_of": layer.provenance.as_of,
        "note": layer.provenance.note,
        "author": layer.provenance.author,
    })
}

/// Every limit of an envelope as people say it: `host 30/min burst 5`.
#[must_use]
pub fn limits_in_words(envelope: &Envelope) -> Vec<String> {
    let layers = envelope.layers.iter();
    layers
        .flat_map(|layer| {
            let whose = match &layer.pool {
                Some(pool) => format!("{} {pool}", layer.scope),
                None => layer.scope.to_string(),
            };
            let at_once = layer.concurrency.map(|most| format!("{most} at once"));
            let limits = layer.limits.iter().map(in_words).chain(at_once);
            limits
                .map(move |words| format!("{whose} {words}"))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Limits as people say them.
#[must_use]
pub fn all_in_words(limits: &[Limit]) -> Vec<String> {
    limits.iter().map(in_words).collect()
}

/// A cap needs no word for its kind; a bucket lets nearly twice its number
/// through in its first period, so it does.
fn in_words(limit: &Limit) -> String {
    match limit {
        Limit::Max { burst, .. } => format!("{limit} burst {burst}"),
        Limit::Rate { burst, .. } => format!("rate {limit} burst {burst}"),
        Limit::Quota {
            reset: Reset::Utc, ..
        } => format!("quota {limit} reset UTC"),
        Limit::Quota {
            reset: Reset::Rolling,
            ..
        } => format!("quota {limit} rolling"),
    }
}
