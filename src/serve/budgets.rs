//! What is left and what holds: as rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::desk::{AnswerError, Gate, ONE};
use super::manual;
use crate::admission::{Admission, Lane, Wait};
use crate::budget::{Level, Limit, Tier, rfc3339};
use crate::clock::wall_offset;
use crate::schedule::Handle;
use crate::target::{TargetKey, locate};

/// What is left on a lane.
pub(super) fn row(admission: &Admission, lane: &Lane) -> Value {
    let offset = wall_offset(&**admission.clock());
    let resolved = lane.resolved();
    let levels = admission.levels(lane);
    let limits = resolved
        .terms
        .tiers
        .iter()
        .zip(&levels)
        .flat_map(|(tier, level)| {
            level.limits.iter().map(move |left| {
                json!({
                    "scope": tier.scope.kind(),
                    "name": tier.scope.name(),
                    "limit": left.limit.to_string(),
                    "kind": kind(&left.limit),
                    "burst": left.limit.burst(),
                    "left": left.left,
                    "refill_at": rfc3339(left.full, offset),
                    "source": source(tier),
                })
            })
        });
    let (state, ready) = match admission.wait(lane, ONE) {
        Wait::None => ("open", Some(admission.clock().now())),
        Wait::Until(ready, cause) => (cause.as_str(), ready),
        Wait::Never => ("never", None),
        Wait::Denied => ("denied", None),
    };
    let mut row = json!({
        "target": lane.key(),
        "class": lane.key().class,
        "state": state,
        "envelope_revision": resolved.revision,
        "ready_at": ready.map(|ready| rfc3339(ready, offset)),
        "in_flight": levels.iter().map(|level| level.in_flight).max(),
        "concurrency": levels.iter().filter_map(|level| level.concurrency).min(),
        "limits": limits.collect::<Vec<_>>(),
    });
    if let Some(fields) = row.as_object_mut() {
        fields.extend(stops(&levels, offset));
        fields.extend(manual::fields(admission.manual(lane), offset));
    }
    row
}

fn kind(limit: &Limit) -> &'static str {
    match limit {
        Limit::Rate { .. } => "rate",
        Limit::Max { .. } => "max",
        Limit::Quota { .. } => "quota",
    }
}

fn source(tier: &Tier) -> String {
    let provenance = &tier.provenance;
    match &provenance.source {
        Some(source) => format!("{} ({source})", provenance.author),
        None => provenance.author.to_string(),
    }
}

fn stops(levels: &[Level], offset: i64) -> serde_json::Map<String, Value> {
    let mut fields = serde_json::Map::new();
    if let Some(pause) = levels
        .iter()
        .filter_map(|level| level.pause.as_ref())
        .max_by_key(|pause| pause.until)
    {
        let pause = json!({
            "until": rfc3339(pause.until, offset),
            "because": pause.because,
            "reason": pause.reason,
            "since": rfc3339(pause.since, offset),
            "step": pause.step.to_string(),
        });
        fields.insert("pause".into(), pause);
    }
    if let Some(hold) = levels.iter().find_map(|level| level.hold.as_ref()) {
        fields.insert("hold".into(), manual::word_json(hold, offset));
    }
    fields
}

/// Every target that is known now, with what waits for it.
pub(super) async fn all(
    admission: &Admission,
    schedule: Option<&Handle>,
) -> Result<Vec<Value>, AnswerError> {
    let mut waiting: BTreeMap<TargetKey, (usize, u64)> = BTreeMap::new();
    if let Some(schedule) = schedule
        && let Ok(snapshot) = schedule.look(usize::MAX).await
    {
        let lanes = snapshot.lanes.into_iter();
        waiting.extend(lanes.map(|lane| (lane.target, (lane.waiting, lane.calls))));
    }
    admission.lapse()?;
    admission.name_lanes()?;
    let rows = admission.lanes().into_iter().map(|lane| {
        let mut row = row(admission, &lane);
        let (tasks, calls) = waiting.get(lane.key()).copied().unwrap_or_default();
        if let Some(fields) = row.as_object_mut() {
            fields.insert("tasks_waiting".into(), tasks.into());
            fields.insert("calls".into(), calls.into());
        }
        row
    });
    Ok(rows.collect())
}

/// What holds for a call. Sends nothing and takes nothing.
pub(super) fn explain(gate: &Gate, url: &str, method: &str) -> Result<Value, AnswerError> {
    let Gate { admission, guard } = gate;
    let located =
        locate(url).map_err(|rejection| AnswerError::Question(format!("refused {rejection}")))?;
    let class = admission
        .rulebook()
        .class(&located.origin, method, &located.path, &located.query);
    let key = TargetKey::new(located.origin, class);
    admission.lapse()?;
    let lane = admission.lane(&key)?;
    let resolved = lane.resolved();
    let limits = resolved.terms.tiers.iter().flat_map(|tier| {
        let provenance = tier.provenance.clone();
        tier.limits.iter().map(move |limit| {
            json!({
                "scope": tier.scope.kind(),
                "name": tier.scope.name(),
                "limit": limit.to_string(),
                "kind": kind(limit),
                "burst": limit.burst(),
                "author": provenance.author,
                "source": provenance.source,
                "as_of": provenance.as_of,
                "note": provenance.note,
            })
        })
    });
    let blocked = guard
        .check_host(key.origin.host())
        .err()
        .map(|blocked| format!("address_blocked: {blocked}"));
    let denied = resolved
        .denied
        .as_ref()
        .map(|(scope, word)| format!("denied: by {} at {scope}", word.by));
    let mut row = json!({
        "target": key,
        "scheme": key.origin.scheme().as_str(),
        "host": key.origin.host(),
        "port": key.origin.port(),
        "class": key.class,
        "path": located.path,
        "group": group(&resolved.terms.tiers, &key),
        "limits": limits.collect::<Vec<_>>(),
        "concurrency": resolved.conduct().concurrency,
        "envelope_revision": resolved.revision,
        "blocked": blocked.or(denied),
    });
    if let Some(fields) = row.as_object_mut() {
        let offset = wall_offset(&**admission.clock());
        fields.extend(manual::fields(admission.manual(&lane), offset));
    }
    Ok(row)
}

fn group(tiers: &[Tier], key: &TargetKey) -> String {
    let group = tiers.iter().find(|tier| tier.scope.kind() == "group");
    group.map_or_else(|| key.origin.group().to_owned(), |tier| tier.scope.name())
}
