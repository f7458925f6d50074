//! What a person changes about tasks that no schedule runs: calling them off,
//! and letting a task that is complete be asked for once more.

use super::job::Job;
use super::result_line::ResultLine;
use super::task::{Answer, Next, Record, after_kill};
use crate::admission::Admission;
use crate::audit::{Event, TaskRef};
use crate::clock::wall_offset;
use crate::outcome::Outcome;
use crate::store::{Changes, StoreError};
use crate::target::{TargetKey, locate};

/// Why a task is complete that somebody called off.
pub(super) const CALLED_OFF: &str = "cancelled by hand";

/// What became of a wish that a task be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The next run whose list has it takes it up as a new task.
    Marked,
    /// That was so already, or it is under way again.
    Already,
}

/// Calls a task off that waits in a job without a schedule; what follows is
/// handed to the store in order. Its result is in the store, and in the job's
/// output folder with its next run. A call that was under way when a gate was
/// killed cannot be called off: where it may not be repeated, it ends as a run
/// would have ended it. Returns how it ended.
///
/// # Errors
/// When the store cannot be read.
pub fn cancel(
    admission: &Admission,
    job: &Job,
    task: TaskRef,
    record: &Record,
) -> Result<Outcome, StoreError> {
    let mut record = record.clone();
    let (outcome, answer) = match job.is_cut(task)?.then(|| after_kill(&mut record)) {
        Some(Next::Complete(outcome, answer)) => (outcome, answer),
        _ => (Outcome::Cancelled, Answer::error(CALLED_OFF)),
    };
    let record = &record;
    let clock = admission.clock();
    let now = clock.now();
    let target = locate(&record.next.url).ok().map(|located| {
        let (method, path, query) = (&record.next.method, &located.path, &located.query);
        let rules = admission.rulebook();
        let class = rules.class(&located.origin, method, path, query);
        TargetKey::new(located.origin, class)
    });
    let target = target.as_ref();
    let line = ResultLine::new(record, target, outcome, &answer, now, wall_offset(&**clock));
    let event = event(task, record, outcome.as_str(), admission);
    let noted = admission.log().note_with(event, |changes| {
        job.complete(changes, task, &line, None);
        job.taken_up(changes, task);
    });
    noted.detach();
    Ok(outcome)
}

/// Lets the task of the result at `place` be asked for again. Its call is in
/// no store any more: the next run whose list has it accepts it as new, with
/// attempts and deferrals from zero. The result stays where it is, and counts
/// no longer.
///
/// # Errors
/// When the store cannot be read.
pub fn retry(
    admission: &Admission,
    job: &Job,
    place: u64,
    line: &ResultLine,
) -> Result<Again, StoreError> {
    let Some(task) = job.task_of(&line.id)? else {
        return Ok(Again::Already);
    };
    if job.is_marked(&line.id)? || job.load(task)?.is_some() {
        return Ok(Again::Already);
    }
    let event = Event::Task {
        task,
        id: line.id.clone(),
        what: "again".into(),
        step: crate::step::Step::new(
            &line.agent,
            line.trajectory.as_deref().unwrap_or_default(),
            line.step.as_deref().unwrap_or_default(),
            "",
        ),
        at: admission.clock().now(),
    };
    let mark = |changes: &mut Changes| job.mark(changes, task, place, line);
    admission.log().note_with(event, mark).detach();
    Ok(Again::Marked)
}

fn event(task: TaskRef, record: &Record, what: &str, admission: &Admission) -> Event {
    Event::Task {
        task,
        id: record.task.id.clone(),
        what: what.into(),
        step: record.task.step.clone(),
        at: admission.clock().now(),
    }
}
