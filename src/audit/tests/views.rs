use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::{Value, json};

use super::bench::*;
use crate::audit::*;
use crate::budget::{
    Because, Cause, Envelope, Hold, Layer, Limit, ManualKind, Pause, Provenance, Reset, Revision,
    Scope,
};
use crate::outcome::End;
use crate::step::Step;
use crate::store::{Space, numbered};

const HOST: &str = "host:https://api.github.com";

fn layer(scope: &str, limits: Vec<Limit>) -> Layer {
    Layer {
        scope: scope.into(),
        pool: (scope == "pool").then(|| "github".into()),
        limits,
        concurrency: None,
        arrival_margin: Duration::from_millis(25),
        provenance: Provenance {
            source: Some("https://docs.github.com/rest".into()),
            as_of: Some("2025-11-30".into()),
            ..Provenance::by("tidegate.toml")
        },
    }
}

pub(super) fn envelope_of_github() -> Envelope {
    let burst = |n| NonZeroU32::new(n).unwrap();
    let max = Limit::max("30/min".parse().unwrap(), burst(5)).unwrap();
    let rate = Limit::rate("20/s".parse().unwrap(), burst(20)).unwrap();
    let utc = Limit::quota("1000/day".parse().unwrap(), Reset::Utc);
    let rolling = Limit::quota("7/2day".parse().unwrap(), Reset::Rolling);
    let host = Layer {
        concurrency: Some(burst(2)),
        ..layer("host", vec![max, utc])
    };
    Envelope {
        layers: vec![
            layer("pool", vec![rate]),
            host,
            layer("class", vec![rolling]),
        ],
    }
}

fn pause() -> Pause {
    Pause {
        until: START.after(MINUTE),
        because: Because::Throttled,
        reason: "429 Retry-After: 60".into(),
        step: Step::new("scout", "run-17", "4", "map"),
        since: START,
        streak: 2,
        probing: false,
    }
}

fn step_fields() -> Value {
    json!({"agent": "scout", "trajectory": "run-17", "step": "4", "goal": "map"})
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "what is given is made for it, by `json!`"
)]
fn with(mut fields: Value, more: Value) -> Value {
    fields
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    fields
}

fn github_call() -> Call {
    Call {
        intent: Intent {
            gate: 3,
            target: "https://api.github.com#search".parse().unwrap(),
            method: "GET".into(),
            path: "/search/code".into(),
            step: Step::new("scout", "run-17", "4", "map"),
            revision: Revision(9),
            cost: 2,
            attempt: 2,
            hop: 1,
            task: Some(TaskRef { job: 5, number: 12 }),
            decided: START,
            scopes: vec![
                HOST.parse().unwrap(),
                "class:https://api.github.com#search".parse().unwrap(),
            ],
            user_agent: "tidegate/0.1".into(),
        },
        settlement: Settlement {
            departed: Some(START.after(Duration::from_millis(3))),
            ended: START.after(Duration::from_millis(250)),
            end: End::Partial,
            status: Some(200),
            bytes: 4096,
            peer: Some("140.82.121.6".parse().unwrap()),
            error: Some("the answer was cut".into()),
        },
    }
}

fn every_kind() -> Vec<(Event, Value, Option<Value>)> {
    let at = START;
    let noon = "2025-12-01T12:00:00.000Z";
    let later = "2025-12-01T12:01:00.000Z";
    let host: Scope = HOST.parse().unwrap();
    let on_host = json!({"scope": "host", "name": "https://api.github.com"});
    let decided_on_host = json!({"scope": "host", "target": "https://api.github.com"});
    let deferral = Deferred {
        step: pause().step,
        limit: Some((host.clone(), "30/min".to_owned())),
        count: 17,
        ..deferred("https://api.github.com#search", "", Cause::BudgetEmpty, at)
    };
    let deferral_fields = with(
        step_fields(),
        json!({
            "target": "https://api.github.com#search", "class": "search", "envelope_revision": 1,
            "cause": "budget_empty", "ready_at": later, "count": 17,
            "limit": {"scope": "host", "name": "https://api.github.com", "limit": "30/min"},
        }),
    );
    let pause_fields = with(
        step_fields(),
        json!({
            "until": later, "because": "throttled", "reason": "429 Retry-After: 60", "since": noon,
            "streak": 2,
        }),
    );
    let hold = Hold {
        until: Some(at.after(MINUTE)),
        by: "ops".into(),
        note: "call me".into(),
        since: at,
    };
    let hold_fields = json!({"until": later, "by": "ops", "note": "call me"});
    let refusal = Refused {
        step: pause().step,
        count: 4,
        ..refused("http://169.254.169.254", "", at)
    };
    let refusal_fields = with(
        step_fields(),
        json!({
            "target": "http://169.254.169.254", "reason": "address_blocked", "count": 4,
        }),
    );
    let task = TaskRef { job: 5, number: 12 };
    vec![
        (
            Event::Call(github_call()),
            with(
                step_fields(),
                json!({
                    "target": "https://api.github.com#search", "class": "search", "gate": 3,
                    "method": "GET", "path": "/search/code", "envelope_revision": 9,
                    "scopes": [HOST, "class:https://api.github.com#search"], "cost": 2, "attempt": 2,
                    "hop": 1, "task": "5/12", "decided_at": noon,
                    "departed_at": "2025-12-01T12:00:00.003Z", "ended_at": "2025-12-01T12:00:00.250Z",
                    "at": "2025-12-01T12:00:00.250Z", "end": "partial", "status": 200, "bytes": 4096,
                    "peer": "140.82.121.6", "user_agent": "tidegate/0.1", "error": "the answer was cut",
                }),
            ),
            Some(with(
                step_fields(),
                json!({
                    "decision": "granted", "target": "https://api.github.com#search",
                    "class": "search", "envelope_revision": 9, "number": 7, "cost": 2,
                    "why": "attempt 2, redirect 1", "end": "partial",
                }),
            )),
        ),
        (
            Event::Deferred(deferral),
            deferral_fields.clone(),
            Some(with(
                deferral_fields,
                json!({"decision": "deferred", "why": "budget_empty"}),
            )),
        ),
        (
            Event::Refused(refusal),
            with(
                refusal_fields.clone(),
                json!({
                    "detail": "link-local addresses are not reachable from here",
                }),
            ),
            Some(with(
                refusal_fields,
                json!({
                    "decision": "refused", "envelope_revision": null,
                    "why": "address_blocked: link-local addresses are not reachable from here",
                }),
            )),
        ),
        (
            Event::Paused {
                scope: host.clone(),
                pause: pause(),
                at,
            },
            with(on_host.clone(), pause_fields.clone()),
            Some(with(
                with(decided_on_host.clone(), pause_fields.clone()),
                json!({
                    "decision": "paused", "why": "429 Retry-After: 60", "envelope_revision": null,
                }),
            )),
        ),
        (
            Event::Resumed {
                scope: host.clone(),
                pause: pause(),
                at,
            },
            with(on_host.clone(), pause_fields),
            Some(with(
                decided_on_host.clone(),
                json!({
                    "decision": "resumed", "since": noon, "envelope_revision": null, "agent": null,
                    "trajectory": null, "step": null,
                    "why": "the call that asked whether the pause is over was answered",
                }),
            )),
        ),
        (
            Event::Held {
                scope: host.clone(),
                hold: hold.clone(),
                at,
            },
            with(on_host.clone(), hold_fields.clone()),
            Some(with(
                with(decided_on_host.clone(), hold_fields.clone()),
                json!({
                    "decision": "held", "why": "call me", "envelope_revision": null, "agent": null,
                    "trajectory": null, "step": null,
                }),
            )),
        ),
        (
            Event::Set {
                scope: host.clone(),
                limits: vec![Limit::quota("9/day".parse().unwrap(), Reset::Utc)],
                word: hold.clone(),
                at,
            },
            with(
                with(
                    on_host.clone(),
                    json!({"limits": ["quota 9/day reset UTC"]}),
                ),
                hold_fields.clone(),
            ),
            Some(with(
                with(decided_on_host.clone(), hold_fields.clone()),
                json!({
                    "decision": "set", "why": "quota 9/day reset UTC: call me", "agent": null,
                    "envelope_revision": null, "trajectory": null, "step": null,
                }),
            )),
        ),
        (
            Event::Denied {
                scope: host.clone(),
                word: hold,
                at,
            },
            with(on_host.clone(), hold_fields.clone()),
            Some(with(
                with(decided_on_host.clone(), hold_fields),
                json!({
                    "decision": "denied", "why": "call me", "agent": null,
                    "envelope_revision": null, "trajectory": null, "step": null,
                }),
            )),
        ),
        (
            Event::Lapsed {
                scope: host.clone(),
                what: ManualKind::Deny,
                at,
            },
            with(on_host.clone(), json!({"what": "deny"})),
            Some(with(
                decided_on_host.clone(),
                json!({
                    "decision": "lapsed", "agent": null,
                    "why": "the end of what an operator had put there: deny",
                    "envelope_revision": null, "trajectory": null, "step": null,
                }),
            )),
        ),
        (
            Event::Released {
                scope: host,
                by: "ops".into(),
                note: "they called".into(),
                at,
            },
            with(on_host, json!({"by": "ops", "note": "they called"})),
            Some(with(
                decided_on_host,
                json!({
                    "decision": "released", "by": "ops", "why": "they called", "agent": null,
                    "envelope_revision": null, "trajectory": null, "step": null,
                }),
            )),
        ),
        (
            Event::Opened {
                gate: 3,
                version: "0.1.0".into(),
                rules: "ab12".into(),
                interrupted: 2,
                at,
            },
            json!({"gate": 3, "version": "0.1.0", "rules": "ab12", "interrupted": 2}),
            None,
        ),
        (Event::Closed { gate: 3, at }, json!({"gate": 3}), None),
        (
            Event::Reloaded {
                rules: "ab12".into(),
                waiting: vec!["contact".into()],
                at,
            },
            json!({"rules": "ab12", "waits_for_restart": ["contact"]}),
            None,
        ),
        (
            Event::ReloadFailed {
                faults: vec!["tidegate.toml:3: x".into()],
                at,
            },
            json!({"faults": ["tidegate.toml:3: x"]}),
            None,
        ),
        (
            Event::ClockStepped {
                nanos: -3_600_000_000_000,
                at,
            },
            json!({"by_ms": -3_600_000}),
            None,
        ),
        (
            Event::Truncated {
                expected: 9,
                found: 8,
                at,
            },
            json!({"expected": 9, "found": 8}),
            None,
        ),
        (
            Event::Pruned {
                day: "2025-09-01".into(),
                segment: 9,
                hash: "ab12".into(),
                bytes: 70,
                at,
            },
            json!({"day": "2025-09-01", "segment": 9, "hash": "ab12", "bytes": 70}),
            None,
        ),
        (
            Event::BodiesLetGo {
                files: 3,
                bytes: 70,
                at,
            },
            json!({"files": 3, "bytes": 70}),
            None,
        ),
        (
            Event::Task {
                task,
                id: "t1".into(),
                what: "cancelled".into(),
                step: pause().step,
                at,
            },
            with(
                step_fields(),
                json!({"task": "5/12", "id": "t1", "what": "cancelled"}),
            ),
            None,
        ),
    ]
}

#[test]
fn every_kind_of_event_is_shown_with_all_of_its_fields() {
    for (event, fields, decision) in every_kind() {
        let head = json!({
            "at": "2025-12-01T12:00:00.000Z", "kind": event.kind(), "number": 7,
        });
        let recorded = found(event);
        assert_eq!(event_json(&recorded), with(head, fields));
        let decision =
            decision.map(|fields| with(json!({"at": "2025-12-01T12:00:00.000Z"}), fields));
        assert_eq!(decision_json(&recorded), decision);
    }
}

#[test]
fn a_revision_is_shown_with_its_limits_in_words() {
    let event = Event::Revised {
        revision: Revision(9),
        envelope: envelope_of_github(),
        at: START,
    };
    let recorded = found(event);
    let words = [
        "pool github rate 20/s burst 20",
        "host 30/min burst 5",
        "host quota 1000/day reset UTC",
        "host 2 at once",
        "class quota 7/2day rolling",
    ];
    assert_eq!(event_json(&recorded)["limits"], json!(words));
    let decision = decision_json(&recorded).unwrap();
    assert_eq!(decision["decision"], "revised");
    assert_eq!(decision["envelope_revision"], 9);
    assert_eq!(decision["why"], words.join(", "));
}

#[test]
fn a_first_sending_needs_no_reason_and_unknown_times_are_null() {
    let call = ended(
        intent("https://a.test", "scout", START),
        START,
        End::Abandoned,
    );
    let recorded = found(Event::Call(call));
    assert_eq!(decision_json(&recorded).unwrap()["why"], Value::Null);
    let shown = event_json(&recorded);
    for field in ["task", "departed_at", "status", "peer", "error"] {
        assert_eq!(shown[field], Value::Null, "{field}");
    }
    assert_eq!(shown["class"], "default");
    let mut held_back = deferred("https://a.test", "scout", Cause::Held, START);
    held_back.ready = None;
    let shown = event_json(&found(Event::Deferred(held_back)));
    assert_eq!(
        (&shown["ready_at"], &shown["limit"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn every_envelope_is_listed_with_the_time_it_came_into_force_first() {
    let bench = Bench::new();
    let other = Envelope {
        layers: vec![layer("group", vec![])],
    };
    for (number, envelope) in [(1, &envelope_of_github()), (2, &other)] {
        bench.clock.advance(HOUR);
        let revision = Revision(number);
        let event = Event::Revised {
            revision,
            envelope: envelope.clone(),
            at: bench.now(),
        };
        let also = |changes: &mut crate::store::Changes| {
            changes.put(Space::Envelope, &numbered(number), envelope);
        };
        bench.log().note_with(event, also).detach();
        for _ in 0..100 {
            bench.call(
                intent("https://a.test", "scout", bench.now()),
                Duration::from_secs(1),
            );
        }
    }
    // Of an older build, say: known, and never announced.
    bench.change(|changes| changes.put(Space::Envelope, &numbered(3), &other));
    let rows = envelope_rows(bench.store()).unwrap();
    let since: Vec<_> = rows
        .iter()
        .map(|row| row["in_force_since"].clone())
        .collect();
    assert_eq!(
        since,
        [
            json!("2025-12-01T13:00:00.000Z"),
            json!("2025-12-01T14:01:40.000Z"),
            Value::Null
        ]
    );
    let all: Result<Vec<_>, _> = envelopes(bench.store()).collect();
    let expected = [(1, envelope_of_github()), (2, other.clone()), (3, other)];
    assert_eq!(
        all.unwrap(),
        expected.map(|(number, envelope)| (Revision(number), envelope))
    );
    let host = &rows[0]["layers"][1];
    assert_eq!(
        *host,
        json!({
            "scope": "host", "pool": null, "concurrency": 2, "arrival_margin_ms": 25,
            "source": "https://docs.github.com/rest", "as_of": "2025-11-30", "note": null,
            "author": "tidegate.toml",
            "limits": [
                {"limit": "30/min", "words": "30/min burst 5", "burst": 5, "interval_ns": 2_307_692_308_u64},
                {"limit": "1000/day", "words": "quota 1000/day reset UTC", "burst": 1000, "interval_ns": 86_400_000_000_u64},
            ],
        })
    );
    assert_eq!(rows[0]["layers"][0]["pool"], "github");
    assert_eq!(envelope(bench.store(), Revision(9)).unwrap(), None);
}

#[test]
fn a_decision_on_several_targets_names_them_as_an_operator_would() {
    for scope in [
        Scope::Pool("github".into()),
        Scope::Group("github".into()),
        Scope::Host("https://api.github.com".parse().unwrap()),
    ] {
        let event = Event::Released {
            scope: scope.clone(),
            by: "me".into(),
            note: "".into(),
            at: START,
        };
        let decision = decision_json(&found(event)).unwrap();
        let target = decision["target"].as_str().unwrap();
        match &scope {
            Scope::Host(origin) => assert_eq!(target, origin.to_string()),
            several => assert_eq!(target.parse::<Scope>().unwrap(), *several),
        }
    }
}
