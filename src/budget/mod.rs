//! What a target tolerates, and what is left of it.
//!
//! A call draws from several buckets - pool, group, host, class - and
//! takes from all or from none. From the grant until its request
//! has left, a token is *debt that does not decay*: the target's own bucket
//! cannot refill for a request that has not arrived. Each decision is taken as
//! of `arrival_margin` ago, so that requests whose delays on the way differ by
//! no more than that never find the target's bucket empty, in any order.
//!
//! Nothing here sleeps, retries or knows a network: `now` is always given.

mod ahead;
mod bucket;
mod deferral;
mod envelope;
mod gcra;
mod lack;
mod limit;
mod local;
mod manual;
mod meter;
mod meters;
mod pattern;
mod pause;
mod rule;
mod rulebook;
mod scope;
mod tally;

pub use ahead::{Ahead, Bound, ahead};
pub use bucket::BucketId;
pub(crate) use bucket::{Bucket, SavedBucket, SavedStops};
pub use deferral::{Deferral, Never, Refusal, rfc3339};
pub use envelope::{Envelope, Layer, Revision};
pub use lack::Cause;
pub use limit::{Frequency, Identity, Kind, Limit, LimitError, Reset, Unit};
pub use local::{Level, LimitLevel, Line};
pub(crate) use local::{Look, MOST_TIERS, Shortage, Taking, look, peek, take};
pub use manual::{Manual, ManualKind, SetLimits};
pub(crate) use meters::nothing_spent;
pub use pattern::{HostPattern, PatternError};
pub use pause::{Because, Hold, Pause, Role, Setback, backoff};
pub use rule::{
    ClassTerms, Conduct, Defaults, PauseScope, PoolRule, Provenance, Sharing, TargetRule, Terms,
    Tier,
};
pub use rulebook::{RuleError, RuleErrors, Rulebook};
pub use scope::{Scope, ScopeError};

#[cfg(test)]
mod tests;
