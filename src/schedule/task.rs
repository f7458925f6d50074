//! A task: its states, and what each upshot of a call makes of it. Pure: what
//! happens next is a function of what was, what came, and `now`.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::Validators;
use crate::budget::{Refusal, backoff};
use crate::clock::Moment;
use crate::outcome::{Outcome, is_safe_to_repeat};
use crate::step::Step;

/// One call that a task consists of; a redirect makes another one of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCall {
    /// Where to.
    pub url: Arc<str>,
    /// The method.
    pub method: Arc<str>,
    /// Whatever else the work needs; the schedule does not look inside.
    #[serde(with = "crate::store::as_bytes")]
    pub payload: Arc<[u8]>,
}

impl fmt::Debug for TaskCall {
    /// URL and payload may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskCall")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// What somebody wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name; unique in its job.
    pub id: Arc<str>,
    /// The call, as first asked for.
    pub call: TaskCall,
    /// Who causes it.
    pub step: Step,
    /// The higher, the sooner.
    pub priority: i32,
    /// Not tried before.
    pub not_before: Option<Moment>,
    /// Expired when not complete by then.
    pub deadline: Option<Moment>,
    /// Failures after which it has failed.
    pub max_attempts: NonZeroU32,
    /// Tokens each call costs.
    pub cost: NonZeroU32,
    /// Whether a call that may have reached its target may be made again.
    pub repeat: Repeat,
}

/// Failures after which a task that does not say otherwise has failed.
pub const MAX_ATTEMPTS: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);

/// Whether a call may be made again though it may have been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repeat {
    /// Its method is safe, or it carries a key that makes it so.
    Safe,
    /// Only a person can tell.
    Never,
}

/// A task with what has become of it so far, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What was asked for.
    pub task: Task,
    /// The next call: the task's own, or where it was redirected.
    pub next: TaskCall,
    /// When it was accepted.
    pub queued: Moment,
    /// When its first call was granted.
    pub started: Option<Moment>,
    /// Calls sent that were not refused with "not now".
    pub attempts: u32,
    /// Attempts that failed.
    pub failures: u32,
    /// How often it was told to wait.
    pub deferrals: u32,
    /// Redirects followed.
    pub hops: u32,
    /// Its own back-off, where it is in one.
    pub not_before: Option<Moment>,
}

impl Record {
    /// A task just accepted.
    #[must_use]
    pub fn new(task: Task, now: Moment) -> Self {
        Self {
            next: task.call.clone(),
            not_before: task.not_before,
            task,
            queued: now,
            started: None,
            attempts: 0,
            failures: 0,
            deferrals: 0,
            hops: 0,
        }
    }

    /// Whether its next call may be made again though it may have been
    /// executed. What a redirect turned into a read (RFC 9110, section 15.4.4)
    /// is a read, whatever led there.
    fn repeat(&self) -> Repeat {
        let became_a_read =
            self.next.method != self.task.call.method && is_safe_to_repeat(&self.next.method);
        if became_a_read {
            Repeat::Safe
        } else {
            self.task.repeat
        }
    }
}

/// What there is to say of a task's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The status.
    pub status: Option<u16>,
    /// Bytes of its body.
    pub bytes: u64,
    /// Its media type.
    pub content_type: Option<String>,
    /// Where its body is, relative to the output folder.
    pub body_path: Option<String>,
    /// What went wrong, in words without secrets.
    pub error: Option<String>,
    /// What the target calls the state of what it answered with.
    pub validators: Option<Validators>,
}

impl Answer {
    /// No answer, but a reason.
    #[must_use]
    pub fn error(words: impl Into<String>) -> Self {
        Self {
            error: Some(words.into()),
            ..Self::default()
        }
    }
}

/// What a call came to, as the work reports it.
#[derive(Clone, Debug)]
pub enum Upshot {
    /// A final answer.
    Final(Outcome, Answer),
    /// The target said: not now. Its pause is set; the task is as before.
    NotNow(Answer),
    /// Its permit was given back unsent: the target said so to somebody else
    /// meanwhile. The task is as before.
    CalledOff,
    /// Nothing was sent; the target rests.
    NotSent(Answer),
    /// It failed, and the target has not acted on it: safe to repeat.
    Rejected(Answer),
    /// It failed, and may have been executed.
    Doubtful(Answer),
    /// It goes on elsewhere.
    Onward(TaskCall, Answer),
    /// The gate refuses it.
    Refused(Refusal),
    /// Nothing was sent, for a lack of something here; the run must end.
    Unable(Answer),
    /// Something here is broken, not there; the run must end.
    Broken(Answer),
}

/// What becomes of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is complete.
    Complete(Outcome, Answer),
    /// It is tried again as soon as its target has room.
    Again,
    /// It is tried again, not before.
    Backoff(Moment),
    /// It is tried again after somebody mended this machine.
    Stop(String),
}

/// What applies to every task.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Redirects followed at most.
    pub max_redirects: u32,
    /// From 0 to 1: which part of a back-off is waited.
    pub jitter: f64,
}

/// What an upshot makes of a task; its record is brought up to date.
#[must_use]
pub fn after(record: &mut Record, upshot: Upshot, now: Moment, bounds: Bounds) -> Next {
    record.not_before = None;
    match upshot {
        Upshot::Final(outcome, answer) => {
            record.attempts += 1;
            Next::Complete(outcome, answer)
        }
        Upshot::NotNow(_) | Upshot::CalledOff => Next::Again,
        Upshot::NotSent(answer) => failed(record, answer, |_| Next::Again),
        Upshot::Rejected(answer) => failed(record, answer, |record| {
            backed_off(record, now, bounds.jitter)
        }),
        Upshot::Doubtful(answer) if record.repeat() == Repeat::Safe => {
            failed(record, answer, |record| {
                backed_off(record, now, bounds.jitter)
            })
        }
        Upshot::Doubtful(answer) => {
            record.attempts += 1;
            Next::Complete(Outcome::Ambiguous, answer)
        }
        Upshot::Onward(_, answer) if record.hops >= bounds.max_redirects => {
            record.attempts += 1;
            let error = Some(format!("more than {} redirects", bounds.max_redirects));
            Next::Complete(Outcome::Answered, Answer { error, ..answer })
        }
        Upshot::Onward(call, _) => {
            record.hops += 1;
            record.next = call;
            Next::Again
        }
        Upshot::Refused(refusal) => {
            Next::Complete(Outcome::Refused, Answer::error(refusal.to_string()))
        }
        Upshot::Unable(answer) => Next::Stop(answer.error.unwrap_or_default()),
        Upshot::Broken(answer) if record.repeat() == Repeat::Safe => {
            Next::Stop(answer.error.unwrap_or_default())
        }
        Upshot::Broken(answer) => Next::Complete(Outcome::Ambiguous, answer),
    }
}

fn failed(record: &mut Record, answer: Answer, again: impl FnOnce(&mut Record) -> Next) -> Next {
    record.attempts += 1;
    record.failures += 1;
    if record.failures >= record.task.max_attempts.get() {
        return Next::Complete(Outcome::Failed, answer);
    }
    again(record)
}

/// Full jitter: anything from nothing to the whole of 1 s doubling to 5 min.
fn backed_off(record: &mut Record, now: Moment, jitter: f64) -> Next {
    let whole: Duration = backoff(record.failures, 1.0);
    let until = now.after(whole.mul_f64(jitter.clamp(0.0, 1.0)));
    record.not_before = Some(until);
    Next::Backoff(until)
}

/// What becomes of a task whose call was under way when the gate was killed.
#[must_use]
pub fn after_kill(record: &mut Record) -> Next {
    record.attempts += 1;
    match record.repeat() {
        Repeat::Safe => Next::Again,
        Repeat::Never => {
            let answer = Answer::error(
                "the gate was killed while this call was under way; it may have been executed",
            );
            Next::Complete(Outcome::Ambiguous, answer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(repeat: Repeat) -> Record {
        let call = TaskCall {
            url: "http://a.example/".into(),
            method: "GET".into(),
            payload: [].into(),
        };
        let task = Task {
            id: "t".into(),
            call,
            step: Step::default(),
            priority: 0,
            not_before: None,
            deadline: None,
            max_attempts: NonZeroU32::new(2).unwrap(),
            cost: NonZeroU32::MIN,
            repeat,
        };
        Record::new(task, Moment::ZERO)
    }

    const BOUNDS: Bounds = Bounds {
        max_redirects: 1,
        jitter: 1.0,
    };
    const NOW: Moment = Moment::from_nanos(1_000);

    fn next(record: &mut Record, upshot: Upshot) -> Next {
        after(record, upshot, NOW, BOUNDS)
    }

    #[test]
    fn a_refusal_by_the_target_costs_no_attempt_however_often() {
        let mut record = record(Repeat::Safe);
        for _ in 0..1500 {
            assert_eq!(
                next(&mut record, Upshot::NotNow(Answer::default())),
                Next::Again
            );
        }
        assert_eq!(
            next(&mut record, Upshot::Doubtful(Answer::default())),
            Next::Backoff(NOW.after(Duration::from_secs(1)))
        );
        assert_eq!((record.attempts, record.failures), (1, 1));
    }

    #[test]
    fn failures_end_a_task_at_its_limit() {
        let mut record = record(Repeat::Safe);
        assert_eq!(
            next(&mut record, Upshot::NotSent(Answer::default())),
            Next::Again
        );
        let error = Answer::error("refused");
        assert_eq!(
            next(&mut record, Upshot::NotSent(error.clone())),
            Next::Complete(Outcome::Failed, error)
        );
    }

    #[test]
    fn what_may_have_been_executed_is_never_repeated_unless_it_is_safe() {
        let answer = Answer::error("cut");
        let mut post = record(Repeat::Never);
        assert_eq!(
            next(&mut post, Upshot::Doubtful(answer.clone())),
            Next::Complete(Outcome::Ambiguous, answer)
        );
        assert!(matches!(
            after_kill(&mut record(Repeat::Never)),
            Next::Complete(Outcome::Ambiguous, _)
        ));
        let mut get = record(Repeat::Safe);
        assert_eq!(
            (after_kill(&mut get), get.attempts, get.failures),
            (Next::Again, 1, 0)
        );
    }

    #[test]
    fn a_read_that_a_redirect_made_of_a_write_may_be_repeated_and_a_write_may_not() {
        for (method, repeated) in [("GET", true), ("POST", false), ("PUT", false)] {
            let mut record = record(Repeat::Never);
            record.task.call.method = "POST".into();
            record.next.method = method.into();
            let doubtful = next(&mut record, Upshot::Doubtful(Answer::default()));
            assert_eq!(matches!(doubtful, Next::Backoff(_)), repeated, "{method}");
            assert_eq!(after_kill(&mut record) == Next::Again, repeated, "{method}");
        }
    }

    #[test]
    fn what_was_not_sent_may_be_sent_whatever_its_method() {
        assert_eq!(
            next(
                &mut record(Repeat::Never),
                Upshot::NotSent(Answer::default())
            ),
            Next::Again
        );
    }

    #[test]
    fn redirects_end() {
        let mut record = record(Repeat::Safe);
        let elsewhere = TaskCall {
            url: "http://b.example/".into(),
            method: "GET".into(),
            payload: [].into(),
        };
        assert_eq!(
            next(
                &mut record,
                Upshot::Onward(elsewhere.clone(), Answer::default())
            ),
            Next::Again
        );
        assert_eq!(record.next, elsewhere);
        let last = next(&mut record, Upshot::Onward(elsewhere, Answer::default()));
        assert!(matches!(
            last,
            Next::Complete(Outcome::Answered, Answer { error: Some(_), .. })
        ));
    }
}
