//! What keeps an admission whole: recovery, new rules, eviction, gauges.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Admission, News, Resolved, Rules};
use crate::audit::{Event, Interrupted};
use crate::budget::{Rulebook, Scope, TargetRule, peek};
use crate::store::{Changes, Durable, Space, StoreError, paired};
use crate::target::TargetKey;
use crate::telemetry;

impl Admission {
    /// Every call that was under way counts as sent now: nobody knows when it
    /// left, and later is the careful guess.
    pub(super) fn recover(&self, interrupted: Vec<Interrupted>) -> Result<(), StoreError> {
        let now = self.clock.now();
        let opened = Event::Opened {
            gate: self.log.gate(),
            version: env!("CARGO_PKG_VERSION").into(),
            rules: self.policy.rules.clone(),
            interrupted: interrupted.len() as u64,
            at: now,
        };
        self.log.note(opened).detach();
        let any = !interrupted.is_empty();
        for call in interrupted {
            let lane = self.lane(&call.intent.target)?;
            let buckets = lane.resolved();
            for bucket in &buckets.buckets {
                bucket
                    .lock()
                    .recover(call.intent.cost, now, self.clock.utc_offset());
            }
            let task = call.intent.task;
            let settled = self.log.interrupt(call, now, |changes| {
                if let Some(task) = task {
                    changes.put(Space::Cut, &paired(task.job, task.number), &());
                }
                for bucket in &buckets.buckets {
                    changes.put(
                        Space::Bucket,
                        bucket.scope().to_string().as_bytes(),
                        &bucket.lock().saved(),
                    );
                }
            });
            settled.detach();
        }
        if any {
            // Their schedules read next which of their tasks were cut.
            self.store.settle()?;
        }
        self.load_stops()
    }

    /// Pauses and holds are loaded at once, so that they are listed whether
    /// or not somebody has work for their targets.
    fn load_stops(&self) -> Result<(), StoreError> {
        let stops: Result<Vec<_>, _> = self
            .store
            .scan::<crate::budget::SavedStops>(Space::Stop, ..)
            .map(|entry| entry.map(|(key, _)| key))
            .collect();
        for key in stops? {
            let scope = String::from_utf8(key)
                .ok()
                .and_then(|name| name.parse::<Scope>().ok());
            match scope {
                Some(Scope::Host(origin)) => drop(self.lane(&TargetKey::from(origin))?),
                Some(Scope::Class(origin, class)) => {
                    drop(self.lane(&TargetKey::new(origin, class))?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts other rules in force. What was spent stays spent.
    ///
    /// # Errors
    /// When what was spent cannot be read; lanes before it have the new rules.
    pub fn adopt(&self, rulebook: Rulebook) -> Result<(), StoreError> {
        let since = self.clock.now();
        *self
            .rulebook
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Rules {
            book: Arc::new(rulebook),
            since,
        };
        let lanes: Vec<_> = self.lanes.iter().map(|lane| lane.clone()).collect();
        for lane in lanes {
            let resolved = self.resolve(lane.key())?;
            self.refit(&resolved);
            // Who waits on a bucket that it no longer draws from is woken too.
            let before = lane.resolved();
            let changed: Vec<_> = before.bucket_ids().chain(resolved.bucket_ids()).collect();
            lane.replace(resolved);
            changed
                .into_iter()
                .for_each(|bucket| self.tell(News::Changed(bucket)));
        }
        Ok(())
    }

    /// Puts the terms of a lane in force in its buckets, and on record what
    /// was spent as of that instant.
    pub(super) fn refit(&self, resolved: &Resolved) {
        for (bucket, tier) in resolved.buckets.iter().zip(&resolved.terms.tiers) {
            let mut state = bucket.lock();
            let before = state.saved();
            // Now under the lock: a call may have left since the last bucket.
            state.refit(tier, self.clock.now(), self.clock.utc_offset());
            let after = state.saved();
            if after != before {
                let mut changes = Changes::default();
                changes.put(Space::Bucket, bucket.scope().to_string().as_bytes(), &after);
                // Handed over under the lock: a settlement's state is either
                // older and goes first, or newer and goes later.
                self.store.write(changes).detach();
            }
        }
    }

    /// Forgets what would answer the same if it were new: lanes that nobody
    /// holds, and full buckets without debt, pause or hold, unused for `idle`.
    /// Returns how many buckets are left. What was counted for a minute goes
    /// on record meanwhile.
    pub fn sweep(&self, idle: Duration) -> usize {
        self.log.turn();
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        let rules = self.rulebook();
        self.lanes.retain(|_, lane| {
            let idle_all = || {
                lane.resolved()
                    .buckets
                    .iter()
                    .all(|bucket| bucket.lock().is_idle(now, idle, offset))
            };
            let named = |rule: &TargetRule| rule.pattern.origin().is_some();
            let is_named = || rules.rule(&lane.key().origin).is_some_and(named);
            Arc::strong_count(lane) > 1 || !idle_all() || is_named()
        });
        self.buckets.retain(|scope, bucket| {
            let keep = Arc::strong_count(bucket) > 1 || !bucket.lock().is_idle(now, idle, offset);
            // That a host has answered once is worth keeping: it tells an
            // outage from a name that leads nowhere.
            if !keep && !bucket.lock().was_reached() {
                // Unseen, since its last state may be on its way to the disk;
                // handed over before another of its scope can be made.
                let mut changes = Changes::default();
                changes.delete(Space::Bucket, scope.to_string().as_bytes());
                self.store.write(changes).detach();
            }
            keep
        });
        self.buckets.len()
    }

    /// Brings the gauges of the named targets up to date, `seconds` after the
    /// last time.
    pub fn gauge(&self, seconds: u64) {
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        for origin in telemetry::named_targets() {
            let lane = self
                .lanes
                .get(&TargetKey::from(origin.clone()))
                .map(|lane| lane.clone());
            let Some(lane) = lane else { continue };
            let mut exhausted = false;
            for bucket in &lane.resolved().buckets {
                let level = peek(bucket, now, offset);
                exhausted |=
                    level.pause.is_some() || level.limits.iter().any(|limit| limit.left == 0);
                for limit in level.limits {
                    let name = format!("{}:{}", level.scope.kind(), limit.limit);
                    telemetry::budget_left(&origin, name, limit.left);
                }
            }
            if exhausted {
                telemetry::exhausted(&origin, seconds);
            }
        }
    }

    /// Lanes of targets that a rule names exist from the start, so that they
    /// are listed before their first call.
    ///
    /// # Errors
    /// When what was spent there cannot be read.
    pub fn name_lanes(&self) -> Result<(), StoreError> {
        let origins = self.rulebook();
        let origins = origins.rules().filter_map(|rule| rule.pattern.origin());
        origins
            .map(TargetKey::from)
            .try_for_each(|key| self.lane(&key).map(drop))
    }

    /// Every lane there is, by target.
    #[must_use]
    pub fn lanes(&self) -> Vec<Arc<super::Lane>> {
        let mut lanes: Vec<_> = self.lanes.iter().map(|lane| lane.clone()).collect();
        lanes.sort_by(|a, b| a.key().cmp(b.key()));
        lanes
    }

    /// Puts the end of the run on record.
    pub fn close(&self) -> Durable {
        self.log.close()
    }
}
