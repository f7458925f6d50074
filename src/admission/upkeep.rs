//! What keeps an admission whole: recovery, new rules, eviction, gauges.

use std::sync::Arc;
use std::time::Duration;

use super::Admission;
use crate::audit::{Event, Interrupted};
use crate::budget::{Scope, TargetRule, peek};
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
        self.load_stops()?;
        self.load_manual()
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

    /// Forgets what would answer the same if it were new: lanes that nobody
    /// holds, and full buckets without debt, pause or word of an operator,
    /// unused for `idle`. Returns how many buckets are left. What was counted
    /// for a minute goes on record meanwhile, and manual changes end.
    pub fn sweep(&self, idle: Duration) -> usize {
        self.log.turn();
        if let Err(error) = self.lapse() {
            tracing::error!(%error, "a manual change could not be ended");
        }
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
            let keep = Arc::strong_count(bucket) > 1
                || !bucket.lock().is_idle(now, idle, offset)
                || self.overrides.names(scope);
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
