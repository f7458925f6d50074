//! What a person does with tasks, as a question to the gate.

use super::args::{CancelArgs, RetryArgs, TasksAct, WaitingName};
use super::ask::{Asked, outcome_name};
use super::table::Column;
use crate::serve::{Act, Ambiguous, Question, TaskFilter};

pub(super) fn question(act: TasksAct) -> Asked {
    let (act, ids, filter, output) = match act {
        TasksAct::Cancel(CancelArgs {
            ids,
            state,
            target,
            all: _,
            output,
        }) => {
            let state = state.map(|state| match state {
                WaitingName::Queued => "queued".to_owned(),
                WaitingName::Backoff => "backoff".to_owned(),
            });
            let filter = TaskFilter {
                state,
                target,
                ..TaskFilter::default()
            };
            (Act::Cancel, ids, filter, output)
        }
        TasksAct::Retry(RetryArgs {
            ids,
            outcome,
            target,
            all: _,
            ambiguous,
            output,
        }) => {
            let filter = TaskFilter {
                outcome: outcome.map(|outcome| outcome_name(outcome).to_owned()),
                target,
                ..TaskFilter::default()
            };
            let ambiguous = if ambiguous {
                Ambiguous::Repeat
            } else {
                Ambiguous::Leave
            };
            (Act::Retry { ambiguous }, ids, filter, output)
        }
    };
    (Question::Act { act, ids, filter }, output, ACTED)
}

const ACTED: &[Column] = &[Column("RESULT", "result"), Column("TASKS", "tasks")];
