//! How the work stands: as rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::desk::{AnswerError, Desk, Rows};
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

/// Tasks, counted or listed. The record is read on a thread of its own: there
/// may be millions, and the gate goes on meanwhile.
pub(super) async fn answer(desk: &Desk, filter: TaskFilter, rows: Rows) -> Result<(), AnswerError> {
    let mut told = Told {
        store: desk.store.clone(),
        offset: wall_offset(&*desk.clock()),
        now: desk.clock().now(),
        live: Views::default(),
        counts: BTreeMap::new(),
        filter,
        rows,
    };
    let mut counted = None;
    if let Some(schedule) = &desk.schedule {
        let is_counted = !told.filter.list && told.filter.target.is_none();
        match schedule.look(0).await {
            Ok(snapshot) if is_counted => {
                told.waiting(&snapshot);
                counted = Some(schedule.job().number());
            }
            _ => told.live = views(desk).await,
        }
    }
    let tell = move || told.all(counted);
    let joined = tokio::task::spawn_blocking(tell).await;
    joined.map_err(|error| AnswerError::Question(error.to_string()))?
}

/// The caller has gone, or the record cannot be read.
enum Ended {
    Unheard,
    Failed(AnswerError),
}

impl<E: Into<AnswerError>> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Tasks on their way to a caller. Blocks its thread.
struct Told {
    store: Arc<Store>,
    offset: i64,
    now: Moment,
    live: Views,
    /// By state, and by outcome where there is one.
    counts: BTreeMap<(&'static str, Option<String>), u64>,
    filter: TaskFilter,
    rows: Rows,
}

impl Told {
    /// `counted` is the job whose tasks that wait are counted already.
    fn all(mut self, counted: Option<u64>) -> Result<(), AnswerError> {
        match self.each_job(counted) {
            Ok(()) | Err(Ended::Unheard) => Ok(()),
            Err(Ended::Failed(error)) => Err(error),
        }
    }

    fn each_job(&mut self, counted: Option<u64>) -> Result<(), Ended> {
        let store = self.store.clone();
        for (job, _) in Job::all(&store)? {
            if counted != Some(job) {
                self.pending(job)?;
            }
            self.complete(job)?;
        }
        if self.filter.list {
            return Ok(());
        }
        for ((state, outcome), tasks) in std::mem::take(&mut self.counts) {
            self.send(json!({"state": state, "outcome": outcome, "tasks": tasks}))?;
        }
        Ok(())
    }

    /// A schedule knows how many of its tasks are in which state.
    fn waiting(&mut self, snapshot: &Snapshot) {
        for (state, tasks) in [
            ("queued", snapshot.queued),
            ("running", snapshot.running),
            ("backoff", snapshot.backoff),
        ] {
            if tasks > 0 && self.filter.takes(state, None, "") {
                *self.counts.entry((state, None)).or_default() += tasks;
            }
        }
    }

    fn pending(&mut self, job: u64) -> Result<(), Ended> {
        let store = self.store.clone();
        for entry in pending(&store, job) {
            let (task, record) = entry?;
            let view = self.live.of(task);
            let (state, until, cause) = standing(view, &record, self.now);
            let target = crate::target::locate(&record.next.url).ok();
            let target = target
                .map(|located| located.origin.to_string())
                .unwrap_or_default();
            if !self.filter.takes(state, None, &target) {
                continue;
            }
            if self.filter.list {
                self.send(json!({
                    "job": job,
                    "id": record.task.id,
                    "state": state,
                    "until": until.map(|until| rfc3339(until, self.offset)),
                    "cause": cause,
                    "target": target,
                    "url": without_userinfo(&record.task.call.url),
                    "agent": record.task.step.agent,
                    "attempts": record.attempts,
                    "deferrals": view.map_or(record.deferrals, |view| view.deferrals),
                }))?;
            } else {
                *self.counts.entry((state, None)).or_default() += 1;
            }
        }
        Ok(())
    }

    fn complete(&mut self, job: u64) -> Result<(), Ended> {
        const STATE: &str = "complete";
        let store = self.store.clone();
        for result in counting(&store, job) {
            let line = result?.line;
            let Ok(mut row) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
            let (outcome, target) = (text("outcome"), text("target"));
            if !self.filter.takes(STATE, Some(outcome), target) {
                continue;
            }
            if !self.filter.list {
                let key = (STATE, Some(outcome.to_owned()));
                *self.counts.entry(key).or_default() += 1;
            } else if let Some(fields) = row.as_object_mut() {
                fields.insert("job".into(), job.into());
                fields.insert("state".into(), STATE.into());
                self.send(row)?;
            }
        }
        Ok(())
    }

    fn send(&self, row: Value) -> Result<(), Ended> {
        let sent = self.rows.blocking_send(row);
        sent.map_err(|_| Ended::Unheard)
    }
}

/// The tasks that a schedule has in memory, in the order of their numbers.
#[derive(Default)]
pub(super) struct Views(Vec<TaskView>);

impl Views {
    pub(super) fn of(&self, task: TaskRef) -> Option<&TaskView> {
        let found = self.0.binary_search_by_key(&task, |view| view.task);
        found.ok().and_then(|at| self.0.get(at))
    }
}

pub(super) async fn views(desk: &Desk) -> Views {
    let mut views = match &desk.schedule {
        Some(schedule) => schedule.list().await.unwrap_or_default(),
        None => Vec::new(),
    };
    views.sort_unstable_by_key(|view| view.task);
    Views(views)
}

/// How a task that is not complete stands: its state, until when, and why.
pub(super) fn standing(
    view: Option<&TaskView>,
    record: &Record,
    now: Moment,
) -> (&'static str, Option<Moment>, Option<&'static str>) {
    let own = record.not_before.filter(|at| *at > now);
    // Either its list has said so, or a call of it that failed.
    let waits = if record.failures == 0 {
        "not_before"
    } else {
        "failed"
    };
    match view {
        Some(TaskView {
            state: TaskState::Running,
            ..
        }) => ("running", None, None),
        Some(TaskView {
            state: TaskState::Backoff { until },
            ..
        }) => ("backoff", Some(*until), Some(waits)),
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
        None if own.is_some() => ("backoff", own, Some(waits)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::IfMissing;

    #[test]
    fn the_record_is_read_on_no_thread_of_the_gate() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), IfMissing::Create, 0).unwrap();
        let desk = Desk {
            store: Arc::new(store),
            gate: None,
            schedule: None,
        };
        runtime.block_on(async {
            // The one thread for such work is taken, so what needs it cannot be done yet.
            let (let_go, held) = std::sync::mpsc::channel::<()>();
            let holding = tokio::task::spawn_blocking(move || held.recv());
            let (rows, mut received) = tokio::sync::mpsc::channel(8);
            let mut answer = Box::pin(answer(&desk, TaskFilter::default(), rows));
            let first = std::future::poll_fn(|cx| std::task::Poll::Ready(answer.as_mut().poll(cx)));
            assert!(first.await.is_pending());
            drop(let_go);
            answer.await.unwrap();
            assert!(holding.await.unwrap().is_err());
            assert!(received.recv().await.is_none());
        });
    }
}
