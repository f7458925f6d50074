//! When work that is known could be done, and which budget bounds it.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::lane::Resolved;
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
    /// Tokens that are wanted through lanes of which nobody can tell an end,
    /// each once, however many of a lane's budgets have none.
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
        let mut lanes: Vec<(Arc<Resolved>, u64)> = Vec::new();
        for (lane, tokens) in work {
            let resolved = lane.resolved();
            for bucket in &resolved.buckets {
                let entry = wanted.entry(bucket.id());
                entry.or_insert_with(|| (0, bucket.clone())).0 += tokens;
            }
            lanes.push((resolved, tokens));
        }
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        let mut stopped: HashSet<BucketId> = HashSet::new();
        let mut all: Vec<Ahead> = Vec::with_capacity(wanted.len());
        for (id, (tokens, bucket)) in wanted {
            if tokens == 0 {
                continue;
            }
            let ahead = ahead(&bucket, tokens, now, offset);
            if ahead.at.is_none() {
                stopped.insert(id);
            }
            all.push(ahead);
        }
        all.sort_by_key(|ahead| (ahead.at.is_some(), Reverse(ahead.at), ahead.scope.clone()));
        let is_stopped = |(resolved, _): &&(Arc<Resolved>, u64)| {
            let mut buckets = resolved.buckets.iter();
            !stopped.is_empty() && buckets.any(|bucket| stopped.contains(&bucket.id()))
        };
        let endless = lanes.iter().filter(is_stopped);
        let endless = endless.map(|(_, tokens)| tokens).sum();
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
