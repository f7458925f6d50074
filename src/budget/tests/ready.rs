//! *Ready when told*: while nothing is under way, refunded or revised, a call
//! deferred until an instant is refused just before it and granted at it.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::super::bucket::{Bucket, SavedBucket, SavedStops};
use super::super::limit::Limit;
use super::super::local::{Line, Taking, take};
use super::super::rule::{Provenance, Tier};
use super::super::scope::Scope;
use super::judge::{Kind, Policy};
use super::limit;
use crate::budget::BucketId;
use crate::clock::Moment;

pub(super) const SECOND: u64 = 1_000_000_000;

pub(super) fn policies() -> impl Strategy<Value = Vec<Policy>> {
    let kind = prop_oneof![
        Just(Kind::Rate),
        Just(Kind::Max),
        Just(Kind::Utc),
        Just(Kind::Rolling)
    ];
    let period = prop_oneof![Just(SECOND), Just(10 * SECOND), Just(3600 * SECOND)];
    let policy =
        (kind, 1..60_u32, period, 1..20_u32).prop_map(|(kind, count, period, burst)| Policy {
            kind,
            count,
            period,
            burst: burst.min(count),
        });
    prop::collection::vec(policy, 1..4)
}

pub(super) fn start() -> Moment {
    Moment::from_nanos(1_800_000_000 * SECOND)
}

pub(super) fn bucket(policies: &[Policy], margin: Duration) -> std::sync::Arc<Bucket> {
    let mut limits: Vec<Limit> = policies.iter().map(|policy| limit(*policy)).collect();
    limits.dedup_by_key(|limit| limit.identity());
    let tier = Tier {
        scope: Scope::Group("g".into()),
        limits,
        concurrency: None,
        arrival_margin: margin,
        provenance: Provenance::by("test"),
    };
    let (saved, stops) = (SavedBucket::default(), SavedStops::default());
    std::sync::Arc::new(Bucket::resumed(
        BucketId(1),
        &tier,
        &saved,
        stops,
        start(),
        0,
    ))
}

/// Takes and sends at once; none when it was taken, else when it may be.
pub(super) fn send(bucket: &std::sync::Arc<Bucket>, cost: u32, now: Moment, line: Line) -> Sent {
    let cost = NonZeroU32::new(cost).unwrap();
    match take(std::slice::from_ref(bucket), cost, now, 0, line) {
        Taking::Taken(_) => {
            let mut state = bucket.lock();
            state.depart(cost, now, 0);
            state.end(None, now);
            Sent::Now
        }
        Taking::Lacking(shortage) => {
            Sent::Later(shortage.lack.ready.unwrap(), shortage.place.unwrap())
        }
        Taking::Never(..) => Sent::Never,
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Now,
    /// The earliest instant, and the place in line.
    Later(Moment, Moment),
    Never,
}

proptest! {
    #[test]
    fn a_call_told_to_wait_is_refused_just_before_and_granted_then(
        policies in policies(),
        margin in 0..100_u64,
        wishes in prop::collection::vec((1..4_u32, 0..2_000_000_000_u64), 1..60),
    ) {
        let bucket = bucket(&policies, Duration::from_millis(margin));
        let mut now = start();
        for (cost, pause) in wishes {
            now = now.after(Duration::from_nanos(pause));
            match send(&bucket, cost, now, Line::Watch) {
                Sent::Now | Sent::Never => {}
                Sent::Later(ready, _) => {
                    prop_assert!(ready > now);
                    let before = ready.before(Duration::from_nanos(1));
                    prop_assert_eq!(send(&bucket, cost, before, Line::Watch), Sent::Later(ready, ready));
                    prop_assert_eq!(send(&bucket, cost, ready, Line::Watch), Sent::Now);
                    now = ready;
                }
            }
        }
    }

    #[test]
    fn each_deferral_outstanding_is_told_a_later_place_and_never_one_before_the_earliest(
        policies in policies(),
        asks in 2..200_usize,
    ) {
        let bucket = bucket(&policies, Duration::from_millis(25));
        let now = start();
        while send(&bucket, 1, now, Line::Watch) == Sent::Now {}
        let mut last = Moment::ZERO;
        for _ in 0..asks {
            let Sent::Later(ready, place) = send(&bucket, 1, now, Line::Join) else {
                return Err(TestCaseError::fail("it is exhausted"));
            };
            prop_assert!(place >= ready && place >= last);
            prop_assert!(place.since(ready) <= Duration::from_secs(300));
            last = place;
        }
        // Once those instants have passed, nobody is outstanding any more.
        let later = last.after(Duration::from_secs(400 * 24 * 3600));
        while send(&bucket, 1, later, Line::Watch) == Sent::Now {}
        let Sent::Later(ready, place) = send(&bucket, 1, later, Line::Join) else {
            return Err(TestCaseError::fail("it is exhausted"));
        };
        prop_assert_eq!(ready, place);
    }
}
