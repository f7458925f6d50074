//! A task before it is accepted.

use std::num::NonZeroU32;

use crate::schedule::list::{content, default_id};
use crate::schedule::payload::HttpPayload;
use crate::schedule::task::{MAX_ATTEMPTS, Repeat, Task, TaskCall};
use crate::step::Step;

/// A task to be accepted, with the hash of what it asks for.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The task.
    pub task: Task,
    /// Two tasks of one id must agree in this.
    pub content: [u8; 16],
}

impl NewTask {
    /// A GET of `url` with everything else as for a bare line of a task file:
    /// its id is a hash of the call, so the same call twice is one task. A URL
    /// without a target is refused when it is its turn.
    #[must_use]
    pub fn get(url: &str, step: Step) -> Self {
        const GET: &str = "GET";
        let task = Task {
            id: default_id(GET, url, &[]).into(),
            call: TaskCall {
                url: url.into(),
                method: GET.into(),
                payload: HttpPayload::default().encode().into(),
            },
            step,
            priority: 0,
            not_before: None,
            deadline: None,
            max_attempts: MAX_ATTEMPTS,
            cost: NonZeroU32::MIN,
            repeat: Repeat::Safe,
        };
        Self {
            task,
            content: content(GET, url, &[], &[], None),
        }
    }
}
