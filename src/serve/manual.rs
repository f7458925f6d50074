//! What operators change by hand: as rows.

use std::time::Duration;

use serde_json::{Value, json};

use super::desk::{AnswerError, key};
use super::question::{Change, Manually};
use crate::admission::{Admission, Chosen, Lifted, Operator};
use crate::audit::all_in_words;
use crate::budget::{Hold, Manual, Scope, SetLimits, rfc3339};
use crate::clock::{Moment, wall_offset};

/// Makes a change; it is handed to the disk when this returns, not yet there.
pub(super) fn change(admission: &Admission, change: Change) -> Result<Value, AnswerError> {
    let Change {
        target,
        what,
        for_ms,
        by,
        note,
    } = change;
    admission.lapse()?;
    let chosen = chosen(admission, &target)?;
    let now = admission.clock().now();
    let until = for_ms.map(|ms| now.after(Duration::from_millis(ms)));
    let operator = Operator {
        by: by.into(),
        note: note.into(),
    };
    let (state, found) = match what {
        Manually::Hold => ("held", admission.hold(&chosen, until, operator)?),
        Manually::Deny => ("denied", admission.deny(&chosen, until, operator)?),
        Manually::Set { limits } => {
            let limits = SetLimits::checked(&limits)
                .map_err(|error| AnswerError::Question(error.to_string()))?;
            let before = in_force(admission, &chosen)?;
            let found = admission.set(&chosen, limits.clone(), until, operator)?;
            return changed(admission, &chosen, "set", found, until).map(|mut row| {
                if let Some(fields) = row.as_object_mut() {
                    fields.insert("limits".into(), all_in_words(&limits).into());
                    fields.insert("instead_of".into(), before.into());
                }
                row
            });
        }
        Manually::Release => {
            let lifted = admission.release(&chosen, operator)?;
            let state = if lifted.is_empty() {
                "nothing to take back"
            } else {
                "released"
            };
            let lifted: Vec<_> = lifted.into_iter().map(Lifted::as_str).collect();
            return Ok(json!({"target": name(&chosen), "state": state, "lifted": lifted}));
        }
    };
    changed(admission, &chosen, state, found, until)
}

fn changed(
    admission: &Admission,
    chosen: &Chosen,
    state: &str,
    found: bool,
    until: Option<Moment>,
) -> Result<Value, AnswerError> {
    let target = name(chosen);
    if !found {
        return Err(AnswerError::Question(format!(
            "no calls go to {target} by the rules in force: there is nothing to change"
        )));
    }
    let offset = wall_offset(&**admission.clock());
    let until = until.map(|until| rfc3339(until, offset));
    Ok(json!({"target": target, "state": state, "until": until}))
}

/// The limits of a scope before a change.
fn in_force(admission: &Admission, chosen: &Chosen) -> Result<Vec<String>, AnswerError> {
    let limits = match chosen {
        Chosen::Scope(scope) => {
            let lanes = admission.lanes();
            let resolved = lanes.iter().map(|lane| lane.resolved());
            resolved
                .flat_map(|resolved| resolved.terms.tiers.clone())
                .find(|tier| tier.scope == *scope)
        }
        Chosen::Target(key) => {
            let tiers = admission.lane(key)?.resolved().terms.tiers.clone();
            tiers.into_iter().find(|tier| tier.scope == chosen.scope())
        }
    };
    Ok(limits.map_or_else(Vec::new, |tier| all_in_words(&tier.limits)))
}

/// What a word of an operator is about, as it is listed.
fn name(chosen: &Chosen) -> String {
    match chosen {
        Chosen::Target(key) => key.to_string(),
        Chosen::Scope(scope) => scope.to_string(),
    }
}

fn chosen(admission: &Admission, text: &str) -> Result<Chosen, AnswerError> {
    match text.parse::<Scope>() {
        Ok(scope @ (Scope::Pool(_) | Scope::Group(_))) => Ok(Chosen::Scope(scope)),
        _ => key(admission, text).map(Chosen::Target),
    }
}

/// Whose word it is, as it stands in a row.
pub(super) fn word_json(word: &Hold, offset: i64) -> Value {
    json!({
        "until": word.until.map(|until| rfc3339(until, offset)),
        "by": word.by,
        "note": word.note,
        "since": rfc3339(word.since, offset),
    })
}

/// Manual changes as fields of a target's row: `set` and `denied`.
pub(super) fn fields(manual: Vec<(Scope, Manual)>, offset: i64) -> serde_json::Map<String, Value> {
    let mut fields = serde_json::Map::new();
    let at = |scope: &Scope, word: &Hold| {
        let mut row = json!({"scope": scope.kind(), "name": scope.name()});
        if let (Some(row), Value::Object(word)) = (row.as_object_mut(), word_json(word, offset)) {
            row.extend(word);
        }
        row
    };
    let mut set = Vec::new();
    for (
        scope,
        Manual {
            set: limits,
            denied,
        },
    ) in manual
    {
        set.extend(limits.map(|limits| {
            let mut row = at(&scope, &limits.word);
            if let Some(row) = row.as_object_mut() {
                row.insert("limits".into(), all_in_words(&limits.limits).into());
            }
            row
        }));
        if let Some(word) = denied {
            fields.entry("denied").or_insert_with(|| at(&scope, &word));
        }
    }
    if !set.is_empty() {
        fields.insert("set".into(), set.into());
    }
    fields
}
