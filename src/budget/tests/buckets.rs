//! A gate of nothing but buckets, with a record in memory.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::drive::{Answer, Gate};
use super::limit;
use super::script::{LANES, Rules, SCOPES, Script};
use crate::budget::bucket::{Bucket, BucketId, SavedBucket, SavedStops};
use crate::budget::local::{Line, Taking, take};
use crate::budget::rule::{Provenance, Tier};
use crate::budget::scope::Scope;
use crate::clock::Moment;

/// Buckets, and what a record would hold of them.
pub struct Buckets {
    now: Moment,
    margin: Duration,
    concurrency: u32,
    buckets: Vec<Arc<Bucket>>,
    calls: HashMap<usize, Call>,
    saved: Vec<SavedBucket>,
    /// Calls on record as under way, with lane and cost.
    open: HashMap<usize, (usize, NonZeroU32)>,
    is_recording: bool,
}

struct Call {
    lane: usize,
    cost: NonZeroU32,
    departed: Option<Moment>,
}

impl Buckets {
    pub fn new(script: &Script) -> Self {
        let mut buckets = Self {
            now: Moment::from_nanos(script.start),
            margin: Duration::from_nanos(script.margin),
            concurrency: script.concurrency,
            buckets: Vec::new(),
            calls: HashMap::new(),
            saved: vec![SavedBucket::default(); SCOPES],
            open: HashMap::new(),
            is_recording: true,
        };
        buckets.load(&script.rules[0]);
        buckets
    }

    fn tier(&self, scope: usize, rules: &Rules) -> Tier {
        Tier {
            scope: Scope::Pool(scope.to_string().into()),
            limits: rules.0[scope].iter().copied().map(limit).collect(),
            concurrency: NonZeroU32::new(self.concurrency),
            arrival_margin: self.margin,
            provenance: Provenance::default(),
        }
    }

    fn load(&mut self, rules: &Rules) {
        let buckets = self.saved.iter().enumerate().map(|(scope, saved)| {
            let id = BucketId(u64::try_from(scope).unwrap());
            let tier = self.tier(scope, rules);
            Arc::new(Bucket::resumed(
                id,
                &tier,
                saved,
                SavedStops::default(),
                self.now,
                0,
            ))
        });
        self.buckets = buckets.collect();
    }

    pub fn lane(&self, lane: usize) -> Vec<Arc<Bucket>> {
        LANES[lane]
            .iter()
            .map(|scope| self.buckets[*scope].clone())
            .collect()
    }

    fn settle(&mut self, number: usize, lane: usize) {
        if self.is_recording {
            self.open.remove(&number);
            for scope in LANES[lane] {
                self.saved[*scope] = self.buckets[*scope].lock().saved();
            }
        }
    }
}

impl Gate for Buckets {
    fn at(&mut self, now: u64) {
        self.now = Moment::from_nanos(now);
    }

    fn ask(&mut self, call: usize, lane: usize, cost: u32) -> Answer {
        let cost = NonZeroU32::new(cost).unwrap();
        match take(&self.lane(lane), cost, self.now, 0, Line::Watch) {
            Taking::Taken(_) => {
                assert!(self.is_recording, "granted what cannot be on record");
                self.open.insert(call, (lane, cost));
                let departed = None;
                self.calls.insert(
                    call,
                    Call {
                        lane,
                        cost,
                        departed,
                    },
                );
                Answer::Granted
            }
            Taking::Lacking(shortage) => Answer::Wait(shortage.lack.ready.map(Moment::as_nanos)),
            Taking::Never(..) => Answer::Never,
        }
    }

    fn depart(&mut self, call: usize) {
        let now = self.now;
        let Some(call) = self.calls.get_mut(&call) else {
            return;
        };
        call.departed = Some(now);
        let (lane, cost) = (call.lane, call.cost);
        for bucket in self.lane(lane) {
            bucket.lock().depart(cost, now, 0);
        }
    }

    fn end(&mut self, number: usize) {
        let Some(call) = self.calls.remove(&number) else {
            return;
        };
        let lasted = call.departed.map(|departed| self.now.since(departed));
        for bucket in self.lane(call.lane) {
            bucket.lock().end(lasted, self.now);
        }
        self.settle(number, call.lane);
    }

    fn abandon(&mut self, number: usize) {
        let Some(call) = self.calls.remove(&number) else {
            return;
        };
        for bucket in self.lane(call.lane) {
            let mut state = bucket.lock();
            state.refund(call.cost);
            state.end(None, self.now);
        }
        self.settle(number, call.lane);
    }

    fn revise(&mut self, rules: &Rules) {
        for (scope, bucket) in self.buckets.iter().enumerate() {
            bucket.lock().refit(&self.tier(scope, rules), self.now, 0);
            self.saved[scope] = bucket.lock().saved();
        }
    }

    fn stop_the_record(&mut self) {
        self.is_recording = false;
    }

    fn reopen(&mut self, now: u64, rules: &Rules) -> u64 {
        self.at(now);
        self.is_recording = true;
        self.calls.clear();
        self.load(rules);
        for (number, (lane, cost)) in std::mem::take(&mut self.open) {
            for bucket in self.lane(lane) {
                bucket.lock().recover(cost.get(), self.now, 0);
            }
            self.settle(number, lane);
        }
        now
    }

    fn sweep(&mut self) {
        for scope in 0..SCOPES {
            if self.buckets[scope]
                .lock()
                .is_idle(self.now, Duration::ZERO, 0)
            {
                self.saved[scope] = SavedBucket::default();
            }
        }
    }
}
