//! *As many left as said*: what a look says is what is then granted, one call
//! after the other, whether or not the calls before have left.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::super::local::{Line, Taking, peek, take};
use super::ready::{Sent, bucket, policies, send, start};

proptest! {
    #[test]
    fn what_is_said_to_be_left_is_what_is_granted(
        policies in policies(),
        margin in 0..100_u64,
        before in prop::collection::vec(0..3_000_000_000_u64, 0..40),
        under_way in 0..5_usize,
    ) {
        let bucket = bucket(&policies, Duration::from_millis(margin));
        let mut now = start();
        for pause in before {
            now = now.after(Duration::from_nanos(pause));
            prop_assert!(send(&bucket, 1, now, Line::Watch) != Sent::Never);
        }
        let one = NonZeroU32::MIN;
        let grant = || matches!(take(std::slice::from_ref(&bucket), one, now, 0, Line::Watch), Taking::Taken(_));
        for _ in 0..under_way {
            grant();
        }
        let said = peek(&bucket, now, 0).limits.iter().map(|limit| limit.left).min().unwrap_or(0);
        let granted = (0..10_000).take_while(|_| grant()).count() as u64;
        prop_assert_eq!(said, granted);
    }
}
