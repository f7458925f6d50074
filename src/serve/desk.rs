//! Answers, from a gate that runs or from a store alone.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use super::question::{Question, Wanted};
use super::{acts, budgets, manual, record, tasks};
use crate::admission::Admission;
use crate::audit::Filter;
use crate::clock::{SystemClock, moment_at, wall_offset};
use crate::egress::guard::Guard;
use crate::schedule::Handle;
use crate::store::{Changes, Store, StoreError};
use crate::target::{Located, TargetKey, locate};

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
    /// The record.
    pub store: Arc<Store>,
    /// The gate over it; none where the record is only read.
    pub gate: Option<Gate>,
    /// The schedule that runs, if one does.
    pub schedule: Option<Handle>,
}

/// An open gate.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Its budgets.
    pub admission: Arc<Admission>,
    /// Which addresses may be reached.
    pub guard: Arc<Guard>,
}

impl Desk {
    pub(super) fn gate(&self) -> Result<&Gate, AnswerError> {
        let none = || AnswerError::Question("no gate is open here".into());
        self.gate.as_ref().ok_or_else(none)
    }

    /// The clock that the record goes by.
    pub(super) fn clock(&self) -> Arc<SystemClock> {
        self.store.clock()
    }

    /// Answers a question, row by row. A caller that has gone ends it.
    ///
    /// # Errors
    /// When there is no answer; rows may have been given before.
    pub async fn answer(&self, question: Question, rows: Rows) -> Result<(), AnswerError> {
        match question {
            Question::Status => send(&rows, tasks::status(self).await?).await,
            Question::Budget { targets } => {
                let admission = &self.gate()?.admission;
                admission.lapse()?;
                for target in targets {
                    let lane = admission.lane(&key(admission, &target)?)?;
                    send(&rows, budgets::row(admission, &lane)).await;
                }
            }
            Question::Targets => {
                for row in budgets::all(&self.gate()?.admission, self.schedule.as_ref()).await? {
                    send(&rows, row).await;
                }
            }
            Question::Explain { url, method } => {
                send(&rows, budgets::explain(self.gate()?, &url, &method)?).await;
            }
            Question::Tasks(filter) => tasks::answer(self, filter, rows).await?,
            Question::Results { out } => {
                let store = self.store.clone();
                let read = move || tasks::results_of(&store, &out, &rows);
                let joined = tokio::task::spawn_blocking(read).await;
                joined.map_err(|error| AnswerError::Question(error.to_string()))??;
            }
            Question::Act { act, ids, filter } => {
                acts::answer(self, act, ids, filter, &rows).await?;
            }
            Question::Change(change) => {
                let row = manual::change(&self.gate()?.admission, change)?;
                self.on_disk().await?;
                send(&rows, row).await;
            }
            Question::StoreCopy { to } => {
                let store = self.store.clone();
                let copy = move || record::copy(&store, &to);
                let copied = tokio::task::spawn_blocking(copy).await;
                let copied = copied.map_err(|error| AnswerError::Question(error.to_string()))?;
                send(&rows, copied?).await;
            }
            Question::Audit {
                record: form,
                wanted,
            } => {
                let filter = self.filter(wanted)?;
                let store = self.store.clone();
                let read = move || record::read(&store, form, filter, &rows);
                let joined = tokio::task::spawn_blocking(read).await;
                joined.map_err(|error| AnswerError::Question(error.to_string()))??;
            }
        }
        Ok(())
    }

    /// An operator who was told so relies on it, whatever happens to this process.
    pub(super) async fn on_disk(&self) -> Result<(), StoreError> {
        Ok(self.store.write(Changes::default()).wait().await?)
    }

    fn filter(&self, wanted: Wanted) -> Result<Filter, AnswerError> {
        let offset = wall_offset(&*self.clock());
        let Wanted {
            target,
            site,
            agent,
            trajectory,
            from,
            to,
        } = wanted;
        // Of a URL the whole host: which class it had then is for the record to say.
        let recorded = |text: &String| match text.parse::<TargetKey>() {
            Ok(key) => Ok(key),
            Err(_) => located(text).map(|located| TargetKey::from(located.origin)),
        };
        Ok(Filter {
            target: target.as_ref().map(recorded).transpose()?,
            site,
            agent,
            trajectory,
            from: from.map(|at| moment_at(at, offset)),
            to: to.map(|at| moment_at(at, offset)),
        })
    }
}

pub(super) async fn send(rows: &Rows, row: Value) {
    // The caller has gone: there is nobody to tell.
    let _ = rows.send(row).await;
}

/// A target key, or the key of a URL's call.
pub(super) fn key(admission: &Admission, text: &str) -> Result<TargetKey, AnswerError> {
    if let Ok(key) = text.parse::<TargetKey>() {
        return Ok(key);
    }
    let located = located(text)?;
    let class = admission
        .rulebook()
        .class(&located.origin, "GET", &located.path, &located.query);
    Ok(TargetKey::new(located.origin, class))
}

fn located(text: &str) -> Result<Located, AnswerError> {
    locate(text).map_err(|rejection| {
        // Userinfo and queries may be secrets, and errors end up in logs.
        let which = if text.contains(['@', '?']) {
            String::new()
        } else {
            format!(" ({text:?})")
        };
        AnswerError::Question(format!("refused {rejection}{which}"))
    })
}

/// One token, for questions about the next call.
pub(super) const ONE: NonZeroU32 = NonZeroU32::MIN;
