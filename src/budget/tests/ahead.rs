//! *Ends when told*: a bucket that is asked for a token whenever it may have one grants the last of
//! many calls when it was said to, or as little later as the limits' meeting points make it.

use std::time::Duration;

use proptest::prelude::*;

use super::judge::{Kind, Policy};
use super::ready::{SECOND, Sent, bucket, policies, send, start};
use crate::budget::ahead::{Bound, ahead};
use crate::budget::local::Line;
use crate::clock::Moment;

/// Sends `calls` as early as may be; when the last one went.
fn worked_off(policies: &[Policy], margin: Duration, spent: u32, calls: u64) -> (Moment, Moment) {
    let bucket = bucket(policies, margin);
    let mut now = start();
    for _ in 0..spent {
        send(&bucket, 1, now, Line::Watch);
    }
    let told = ahead(&bucket, calls, now, 0);
    let mut last = now;
    for _ in 0..calls {
        loop {
            match send(&bucket, 1, now, Line::Watch) {
                Sent::Now => break,
                Sent::Later(ready, _) => now = ready,
                Sent::Never => panic!("a cost of one is never too much"),
            }
        }
        last = now;
    }
    (told.at.expect("nothing stops it"), last)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn one_limit_ends_when_told(
        policy in policies().prop_map(|mut all| all.swap_remove(0)),
        spent in 0..30_u32, calls in 1..200_u64, margin in 0..2_000_u64,
    ) {
        // A period that is shorter than a call's way counts most calls twice.
        prop_assume!(policy.kind != Kind::Utc || policy.period > 60 * SECOND);
        let margin = Duration::from_millis(margin);
        let (told, last) = worked_off(&[policy], margin, spent, calls);
        let off = last.as_nanos().abs_diff(told.as_nanos());
        // A rolling quota frees its calls in parts, and each of them a margin late.
        let slack = match policy.kind {
            Kind::Rate | Kind::Max | Kind::Utc => 0,
            Kind::Rolling => {
                let periods = calls / u64::from(policy.count) + 1;
                periods * (policy.period / 32 + u64::try_from(margin.as_nanos()).unwrap())
                    + policy.period
            }
        };
        prop_assert!(off <= slack, "told {told:?}, was {last:?}, {policy:?}");
    }

    #[test]
    fn several_limits_never_end_before_they_are_said_to(
        policies in policies(), spent in 0..30_u32, calls in 1..200_u64,
    ) {
        let paced = policies.iter().all(|policy| policy.kind != Kind::Rolling);
        let (told, last) = worked_off(&policies, Duration::ZERO, spent, calls);
        prop_assert!(!paced || last >= told, "told {told:?}, was {last:?}");
    }
}

#[test]
fn what_bounds_the_work_is_named() {
    let slow = Policy {
        kind: Kind::Max,
        count: 6,
        period: 60 * SECOND,
        burst: 1,
    };
    let fast = Policy {
        kind: Kind::Rate,
        count: 10,
        period: SECOND,
        burst: 5,
    };
    let bucket = bucket(&[slow, fast], Duration::ZERO);
    let told = ahead(&bucket, 7, start(), 0);
    assert_eq!(told.at, Some(start().after(Duration::from_secs(60))));
    let Bound::Limit(limit) = told.bound else {
        panic!("{told:?}");
    };
    assert_eq!(limit.to_string(), "6/min");
    assert_eq!(ahead(&bucket, 0, start(), 0).bound, Bound::Nothing);
}
