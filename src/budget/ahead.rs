//! How long a budget will take: when the last of many calls could be granted.

use std::num::NonZeroU32;
use std::time::Duration;

use super::bucket::Bucket;
use super::lack::Cause;
use super::limit::Limit;
use super::scope::Scope;
use crate::clock::Moment;

/// When the last of so many calls could be granted, and what keeps it so long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Whose bucket.
    pub scope: Scope,
    /// Tokens that the calls cost.
    pub tokens: u64,
    /// The earliest instant at which the last could be granted; none when
    /// nobody can say.
    pub at: Option<Moment>,
    /// What it takes so long for.
    pub bound: Bound,
}

/// What bounds the work at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// All could be granted at once.
    Nothing,
    /// A limit.
    Limit(Limit),
    /// Calls allowed at once, given how long they have taken so far.
    Concurrency(NonZeroU32),
    /// A pause or a hold that is in force.
    Stop(Cause),
}

/// Looks ahead, as if every token were asked for as early as may be and no
/// answer changed anything; takes nothing.
#[must_use]
pub fn ahead(bucket: &Bucket, tokens: u64, now: Moment, utc_offset: i64) -> Ahead {
    let state = bucket.lock();
    let around = state.around(now, utc_offset);
    let (mut at, mut bound) = (now, Bound::Nothing);
    for meter in state.meters() {
        let granted = meter.granted_at(tokens, &around);
        if granted > at {
            (at, bound) = (granted, Bound::Limit(*meter.limit()));
        }
    }
    if let (Some(most), Some(typical)) = (state.concurrency(), state.typical()) {
        let rounds = tokens.saturating_sub(1) / u64::from(most.get());
        let granted = now.after(longer(typical, rounds));
        if granted > at {
            (at, bound) = (granted, Bound::Concurrency(most));
        }
    }
    let stop = state.stop(now);
    drop(state);
    let (at, bound) = match stop {
        None => (Some(at), bound),
        Some((cause, None)) => (None, Bound::Stop(cause)),
        // What could have been granted meanwhile comes after it.
        Some((cause, Some(until))) if bound == Bound::Nothing => {
            (Some(until.max(at)), Bound::Stop(cause))
        }
        Some((_, Some(until))) => (Some(at.after(until.since(now))), bound),
    };
    Ahead {
        scope: bucket.scope().clone(),
        tokens,
        at,
        bound,
    }
}

fn longer(span: Duration, times: u64) -> Duration {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(nanos.saturating_mul(times))
}
