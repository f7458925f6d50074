//! Promise 1 and its two companions, *ready when told* and *as many left as said*, over the
//! buckets alone: no record, no disk, so that thousands of runs fit into a second. The same
//! scripts and the same judge are used over the whole gate in `tests/promise`.

mod ahead;
mod buckets;
mod left;
mod over;
mod ready;

#[path = "../../../tests/promise/drive.rs"]
mod drive;
#[path = "../../../tests/promise/judge.rs"]
mod judge;
#[path = "../../../tests/promise/script.rs"]
mod script;

use std::num::NonZeroU32;
use std::time::Duration;

use super::limit::{Frequency, Limit, Reset};
use judge::{Kind, Policy};

fn limit(policy: Policy) -> Limit {
    let n = |n: u32| NonZeroU32::new(n).unwrap();
    let frequency = Frequency::new(n(policy.count), Duration::from_nanos(policy.period)).unwrap();
    match policy.kind {
        Kind::Rate => Limit::rate(frequency, n(policy.burst)).unwrap(),
        Kind::Max => Limit::max(frequency, n(policy.burst)).unwrap(),
        Kind::Utc => Limit::quota(frequency, Reset::Utc),
        Kind::Rolling => Limit::quota(frequency, Reset::Rolling),
    }
}
