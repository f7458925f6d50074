//! The two kinds of *no*: not now, and never.

use std::time::Duration;

use serde_json::{Value, json};

use super::bucket::BucketId;
use super::envelope::Revision;
use super::lack::Cause;
use super::limit::Limit;
use super::scope::Scope;
use crate::clock::{Moment, wall_at};
use crate::target::TargetKey;

/// Not now. Never an error, never an empty result: the caller does other work.
#[derive(Clone, Debug)]
pub struct Deferral {
    /// Whose call.
    pub target: TargetKey,
    /// The envelope in force.
    pub revision: Revision,
    /// Why.
    pub cause: Cause,
    /// The limit that is empty, where one is.
    pub limit: Option<(Scope, Limit)>,
    /// The earliest instant known now; exact while nothing is under way,
    /// refunded or revised. None: nobody can say.
    pub ready: Option<Moment>,
    /// When to come back, given all who were told so before.
    pub place: Option<Moment>,
    /// When it was said.
    pub now: Moment,
    /// What it waits for, inside this process.
    pub bucket: BucketId,
}

impl Deferral {
    /// How long to wait before asking again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.place.map(|place| place.since(self.now))
    }

    /// The deferral as every surface shows it, given nanoseconds from
    /// decision time to the wall clock.
    #[must_use]
    pub fn to_json(&self, wall_offset: i64) -> Value {
        let mut json = json!({
            "decision": "deferred",
            "target": self.target,
            "class": self.target.class,
            "envelope_revision": self.revision,
            "cause": self.cause,
            "ready_at": self.ready.map(|ready| rfc3339(ready, wall_offset)),
            "retry_after_ms": self.retry_after().map(millis),
            "sent_upstream": false,
            "hint": self.hint(wall_offset),
        });
        if let (Some((scope, limit)), Some(fields)) = (&self.limit, json.as_object_mut()) {
            fields.insert(
                "limit".into(),
                json!({"scope": scope.kind(), "name": scope.name(), "limit": limit.to_string(), "burst": limit.burst()}),
            );
        }
        json
    }

    fn hint(&self, wall_offset: i64) -> String {
        let why = match self.cause {
            Cause::BudgetEmpty => "held back by our own budget",
            Cause::Concurrency => "as many calls as allowed are under way",
            Cause::Paused => "the target asked to be left alone",
            Cause::Unreachable => "the target cannot be reached and rests",
            Cause::Held => "an operator holds this target",
        };
        match self.ready {
            Some(ready) => {
                format!(
                    "{why}, not an empty result; do other work until {}",
                    rfc3339(ready, wall_offset)
                )
            }
            None => format!("{why}, not an empty result; do other work"),
        }
    }
}

/// Whole milliseconds, rounded up.
fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// An instant as RFC 3339 in UTC with milliseconds, rounded up, so that it is
/// never before the instant itself.
#[must_use]
pub fn rfc3339(moment: Moment, wall_offset: i64) -> String {
    let up = Moment::from_nanos(moment.as_nanos().saturating_add(999_999) / 1_000_000 * 1_000_000);
    jiff::Timestamp::try_from(wall_at(up, wall_offset)).map_or_else(
        |_| "9999-12-31T23:59:59.999Z".to_owned(),
        |at| format!("{at:.3}"),
    )
}

/// Why a call is never sent by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Never {
    /// The URL names no server.
    InvalidTarget,
    /// Not a scheme that we speak.
    UnsupportedScheme,
    /// The address may not be reached from here.
    AddressBlocked,
    /// More than any bucket could hold.
    CostTooLarge,
    /// A call must name its agent here, and this one does not.
    NoStep,
    /// An operator said so.
    Denied,
}

impl Never {
    /// The name used in decisions and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidTarget => "invalid_target",
            Self::UnsupportedScheme => "unsupported_scheme",
            Self::AddressBlocked => "address_blocked",
            Self::CostTooLarge => "cost_too_large",
            Self::NoStep => "no_step",
            Self::Denied => "denied",
        }
    }
}

/// Never, by us.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused ({}): {detail}", reason.as_str())]
pub struct Refusal {
    /// Why.
    pub reason: Never,
    /// The target, as far as it could be told.
    pub target: String,
    /// What a person would want to know.
    pub detail: String,
}

impl Refusal {
    /// The refusal as every surface shows it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"decision": "refused", "reason": self.reason.as_str(), "target": self.target, "detail": self.detail})
    }
}
