//! Answers, from a gate that runs or from a store alone.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::question::{Question, Wanted};
use super::{budgets, record, tasks};
use crate::admission::{Admission, Chosen, Operator};
use crate::audit::Filter;
use crate::budget::Scope;
use crate::clock::{moment_at, wall_offset};
use crate::egress::guard::Guard;
use crate::schedule::Handle;
use crate::store::{Store, StoreError};
use crate::target::{TargetKey, locate};

/// Rows of an answer, as they are found.
pub type Rows = mpsc::Sender<Value>;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The record cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The question is off.
    #[error("{0}")]
    Question(String),
}

/// Where questions are answered.
#[derive(Clone, Debug)]
pub struct Desk {
    /// The gate.
    pub admission: Arc<Admission>,
    /// Which addresses may be reached.
    pub guard: Arc<Guard>,
    /// The schedule that runs, if one does.
    pub schedule: Option<Handle>,
}

impl Desk {
    fn store(&self) -> &Arc<Store> {
        self.admission.store()
    }

    /// Answers a question, row by row. A caller that has gone ends it.
    ///
    /// # Errors
    /// When there is no answer; rows may have been given before.
    pub async fn answer(&self, question: Question, rows: Rows) -> Result<(), AnswerError> {
        match question {
            Question::Status => send(&rows, tasks::status(self).await?).await,
            Question::Budget { targets } => {
                for target in targets {
                    let key = key(&self.admission, &target)?;
                    let lane = self.admission.lane(&key)?;
                    send(&rows, budgets::row(&self.admission, &lane)).await;
                }
            }
            Question::Targets => {
                for row in budgets::all(self).await? {
                    send(&rows, row).await;
                }
            }
            Question::Explain { url, method } => {
                let row = budgets::explain(&self.admission, &self.guard, &url, &method)?;
                send(&rows, row).await;
            }
            Question::Tasks(filter) => tasks::answer(self, &filter, &rows).await?,
            Question::Hold {
                target,
                for_ms,
                by,
                note,
            } => {
                let until = for_ms.map(|ms| {
                    self.admission
                        .clock()
                        .now()
                        .after(Duration::from_millis(ms))
                });
                let held = self.admission.hold(
                    &chosen(&self.admission, &target)?,
                    until,
                    operator(&by, &note),
                )?;
                send(&rows, changed(&target, "held", held)?).await;
            }
            Question::Release { target, by, note } => {
                let released = self
                    .admission
                    .release(&chosen(&self.admission, &target)?, operator(&by, &note))?;
                let words = if released { "released" } else { "was not held" };
                send(&rows, json!({"target": target, "state": words})).await;
            }
            Question::Audit {
                record: form,
                wanted,
            } => {
                let filter = self.filter(&wanted)?;
                let store = self.store().clone();
                let read = move || record::read(&store, form, filter, &rows);
                let joined = tokio::task::spawn_blocking(read).await;
                joined.map_err(|error| AnswerError::Question(error.to_string()))??;
            }
        }
        Ok(())
    }

    fn filter(&self, wanted: &Wanted) -> Result<Filter, AnswerError> {
        let offset = wall_offset(&**self.admission.clock());
        let target = wanted
            .target
            .as_ref()
            .map(|target| key(&self.admission, target))
            .transpose()?;
        Ok(Filter {
            target,
            site: wanted.site.clone(),
            agent: wanted.agent.clone(),
            trajectory: wanted.trajectory.clone(),
            from: wanted.from.map(|at| moment_at(at, offset)),
            to: wanted.to.map(|at| moment_at(at, offset)),
        })
    }
}

pub(super) async fn send(rows: &Rows, row: Value) {
    // The caller has gone: there is nobody to tell.
    let _ = rows.send(row).await;
}

fn operator(by: &str, note: &str) -> Operator {
    Operator {
        by: by.into(),
        note: note.into(),
    }
}

fn changed(target: &str, state: &str, found: bool) -> Result<Value, AnswerError> {
    if found {
        return Ok(json!({"target": target, "state": state}));
    }
    Err(AnswerError::Question(format!(
        "no calls go to {target} by the rules in force: nothing to hold"
    )))
}

/// A target key, or the key of a URL's call.
pub(super) fn key(admission: &Admission, text: &str) -> Result<TargetKey, AnswerError> {
    if let Ok(key) = text.parse::<TargetKey>() {
        return Ok(key);
    }
    let located = locate(text)
        .map_err(|rejection| AnswerError::Question(format!("`{text}`: {rejection}")))?;
    let class = admission
        .rulebook()
        .class(&located.origin, "GET", &located.path, &located.query);
    Ok(TargetKey::new(located.origin, class))
}

fn chosen(admission: &Admission, text: &str) -> Result<Chosen, AnswerError> {
    match text.parse::<Scope>() {
        Ok(scope @ (Scope::Pool(_) | Scope::Group(_))) => Ok(Chosen::Scope(scope)),
        _ => key(admission, text).map(Chosen::Target),
    }
}

/// One token, for questions about the next call.
pub(super) const ONE: NonZeroU32 = NonZeroU32::MIN;
