//! Buckets of this process: taken from all together, or not at all.

use std::num::NonZeroU32;
use std::sync::{Arc, MutexGuard};

use super::bucket::{Bucket, BucketId, State};
use super::lack::{Cause, Lack};
use super::limit::Limit;
use super::pause::{Hold, Pause, Role};
use super::scope::Scope;
use crate::clock::Moment;

/// The most buckets one call draws from: pool, group, class of the group,
/// host, class.
pub const MOST_TIERS: usize = 5;

/// What an attempt to take tokens came to.
#[derive(Debug)]
pub enum Taking {
    /// Taken from all; the role of the call in each bucket, in their order.
    Taken([Role; MOST_TIERS]),
    /// Nothing was taken.
    Lacking(Shortage),
    /// Nothing was taken, and never will be: more than this limit can hold.
    Never(Limit, Scope),
}

/// Which bucket holds a call back, and until when.
#[derive(Clone, Debug)]
pub struct Shortage {
    /// The bucket.
    pub bucket: BucketId,
    /// Whose it is.
    pub scope: Scope,
    /// What is lacking there.
    pub lack: Lack,
    /// When to come back, given everyone already told to; never before
    /// the earliest instant, none where that is unknown.
    pub place: Option<Moment>,
}

/// Whether asking takes a place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The caller will come back.
    Join,
    /// The caller only looks, or waits by other means.
    Watch,
}

/// Takes `cost` tokens from every bucket, or none from any.
#[must_use]
pub fn take(
    buckets: &[Arc<Bucket>],
    cost: NonZeroU32,
    now: Moment,
    utc_offset: i64,
    line: Line,
) -> Taking {
    let mut guards: [Option<MutexGuard<'_, State>>; MOST_TIERS] = [const { None }; MOST_TIERS];
    for (guard, bucket) in guards.iter_mut().zip(buckets) {
        *guard = Some(bucket.lock());
    }
    let states = || guards.iter().flatten().zip(buckets);
    for (state, bucket) in states() {
        if let Some(meter) = state.meters().iter().find(|meter| !meter.can_hold(cost)) {
            return Taking::Never(*meter.limit(), bucket.scope().clone());
        }
    }
    let worst = states()
        .enumerate()
        .filter_map(|(index, (state, _))| {
            state.lack(cost, now, utc_offset).map(|lack| (index, lack))
        })
        .max_by_key(|(_, lack)| weight(lack));
    if let Some((index, lack)) = worst {
        let ready = lack.ready;
        let place = match (line, guards.get_mut(index)) {
            (Line::Join, Some(Some(state))) => ready.map(|ready| state.queue_up(ready)),
            _ => ready,
        };
        drop(guards);
        return match buckets.get(index) {
            Some(bucket) => Taking::Lacking(Shortage {
                bucket: bucket.id(),
                scope: bucket.scope().clone(),
                lack,
                place,
            }),
            None => Taking::Taken([Role::Ordinary; MOST_TIERS]),
        };
    }
    let mut roles = [Role::Ordinary; MOST_TIERS];
    for (role, state) in roles.iter_mut().zip(guards.iter_mut().flatten()) {
        *role = state.grant(cost, now);
    }
    Taking::Taken(roles)
}

/// What is left in one bucket, and what stops it.
#[derive(Clone, Debug)]
pub struct Level {
    /// Whose bucket.
    pub scope: Scope,
    /// Each limit.
    pub limits: Vec<LimitLevel>,
    /// Calls under way, and the most allowed.
    pub in_flight: u32,
    /// See [`super::Conduct::concurrency`].
    pub concurrency: Option<NonZeroU32>,
    /// The pause in force.
    pub pause: Option<Pause>,
    /// The hold in force.
    pub hold: Option<Hold>,
}

/// What is left of one limit.
#[derive(Clone, Debug)]
pub struct LimitLevel {
    /// The limit.
    pub limit: Limit,
    /// Single calls that would be granted at once, one after the other.
    pub left: u64,
    /// When one more call will be granted, if nothing is taken.
    pub ready: Moment,
    /// When all of it will be there again, if nothing is taken.
    pub full: Moment,
}

/// Looks; takes nothing.
#[must_use]
pub fn peek(bucket: &Bucket, now: Moment, utc_offset: i64) -> Level {
    let state = bucket.lock();
    let around = state.around(now, utc_offset);
    let limits = state.meters().iter().map(|meter| LimitLevel {
        limit: *meter.limit(),
        left: meter.left(&around),
        ready: meter.ready(NonZeroU32::MIN, &around),
        full: meter.full_at(&around),
    });
    Level {
        scope: bucket.scope().clone(),
        limits: limits.collect(),
        in_flight: state.in_flight(),
        concurrency: state.concurrency(),
        pause: state.pause().cloned(),
        hold: state.hold(now).cloned(),
    }
}

/// What a call of `cost` would come to, were it to ask now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Granted.
    Open,
    /// This is lacking.
    Lacking(Lack),
    /// More than there can be.
    Never,
}

/// Looks at each bucket once; takes nothing.
#[must_use]
pub fn look(buckets: &[Arc<Bucket>], cost: NonZeroU32, now: Moment, utc_offset: i64) -> Look {
    let mut worst: Option<Lack> = None;
    for bucket in buckets {
        let state = bucket.lock();
        if !state.can_ever(cost) {
            return Look::Never;
        }
        let lack = state.lack(cost, now, utc_offset);
        drop(state);
        // Of equals the later, as `take` has it.
        if lack.is_some_and(|lack| worst.is_none_or(|worst| weight(&worst) <= weight(&lack))) {
            worst = lack;
        }
    }
    worst.map_or(Look::Open, Look::Lacking)
}

/// The greater, the longer it may take.
fn weight(lack: &Lack) -> impl Ord + use<> {
    (
        lack.cause == Cause::Held,
        lack.ready.is_none(),
        lack.ready,
        lack.cause,
    )
}
