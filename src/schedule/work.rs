//! What a task does. Sending HTTP is the work that ships; a program may
//! schedule any other that goes through a permit.

use std::sync::Arc;

use super::task::{Record, TaskCall, Upshot};
use crate::admission::{Closing, NoRoute, Permit, Route};
use crate::step::Step;
use crate::store;

/// What a call came to, and its end, to be put on record together.
#[derive(Debug)]
pub struct Report {
    /// What it came to.
    pub upshot: Upshot,
    /// The end of the call.
    pub closing: Closing,
}

/// The work of a schedule's tasks.
pub trait Work: Send + Sync + 'static {
    /// The lane that a call goes through; takes nothing.
    ///
    /// # Errors
    /// When the gate will never let it through.
    fn route(&self, call: &TaskCall, step: &Step) -> Result<Route, NoRoute>;

    /// What a call names us as, for the record; none where it is what the
    /// gate's calls are named by.
    fn user_agent(&self, _call: &TaskCall) -> Option<String> {
        None
    }

    /// Makes the next call of a task. Nothing may leave before the permit is
    /// on record.
    ///
    /// # Errors
    /// When nothing can be put on record.
    fn run(
        self: Arc<Self>,
        record: Record,
        permit: Permit,
    ) -> impl Future<Output = Result<Report, store::Fault>> + Send;
}
