//! Who answers a question: the gate that holds the store, or this process with
//! the store itself when no gate runs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::Failure;
use super::gate::{self, Scratch};
use super::show::Rows;
use crate::config::Config;
use crate::egress::guard::Guard;
use crate::serve::{ControlError, Desk, Gate, Question, ask};
use crate::store::{IfMissing, StoreError};

/// A gate that starts or ends holds the store and answers nobody: for so long
/// it is asked again.
const PATIENCE: Duration = Duration::from_secs(3);
const GLANCE: Duration = Duration::from_millis(50);

/// Where the rows of an answer go.
struct Answer<'r> {
    rows: &'r mut Rows,
    begun: Begun,
}

/// An answer that has begun cannot be asked for again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    No,
    Yes,
}

/// Why there is no answer.
enum Unanswered {
    /// The store is held, and nobody answers.
    BetweenGates(Failure),
    /// Another try would say the same.
    For(Failure),
}

/// Answers a question; what was answered before a failure is shown.
pub(super) async fn answer(
    config: &Config,
    question: &Question,
    mut rows: Rows,
) -> Result<(), Failure> {
    let mut answer = Answer {
        rows: &mut rows,
        begun: Begun::No,
    };
    let mut patience = PATIENCE;
    let answered = loop {
        match answer.ask_whoever(config, question).await {
            Err(Unanswered::BetweenGates(_))
                if answer.begun == Begun::No && !patience.is_zero() =>
            {
                tokio::time::sleep(GLANCE).await;
                patience = patience.saturating_sub(GLANCE);
            }
            Err(Unanswered::BetweenGates(failure) | Unanswered::For(failure)) => {
                break Err(failure);
            }
            Ok(()) => break Ok(()),
        }
    };
    if answered.is_ok() || answer.begun == Begun::Yes {
        rows.end();
    }
    answered
}

impl Answer<'_> {
    /// False when the reader has left.
    fn add(&mut self, row: &Value) -> bool {
        self.begun = Begun::Yes;
        self.rows.add(row)
    }

    async fn ask_whoever(
        &mut self,
        config: &Config,
        question: &Question,
    ) -> Result<(), Unanswered> {
        match ask(&config.store, question, |row| self.add(&row)).await {
            Ok(()) => Ok(()),
            Err(ControlError::NobodyThere) => self.ask_the_store(config, question).await,
            Err(cut @ ControlError::Cut) => Err(Unanswered::BetweenGates(cut.into())),
            Err(error) => Err(Unanswered::For(error.into())),
        }
    }

    async fn ask_the_store(
        &mut self,
        config: &Config,
        question: &Question,
    ) -> Result<(), Unanswered> {
        let (desk, _scratch) = opened(config, question).map_err(|error| match error {
            StoreError::InUse(_) => Unanswered::BetweenGates(error.into()),
            other => Unanswered::For(other.into()),
        })?;
        let answered = self.ask_desk(&desk, question.clone()).await;
        if let Some(gate) = &desk.gate {
            let closed = gate.admission.close().wait().await;
            closed.map_err(|fault| Unanswered::For(fault.into()))?;
        }
        answered.map_err(Unanswered::For)
    }

    async fn ask_desk(&mut self, desk: &Desk, question: Question) -> Result<(), Failure> {
        let (sender, mut found) = mpsc::channel::<Value>(256);
        // The receiver goes when the reader has left: then the answer ends as well.
        let shown = async move {
            while let Some(row) = found.recv().await {
                if !self.add(&row) {
                    break;
                }
            }
        };
        let (answered, ()) = tokio::join!(desk.answer(question, sender), shown);
        answered.map_err(Failure::from)
    }
}

/// For what is on record the store is enough; what is left is for a gate to
/// say. What holds for a URL can be told without any store.
fn opened(config: &Config, question: &Question) -> Result<(Desk, Option<Scratch>), StoreError> {
    if matches!(
        question,
        Question::Status
            | Question::Tasks(_)
            | Question::Results { .. }
            | Question::StoreCopy { .. }
            | Question::Audit { .. }
    ) {
        let desk = Desk {
            store: gate::record(config)?,
            gate: None,
            schedule: None,
        };
        return Ok((desk, None));
    }
    let (admission, scratch) = match gate::open(config, &config.store, IfMissing::Fail) {
        Err(StoreError::Missing(_)) if matches!(question, Question::Explain { .. }) => {
            let scratch = Scratch::new().map_err(|error| StoreError::Io {
                path: std::env::temp_dir(),
                error,
            })?;
            let admission = gate::open(config, scratch.folder(), IfMissing::Create)?;
            (admission, Some(scratch))
        }
        other => (other?, None),
    };
    if matches!(question, Question::Change(_)) {
        // A pool is known by the targets that draw from it.
        admission.name_lanes()?;
    }
    let guard = Arc::new(Guard::new(config.allow_private.clone()));
    let desk = Desk {
        store: admission.store().clone(),
        gate: Some(Gate { admission, guard }),
        schedule: None,
    };
    Ok((desk, scratch))
}
