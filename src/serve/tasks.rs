//! How the work stands: as rows.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::desk::{AnswerError, Desk, Rows, send};
use super::forecast::{Pace, forecast};
use super::question::TaskFilter;
use crate::audit::TaskRef;
use crate::budget::rfc3339;
use crate::clock::{Clock, Moment, wall_offset};
use crate::outcome::Outcome;
use crate::schedule::task::Record;
use crate::schedule::{
    Handle, Job, JobRecord, LaneView, Snapshot, Stopped, TaskState, TaskView, counting, marked,
    pending, results, without_userinfo,
};
use crate::store::{Store, StoreError};

/// Lanes named in a status.
const NAMED: usize = 10;

/// How far, how fast, what is stuck and why.
pub(super) async fn status(desk: &Desk) -> Result<Value, AnswerError> {
    let offset = wall_offset(&*desk.clock());
    let live = match &desk.schedule {
        Some(schedule) => live(schedule, &*desk.clock()).await.ok(),
        None => None,
    };
    let running = desk
        .schedule
        .as_ref()
        .map(|schedule| schedule.job().number());
    let jobs = Job::all(&desk.store)?.into_iter().map(|(number, record)| {
        let live = live.as_ref().filter(|_| running == Some(number));
        let mut row = job_row(number, &record, live, offset);
        let marked = marked(&desk.store, number)?;
        if let Some(fields) = row.as_object_mut().filter(|_| marked > 0) {
            fields.insert("again".into(), marked.into());
        }
        Ok::<_, StoreError>(row)
    });
    let wake = live.as_ref().and_then(|live| live.snapshot.wake);
    Ok(json!({
        "store": desk.store.folder(),
        "running": desk.schedule.is_some(),
        "jobs": jobs.collect::<Result<Vec<_>, _>>()?,
        "wakes_at": wake.map(|wake| rfc3339(wake, offset)),
    }))
}

/// A job that is being worked on.
struct Live {
    snapshot: Snapshot,
    forecast: serde_json::Map<String, Value>,
}

async fn live(schedule: &Handle, clock: &dyn Clock) -> Result<Live, Stopped> {
    let snapshot = schedule.look(NAMED).await?;
    let outlook = schedule.outlook(NAMED).await?;
    let record = schedule.job().record();
    let pace = Pace {
        left: record.pending(),
        best: snapshot.best,
    };
    let forecast = forecast(&outlook, pace, clock.now(), wall_offset(clock));
    Ok(Live { snapshot, forecast })
}

fn job_row(number: u64, record: &JobRecord, live: Option<&Live>, offset: i64) -> Value {
    let outcomes =
        Outcome::ALL.map(|outcome| (outcome.as_str().to_owned(), record.outcome(outcome).into()));
    let mut row = json!({
        "job": number,
        "out": record.out,
        "refresh": record.round.number,
        "tasks": record.tasks(),
        "complete": record.complete(),
        "pending": record.pending(),
        "outcomes": serde_json::Map::from_iter(outcomes),
    });
    if let (Some(Live { snapshot, forecast }), Some(fields)) = (live, row.as_object_mut()) {
        fields.insert("queued".into(), snapshot.queued.into());
        fields.insert("running".into(), snapshot.running.into());
        fields.insert("backoff".into(), snapshot.backoff.into());
        fields.insert("reading".into(), snapshot.reading.into());
        let per_minute = snapshot.pace.map(|pace| (pace * 60.0).round());
        fields.insert("per_minute".into(), per_minute.into());
        fields.extend(forecast.clone());
        let lanes: Vec<Value> = snapshot
            .lanes
            .iter()
            .map(|lane| lane_row(lane, offset))
            .collect();
        fields.insert("targets".into(), lanes.into());
    }
    row
}

fn lane_row(lane: &LaneView, offset: i64) -> Value {
    json!({
        "target": lane.target,
        "tasks_waiting": lane.waiting,
        "calls": lane.calls,
        "cause": lane.blocked.map(|(cause, _)| cause.as_str()),
        "ready_at": lane.blocked.and_then(|(_, ready)| ready).map(|ready| rfc3339(ready, offset)),
    })
}

/// The results of one job, in the order in which they became durable.
pub(super) fn results_of(store: &Arc<Store>, out: &Path, rows: &Rows) -> Result<(), AnswerError> {
    let Some(job) = Job::find(store.clone(), out)? else {
        let known = Job::all(store)?.into_iter().map(|(_, record)| record.out);
        let known: Vec<_> = known.collect();
        return Err(AnswerError::Question(format!(
            "no run wrote to {}; runs of this store wrote to: {}",
            out.display(),
            known.join(", ")
        )));
    };
    for line in results(store, job.number()) {
        let row = serde_json::from_str(&line?);
        let row = row.map_err(|error| AnswerError::Question(error.to_string()))?;
        if rows.blocking_send(row).is_err() {
            break;
        }
    }
    Ok(())
}

/// Tasks, counted or listed.
pub(super) async fn answer(
    desk: &Desk,
    filter: &TaskFilter,
    rows: &Rows,
) -> Result<(), AnswerError> {
    let live = views(desk).await;
    let store = desk.store.clone();
    let offset = wall_offset(&*desk.clock());
    let now = desk.clock().now();
    let mut counts: HashMap<String, u64> = HashMap::new();
    for (job, _) in Job::all(&store)? {
        for entry in pending(&store, job) {
            let (task, record) = entry?;
            let view = live.get(&task);
            let (state, until, cause) = standing(view, &record, now);
            let target = crate::target::locate(&record.next.url).ok();
            let target = target
                .map(|located| located.origin.to_string())
                .unwrap_or_default();
            if !filter.takes(state, None, &target) {
                continue;
            }
            *counts.entry(state.to_owned()).or_default() += 1;
            if filter.list {
                let row = json!({
                    "job": job,
                    "id": record.task.id,
                    "state": state,
                    "until": until.map(|until| rfc3339(until, offset)),
                    "cause": cause,
                    "target": target,
                    "url": without_userinfo(&record.task.call.url),
                    "agent": record.task.step.agent,
                    "attempts": record.attempts,
                    "deferrals": view.map_or(record.deferrals, |view| view.deferrals),
                });
                send(rows, row).await;
            }
        }
        for result in counting(&store, job) {
            let line = result?.line;
            let Ok(mut row) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            let text = |row: &Value, name: &str| {
                row.get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let (outcome, target) = (text(&row, "outcome"), text(&row, "target"));
            if !filter.takes("complete", Some(&outcome), &target) {
                continue;
            }
            *counts.entry(format!("complete {outcome}")).or_default() += 1;
            if filter.list
                && let Some(fields) = row.as_object_mut()
            {
                fields.insert("job".into(), job.into());
                fields.insert("state".into(), "complete".into());
                send(rows, row).await;
            }
        }
    }
    if !filter.list {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort();
        for (state, tasks) in counts {
            let (state, outcome) = state
                .split_once(' ')
                .map_or((state.as_str(), None), |(a, b)| (a, Some(b)));
            send(
                rows,
                json!({"state": state, "outcome": outcome, "tasks": tasks}),
            )
            .await;
        }
    }
    Ok(())
}

/// The tasks that a schedule has in memory.
pub(super) async fn views(desk: &Desk) -> HashMap<TaskRef, TaskView> {
    let views = match &desk.schedule {
        Some(schedule) => schedule.list().await.unwrap_or_default(),
        None => Vec::new(),
    };
    views.into_iter().map(|view| (view.task, view)).collect()
}

/// How a task that is not complete stands: its state, until when, and why.
pub(super) fn standing(
    view: Option<&TaskView>,
    record: &Record,
    now: Moment,
) -> (&'static str, Option<Moment>, Option<&'static str>) {
    let own = record.not_before.filter(|at| *at > now);
    match view {
        Some(TaskView {
            state: TaskState::Running,
            ..
        }) => ("running", None, None),
        Some(TaskView {
            state: TaskState::Backoff { until },
            ..
        }) => ("backoff", Some(*until), Some("failed")),
        // A target that must wait makes all its tasks wait.
        Some(TaskView {
            blocked: Some((cause, ready)),
            ..
        }) if cause.stops_target() => ("backoff", *ready, Some(cause.as_str())),
        Some(TaskView { blocked, .. }) => (
            "queued",
            blocked.and_then(|(_, ready)| ready),
            blocked.map(|(cause, _)| cause.as_str()),
        ),
        None if own.is_some() => ("backoff", own, Some("failed")),
        None => ("queued", None, None),
    }
}

impl TaskFilter {
    pub(super) fn takes(&self, state: &str, outcome: Option<&str>, target: &str) -> bool {
        self.state.as_deref().is_none_or(|wanted| wanted == state)
            && self
                .outcome
                .as_deref()
                .is_none_or(|wanted| Some(wanted) == outcome)
            && self.target.as_deref().is_none_or(|wanted| {
                let origin = |text: &str| text.split('#').next().unwrap_or_default().to_owned();
                wanted == target || (!wanted.contains('#') && origin(target) == wanted)
            })
    }
}
