//! `status` in words.

use std::fmt::Write as _;

use serde_json::Value;

use super::table::text;

/// The row of a status, told to a person.
pub(super) fn words(row: &Value) -> String {
    let mut words = String::new();
    let running = row
        .get("running")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let state = if running {
        "a run is working on it"
    } else {
        "nothing runs on it"
    };
    let _ = writeln!(words, "{}: {state}", field(row, "store"));
    for job in items(row, "jobs") {
        let outcomes = job
            .get("outcomes")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let outcomes = outcomes.filter(|(_, count)| count.as_u64() != Some(0));
        let outcomes: Vec<String> = outcomes
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        let outcomes = if outcomes.is_empty() {
            String::new()
        } else {
            format!(" ({})", outcomes.join(", "))
        };
        let [tasks, complete, pending] =
            ["tasks", "complete", "pending"].map(|name| field(job, name));
        let refresh = match field(job, "refresh") {
            round if round.is_empty() || round == "0" => String::new(),
            round => format!(" (refresh {round})"),
        };
        let _ = writeln!(words, "{}{refresh}", field(job, "out"));
        let _ = writeln!(
            words,
            "  {tasks} tasks: {complete} complete{outcomes}, {pending} left"
        );
        if job.get("again").is_some() {
            let again = field(job, "again");
            let _ = writeln!(
                words,
                "  {again} to be asked for again by the next run of their list"
            );
        }
        if job.get("queued").is_some() {
            let [queued, running, backoff] =
                ["queued", "running", "backoff"].map(|name| field(job, name));
            let _ = writeln!(
                words,
                "  {running} running, {queued} queued, {backoff} in back-off"
            );
        }
        words.push_str(&outlook(job));
        for target in items(job, "targets") {
            let [name, waiting, calls] =
                ["target", "tasks_waiting", "calls"].map(|name| field(target, name));
            let stuck = match field(target, "cause") {
                cause if cause.is_empty() => String::new(),
                cause => match field(target, "ready_at") {
                    at if at.is_empty() => format!(", {cause} until released"),
                    at => format!(", {cause} until {at}"),
                },
            };
            let _ = writeln!(words, "  {name}: {waiting} waiting, {calls} calls{stuck}");
        }
    }
    match field(row, "wakes_at") {
        at if at.is_empty() => {}
        at => {
            let _ = writeln!(words, "next thing to do at {at}");
        }
    }
    words
}

/// How fast, until when, and what bounds it; nothing where it is not known.
pub(super) fn outlook(job: &Value) -> String {
    let mut words = String::new();
    match field(job, "per_minute") {
        rate if rate.is_empty() => {}
        rate => {
            let _ = writeln!(words, "  {rate} a minute lately");
        }
    }
    let reading = if field(job, "reading") == "true" {
        ", as far as the list is read"
    } else {
        ""
    };
    match field(job, "ends_at") {
        at if at.is_empty() => {}
        at => {
            let _ = writeln!(
                words,
                "  done at {at} at the earliest{reading}{}",
                bound(job)
            );
        }
    }
    match field(job, "endless") {
        calls if calls.is_empty() || calls == "0" => {}
        calls => {
            let _ = writeln!(
                words,
                "  {calls} calls wait for an operator to release their target"
            );
        }
    }
    words
}

fn bound(job: &Value) -> String {
    let Some(by) = job.get("bound_by").filter(|by| by.is_object()) else {
        return String::new();
    };
    let [scope, name, bound, calls] = ["scope", "name", "bound", "calls"].map(|it| field(by, it));
    match (scope.as_str(), bound.as_str()) {
        (_, "") => String::new(),
        ("gate", bound) => format!(": this gate does {bound} at most"),
        _ => format!(": {calls} calls of {scope} {name}, {bound}"),
    }
}

fn field(row: &Value, name: &str) -> String {
    row.get(name).map(text).unwrap_or_default()
}

fn items<'v>(row: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    row.get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_is_stuck_and_why() {
        let row = serde_json::json!({
            "store": "/s", "running": true, "wakes_at": "2026-12-01T00:00:00.000Z",
            "jobs": [{
                "out": "/out", "tasks": 5, "complete": 2, "pending": 3, "outcomes": {"succeeded": 2, "failed": 0},
                "queued": 2, "running": 1, "backoff": 0,
                "targets": [{"target": "http://a.example", "tasks_waiting": 2, "calls": 3, "cause": "paused",
                             "ready_at": "2026-12-01T00:00:00.000Z"}],
            }],
        });
        let words = words(&row);
        assert!(
            words.contains("5 tasks: 2 complete (2 succeeded), 3 left"),
            "{words}"
        );
        assert!(
            words.contains("http://a.example: 2 waiting, 3 calls, paused until 2026-12-01"),
            "{words}"
        );
    }
}
