//! What can be asked of an admission, and what it answers.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::Permit;
use crate::audit::TaskRef;
use crate::budget::{BucketId, Cause, Deferral, Refusal};
use crate::clock::Moment;
use crate::step::Step;
use crate::store::StoreError;

/// How much of a path goes on record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathRecording {
    /// E-mail addresses, numbers and tokens in it are masked.
    #[default]
    Masked,
    /// As it is.
    Full,
}

/// Whether a call has to say who caused it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepPolicy {
    /// A call that names no agent is recorded as unattributed.
    #[default]
    Optional,
    /// A call that names no agent is refused.
    Required,
}

/// What an admission needs to know beside its rules.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// How paths are recorded.
    pub paths: PathRecording,
    /// Whether calls must name their step.
    pub steps: StepPolicy,
    /// What calls name us as.
    pub user_agent: Arc<str>,
    /// The digest of the rules' file, for the record.
    pub rules: Arc<str>,
}

/// A wish to call.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, without query.
    pub path: &'a str,
    /// Tokens.
    pub cost: NonZeroU32,
    /// Who causes it.
    pub step: &'a Step,
    /// The task, where there is one.
    pub task: Option<TaskRef>,
    /// The how-manieth sending of the task, from 1.
    pub attempt: u32,
    /// Redirects followed before it.
    pub hop: u32,
    /// What it names us as, where not as the policy does.
    pub user_agent: Option<&'a str>,
}

impl<'a> Ask<'a> {
    /// A first call of one token.
    #[must_use]
    pub fn new(method: &'a str, path: &'a str, step: &'a Step) -> Self {
        Self {
            method,
            path,
            cost: NonZeroU32::MIN,
            step,
            task: None,
            attempt: 1,
            hop: 0,
            user_agent: None,
        }
    }
}

/// The answer to a wish to call. Not a `Result`: *not yet* is no error.
#[derive(Debug)]
#[must_use = "a deferral and a refusal are answers too"]
pub enum Verdict {
    /// Now.
    Granted(Permit),
    /// Not now.
    Deferred(Deferral),
    /// Never.
    Refused(Refusal),
}

/// Why a bucket is worth another look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A call that drew from it has ended.
    CallEnded(BucketId),
    /// Anything may be different: a refund, other rules, a pause or a hold.
    Changed(BucketId),
}

/// How long a call would have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    None,
    /// Until then, as far as is known; and why.
    Until(Option<Moment>, Cause),
    /// For ever: it costs more than there can be.
    Never,
    /// It is refused: an operator said so.
    Denied,
}

/// Why a call has no lane.
#[derive(Debug, thiserror::Error)]
pub enum NoRoute {
    /// It will never be sent by us.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What was spent at its target cannot be read: nothing may be sent there,
    /// and nothing is decided about the call.
    #[error(transparent)]
    Unreadable(#[from] StoreError),
}
