//! Events as programs read them: one object each, times in UTC by the wall
//! clock of then. Tables for people are made from the same objects.

use serde_json::{Map, Value, json};

use super::envelopes::{all_in_words, layers_json, limits_in_words};
use super::event::{Call, Deferred, Event, Refused, TaskRef};
use super::query::Recorded;
use crate::budget::{Hold, Pause, Scope, rfc3339};
use crate::clock::Moment;
use crate::step::Step;
use crate::target::TargetKey;

type Fields = Map<String, Value>;

/// An event with everything that is on record of it. `at` is when it was
/// known, which for a call is its end; unknown names are empty strings.
#[must_use]
pub fn event_json(recorded: &Recorded) -> Value {
    let Recorded {
        number,
        event,
        wall_offset,
        ..
    } = recorded;
    let time = |moment: Moment| rfc3339(moment, *wall_offset);
    let head = json!({"at": time(event.at()), "kind": event.kind(), "number": number});
    match event {
        Event::Call(call) => join([
            head,
            call_json(call, recorded),
            step_json(&call.intent.step),
        ]),
        Event::Deferred(deferred) => {
            let step = step_json(&deferred.step);
            join([head, deferred_json(deferred, *wall_offset), step])
        }
        Event::Refused(refused) => {
            let Refused {
                target,
                reason,
                detail,
                step,
                count,
                ..
            } = refused;
            let fields = json!({
                "target": target, "reason": reason, "detail": detail, "count": count,
            });
            join([head, fields, step_json(step)])
        }
        Event::Revised {
            revision, envelope, ..
        } => {
            let fields = json!({
                "envelope_revision": revision,
                "limits": limits_in_words(envelope),
                "layers": layers_json(envelope),
            });
            join([head, fields])
        }
        Event::Paused { scope, pause, .. } | Event::Resumed { scope, pause, .. } => {
            let pause_fields = pause_json(pause, *wall_offset);
            join([
                head,
                scope_json(scope),
                pause_fields,
                step_json(&pause.step),
            ])
        }
        Event::Held { scope, hold, .. } => {
            join([head, scope_json(scope), hold_json(hold, *wall_offset)])
        }
        Event::Released {
            scope, by, note, ..
        } => join([head, scope_json(scope), json!({"by": by, "note": note})]),
        Event::Opened {
            gate,
            version,
            rules,
            interrupted,
            ..
        } => {
            let fields = json!({
                "gate": gate, "version": version, "rules": rules, "interrupted": interrupted,
            });
            join([head, fields])
        }
        Event::Closed { gate, .. } => join([head, json!({"gate": gate})]),
        Event::ClockStepped { nanos, .. } => join([head, json!({"by_ms": nanos / 1_000_000})]),
        Event::Truncated {
            expected, found, ..
        } => join([head, json!({"expected": expected, "found": found})]),
        Event::Pruned {
            day,
            segment,
            hash,
            bytes,
            ..
        } => {
            let fields = json!({"day": day, "segment": segment, "hash": hash, "bytes": bytes});
            join([head, fields])
        }
        Event::BodiesLetGo { files, bytes, .. } => {
            join([head, json!({"files": files, "bytes": bytes})])
        }
        Event::Task {
            task,
            id,
            what,
            step,
            ..
        } => {
            let fields = json!({"task": task_name(*task), "id": id, "what": what});
            join([head, fields, step_json(step)])
        }
        Event::Set {
            scope,
            limits,
            word,
            ..
        } => {
            let fields = json!({"limits": all_in_words(limits)});
            let word = hold_json(word, *wall_offset);
            join([head, scope_json(scope), fields, word])
        }
        Event::Denied { scope, word, .. } => {
            join([head, scope_json(scope), hold_json(word, *wall_offset)])
        }
        Event::Reloaded { rules, waiting, .. } => {
            let fields = json!({"rules": rules, "waits_for_restart": waiting});
            join([head, fields])
        }
        Event::ReloadFailed { faults, .. } => join([head, json!({"faults": faults})]),
        Event::Lapsed { scope, what, .. } => join([head, scope_json(scope), json!({"what": what})]),
    }
}

/// What was decided, by whom and why, where an event is a decision. A call's
/// grant stands at the instant at which it was granted.
#[must_use]
pub fn decision_json(recorded: &Recorded) -> Option<Value> {
    let Recorded {
        event, wall_offset, ..
    } = recorded;
    let head = |decision: &str, why: Option<String>| {
        let at = rfc3339(event.at(), *wall_offset);
        json!({
            "at": at, "decision": decision, "why": why, "target": null, "envelope_revision": null,
            "agent": null, "trajectory": null, "step": null,
        })
    };
    Some(match event {
        Event::Call(call) => granted_json(call, recorded, head("granted", reason_to_send(call))),
        Event::Deferred(deferred) => {
            let fields = deferred_json(deferred, *wall_offset);
            let why = deferred.cause.as_str().to_owned();
            join([
                head("deferred", Some(why)),
                fields,
                step_json(&deferred.step),
            ])
        }
        Event::Refused(Refused {
            target,
            reason,
            detail,
            step,
            count,
            ..
        }) => {
            let fields = json!({"target": target, "reason": reason, "count": count});
            let why = format!("{reason}: {detail}");
            join([head("refused", Some(why)), fields, step_json(step)])
        }
        Event::Revised {
            revision, envelope, ..
        } => {
            let why = Some(limits_in_words(envelope).join(", "));
            join([head("revised", why), json!({"envelope_revision": revision})])
        }
        Event::Paused { scope, pause, .. } => {
            let fields = pause_json(pause, *wall_offset);
            let step = step_json(&pause.step);
            let why = pause.reason.to_string();
            join([
                head("paused", Some(why)),
                on_scope_json(scope),
                fields,
                step,
            ])
        }
        Event::Resumed { scope, pause, .. } => {
            let why = "the call that asked whether the pause is over was answered".to_owned();
            let fields = json!({"since": rfc3339(pause.since, *wall_offset)});
            join([head("resumed", Some(why)), on_scope_json(scope), fields])
        }
        Event::Held { scope, hold, .. } => {
            let head = head("held", Some(hold.note.to_string()));
            join([head, on_scope_json(scope), hold_json(hold, *wall_offset)])
        }
        Event::Released {
            scope, by, note, ..
        } => {
            let head = head("released", Some(note.to_string()));
            join([head, on_scope_json(scope), json!({"by": by})])
        }
        Event::Set {
            scope,
            limits,
            word,
            ..
        } => {
            let why = format!("{}: {}", all_in_words(limits).join(", "), word.note);
            let word = hold_json(word, *wall_offset);
            join([head("set", Some(why)), on_scope_json(scope), word])
        }
        Event::Denied { scope, word, .. } => {
            let head = head("denied", Some(word.note.to_string()));
            join([head, on_scope_json(scope), hold_json(word, *wall_offset)])
        }
        Event::Lapsed { scope, what, .. } => {
            let why = format!(
                "the end of what an operator had put there: {}",
                what.as_str()
            );
            join([head("lapsed", Some(why)), on_scope_json(scope)])
        }
        Event::Opened { .. }
        | Event::Closed { .. }
        | Event::ClockStepped { .. }
        | Event::Truncated { .. }
        | Event::Reloaded { .. }
        | Event::ReloadFailed { .. }
        | Event::Pruned { .. }
        | Event::BodiesLetGo { .. }
        | Event::Task { .. } => return None,
    })
}

fn granted_json(call: &Call, recorded: &Recorded, head: Value) -> Value {
    let intent = &call.intent;
    let fields = json!({
        "at": rfc3339(intent.decided, recorded.begun_offset),
        "number": recorded.number,
        "envelope_revision": intent.revision,
        "cost": intent.cost,
        "end": call.settlement.end.as_str(),
    });
    join([
        head,
        target_json(&intent.target),
        fields,
        step_json(&intent.step),
    ])
}

/// Why a call was sent beside that it was asked for.
fn reason_to_send(call: &Call) -> Option<String> {
    let attempt = (call.intent.attempt > 1).then(|| format!("attempt {}", call.intent.attempt));
    let hop = (call.intent.hop > 0).then(|| format!("redirect {}", call.intent.hop));
    let reasons: Vec<_> = attempt.into_iter().chain(hop).collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

fn call_json(call: &Call, recorded: &Recorded) -> Value {
    let (intent, settlement) = (&call.intent, &call.settlement);
    let begun = |moment: Moment| rfc3339(moment, recorded.begun_offset);
    let fields = json!({
        "gate": intent.gate,
        "method": intent.method,
        "path": intent.path,
        "envelope_revision": intent.revision,
        "scopes": intent.scopes,
        "cost": intent.cost,
        "attempt": intent.attempt,
        "hop": intent.hop,
        "task": intent.task.map(task_name),
        "decided_at": begun(intent.decided),
        "departed_at": settlement.departed.map(begun),
        "ended_at": rfc3339(settlement.ended, recorded.wall_offset),
        "end": settlement.end.as_str(),
        "status": settlement.status,
        "bytes": settlement.bytes,
        "peer": settlement.peer,
        "user_agent": intent.user_agent,
        "error": settlement.error,
    });
    join([target_json(&intent.target), fields])
}

fn deferred_json(deferred: &Deferred, wall_offset: i64) -> Value {
    let limit = deferred
        .limit
        .as_ref()
        .map(|(scope, limit)| json!({"scope": scope.kind(), "name": scope.name(), "limit": limit}));
    let fields = json!({
        "envelope_revision": deferred.revision,
        "cause": deferred.cause.as_str(),
        "limit": limit,
        "ready_at": deferred.ready.map(|ready| rfc3339(ready, wall_offset)),
        "count": deferred.count,
    });
    join([target_json(&deferred.target), fields])
}

fn pause_json(pause: &Pause, wall_offset: i64) -> Value {
    json!({
        "until": rfc3339(pause.until, wall_offset),
        "because": pause.because,
        "reason": pause.reason,
        "since": rfc3339(pause.since, wall_offset),
        "streak": pause.streak,
    })
}

fn hold_json(hold: &Hold, wall_offset: i64) -> Value {
    json!({
        "until": hold.until.map(|until| rfc3339(until, wall_offset)),
        "by": hold.by,
        "note": hold.note,
    })
}

fn target_json(target: &TargetKey) -> Value {
    json!({"target": target, "class": target.class})
}

fn scope_json(scope: &Scope) -> Value {
    json!({"scope": scope.kind(), "name": scope.name()})
}

/// A scope where a target stands elsewhere: a host and a class are targets,
/// a pool and a group are told from them by their kind.
fn on_scope_json(scope: &Scope) -> Value {
    let target = match scope {
        Scope::Host(_) | Scope::Class(..) => scope.name(),
        Scope::Pool(_) | Scope::Group(_) => scope.to_string(),
    };
    json!({"scope": scope.kind(), "target": target})
}

fn step_json(step: &Step) -> Value {
    let Step {
        agent,
        trajectory,
        step,
        goal,
    } = step;
    json!({"agent": agent, "trajectory": trajectory, "step": step, "goal": goal})
}

fn task_name(task: TaskRef) -> String {
    format!("{}/{}", task.job, task.number)
}

/// One object of several; of two fields of one name the later one stays.
fn join<const N: usize>(parts: [Value; N]) -> Value {
    let fields = parts.into_iter().filter_map(|part| match part {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    Value::Object(fields.flatten().collect::<Fields>())
}
