//! When work that is known could be done, and which budget bounds it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::{Admission, Lane};
use crate::budget::{Ahead, BucketId, ahead};
use crate::clock::Moment;

/// Work that is known, seen from now on. As early as can be: nothing is said of
/// answers that fail, of targets that ask for a pause, or of this machine.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    /// When the last call could be granted; none when some wait for an
    /// operator, or when there is no work.
    pub ends: Option<Moment>,
    /// The budgets that take longest, the longest first; those that nobody can
    /// tell an end of go before all.
    pub slowest: Vec<Ahead>,
    /// Tokens at targets of which nobody can tell an end.
    pub endless: u64,
}

impl Admission {
    /// Looks ahead on tokens that are wanted through lanes, and names at most
    /// so many budgets. Takes nothing.
    #[must_use]
    pub fn outlook(
        &self,
        work: impl IntoIterator<Item = (Arc<Lane>, u64)>,
        most: usize,
    ) -> Outlook {
        let mut wanted: HashMap<BucketId, (u64, Arc<crate::budget::Bucket>)> = HashMap::new();
        for (lane, tokens) in work {
            for bucket in &lane.resolved().buckets {
                let entry = wanted.entry(bucket.id());
                entry.or_insert_with(|| (0, bucket.clone())).0 += tokens;
            }
        }
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        let mut all: Vec<Ahead> = wanted
            .into_values()
            .filter(|(tokens, _)| *tokens > 0)
            .map(|(tokens, bucket)| ahead(&bucket, tokens, now, offset))
            .collect();
        all.sort_by_key(|ahead| (ahead.at.is_some(), Reverse(ahead.at), ahead.scope.clone()));
        let endless = all.iter().filter(|ahead| ahead.at.is_none());
        let endless = endless.map(|ahead| ahead.tokens).sum();
        let ends = match all.first() {
            Some(first) if endless == 0 => first.at,
            _ => None,
        };
        all.truncate(most);
        Outlook {
            ends,
            slowest: all,
            endless,
        }
    }
}
