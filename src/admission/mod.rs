//! Bucket and record together: the only public way to a token.
//!
//! [`Admission::admit`] answers at once - granted, deferred or refused - and
//! never sleeps. A grant takes the tokens as debt, puts the intent on record
//! and returns a [`Permit`]; nothing may leave before the permit's
//! [`on_record`](Permit::on_record) has resolved.

mod lane;
mod operator;
mod permit;
mod revisions;
mod upkeep;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use dashmap::DashMap;
use tokio::sync::mpsc;

pub use lane::{Lane, Resolved, Route};
pub use operator::{Chosen, Operator};
pub use permit::{Closing, Departure, Ending, Permit, Word};

use crate::audit::{Deferred, Event, Intent, Log, Refused, TaskRef};
use crate::budget::{
    Bucket, BucketId, Deferral, Level, Line, Never, Refusal, Rulebook, SavedBucket, SavedStops, Scope, Shortage,
    Taking, Tier, peek, shortage, take,
};
use crate::clock::Clock;
use crate::step::Step;
use crate::store::{Fault, Space, Store, StoreError};
use crate::target::{Rejection, RejectionReason, TargetKey, locate};
use crate::telemetry;

/// How much of a path goes on record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathRecording {
    /// E-mail addresses, numbers and tokens in it are masked.
    #[default]
    Masked,
    /// As it is.
    Full,
}

/// Whether a call has to say who caused it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepPolicy {
    /// A call that names no agent is recorded as unattributed.
    #[default]
    Optional,
    /// A call that names no agent is refused.
    Required,
}

/// What an admission needs to know beside its rules.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// How paths are recorded.
    pub paths: PathRecording,
    /// Whether calls must name their step.
    pub steps: StepPolicy,
    /// What calls name us as.
    pub user_agent: Arc<str>,
    /// The digest of the rules' file, for the record.
    pub rules: Arc<str>,
}

/// A wish to call.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, without query.
    pub path: &'a str,
    /// Tokens.
    pub cost: NonZeroU32,
    /// Who causes it.
    pub step: &'a Step,
    /// The task, where there is one.
    pub task: Option<TaskRef>,
    /// The how-manieth sending of the task, from 1.
    pub attempt: u32,
    /// Redirects followed before it.
    pub hop: u32,
}

impl<'a> Ask<'a> {
    /// A first call of one token.
    #[must_use]
    pub fn new(method: &'a str, path: &'a str, step: &'a Step) -> Self {
        Self { method, path, cost: NonZeroU32::MIN, step, task: None, attempt: 1, hop: 0 }
    }
}

/// The answer to a wish to call. Not a `Result`: *not yet* is no error.
#[derive(Debug)]
#[must_use = "a deferral and a refusal are answers too"]
pub enum Verdict {
    /// Now.
    Granted(Permit),
    /// Not now.
    Deferred(Deferral),
    /// Never.
    Refused(Refusal),
}

/// The gate's buckets and its record.
#[derive(Debug)]
pub struct Admission {
    store: Arc<Store>,
    log: Log,
    clock: Arc<dyn Clock>,
    policy: Policy,
    rulebook: RwLock<Arc<Rulebook>>,
    revisions: revisions::Revisions,
    lanes: DashMap<TargetKey, Arc<Lane>>,
    buckets: DashMap<Scope, Arc<Bucket>>,
    next_bucket: AtomicU64,
    watchers: Mutex<Vec<mpsc::UnboundedSender<News>>>,
    chance: RandomState,
    draws: AtomicU64,
}

impl Admission {
    /// Opens the gate over a store. What was under way when the last gate
    /// died counts as sent, and its task is marked for its schedule.
    ///
    /// # Errors
    /// When the record is damaged.
    pub fn open(
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        rulebook: Rulebook,
        policy: Policy,
    ) -> Result<Arc<Self>, StoreError> {
        let (log, interrupted) = Log::open(store.clone(), clock.clone())?;
        let revisions = revisions::Revisions::load(&store)?;
        let admission = Self {
            store,
            log,
            clock,
            policy,
            rulebook: RwLock::new(Arc::new(rulebook)),
            revisions,
            lanes: DashMap::new(),
            buckets: DashMap::new(),
            next_bucket: AtomicU64::new(1),
            watchers: Mutex::default(),
            chance: RandomState::new(),
            draws: AtomicU64::new(0),
        };
        admission.recover(interrupted)?;
        Ok(Arc::new(admission))
    }

    /// The clock that decides.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The store beneath.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The record.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// What calls name us as.
    #[must_use]
    pub fn user_agent(&self) -> &Arc<str> {
        &self.policy.user_agent
    }

    /// The rules in force.
    #[must_use]
    pub fn rulebook(&self) -> Arc<Rulebook> {
        self.rulebook.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Finds the lane of a call; takes nothing.
    ///
    /// # Errors
    /// A URL without a target is refused, and the refusal is on record.
    pub fn route(&self, url: &str, method: &str, step: &Step) -> Result<Route, Refusal> {
        let located = locate(url).map_err(|rejection| self.reject(rejection, step))?;
        let class = self.rulebook().class(&located.origin, method, &located.path, &located.query);
        let key = TargetKey::new(located.origin.clone(), class);
        let lane = self.lane(&key).map_err(|error| {
            // A damaged value must not become a free budget.
            let detail = format!("its budget cannot be read: {error}");
            Refusal { reason: Never::InvalidTarget, target: key.to_string(), detail }
        })?;
        Ok(Route { located, lane })
    }

    fn reject(&self, rejection: Rejection, step: &Step) -> Refusal {
        let reason = match rejection.reason {
            RejectionReason::InvalidTarget => Never::InvalidTarget,
            RejectionReason::UnsupportedScheme => Never::UnsupportedScheme,
        };
        let refusal = Refusal { reason, target: String::new(), detail: rejection.detail };
        self.refuse(refusal, step)
    }

    /// Puts a refusal on record.
    pub fn refuse(&self, refusal: Refusal, step: &Step) -> Refusal {
        telemetry::refused(refusal.reason.as_str());
        self.log.refuse(Refused {
            target: refusal.target.as_str().into(),
            reason: refusal.reason.as_str().into(),
            detail: refusal.detail.as_str().into(),
            step: step.clone(),
            count: 1,
            at: self.clock.now(),
        });
        refusal
    }

    /// The lane of a target key.
    ///
    /// # Errors
    /// When what was spent there cannot be read.
    pub fn lane(&self, key: &TargetKey) -> Result<Arc<Lane>, StoreError> {
        if let Some(lane) = self.lanes.get(key) {
            return Ok(lane.clone());
        }
        let lane = Arc::new(Lane::new(key.clone(), self.resolve(key)?));
        Ok(self.lanes.entry(key.clone()).or_insert(lane).clone())
    }

    fn resolve(&self, key: &TargetKey) -> Result<Resolved, StoreError> {
        let terms = self.rulebook().terms(&key.origin, &key.class);
        let revision = self.revisions.number(&terms, &self.log, self.clock.now());
        let buckets: Result<Vec<_>, _> = terms.tiers.iter().map(|tier| self.bucket(tier)).collect();
        Ok(Resolved { revision, buckets: buckets?, terms })
    }

    fn bucket(&self, tier: &Tier) -> Result<Arc<Bucket>, StoreError> {
        if let Some(bucket) = self.buckets.get(&tier.scope) {
            return Ok(bucket.clone());
        }
        // Read under the entry's lock: an evicted bucket is gone from the
        // store before another of its scope is made.
        let entry = self.buckets.entry(tier.scope.clone());
        let dashmap::Entry::Vacant(vacant) = entry else {
            return self.bucket_of(&tier.scope).map_or_else(|| self.bucket(tier), Ok);
        };
        let name = tier.scope.to_string();
        let saved: Option<SavedBucket> = self.store.get(Space::Bucket, name.as_bytes())?;
        let stops: Option<SavedStops> = self.store.get(Space::Stop, name.as_bytes())?;
        let id = BucketId(self.next_bucket.fetch_add(1, Ordering::Relaxed));
        let now = self.clock.now();
        let offset = self.clock.utc_offset();
        let bucket = Bucket::resumed(id, tier, &saved.unwrap_or_default(), stops.unwrap_or_default(), now, offset);
        Ok(vacant.insert(Arc::new(bucket)).clone())
    }

    fn bucket_of(&self, scope: &Scope) -> Option<Arc<Bucket>> {
        self.buckets.get(scope).map(|bucket| bucket.clone())
    }

    /// Decides, at once.
    ///
    /// # Errors
    /// When the store takes nothing new: then nothing may be sent at all.
    pub fn admit(self: &Arc<Self>, lane: &Arc<Lane>, ask: &Ask<'_>, line: Line) -> Result<Verdict, Fault> {
        self.store.health()?;
        if self.policy.steps == StepPolicy::Required && !ask.step.is_attributed() {
            let detail = "require_step is set, and this call names no agent".to_owned();
            let refusal = Refusal { reason: Never::NoStep, target: lane.key().to_string(), detail };
            return Ok(Verdict::Refused(self.refuse(refusal, ask.step)));
        }
        let resolved = lane.resolved();
        let now = self.clock.now();
        match take(&resolved.buckets, ask.cost, now, self.clock.utc_offset(), line) {
            Taking::Taken(roles) => {
                let intent = self.intent(lane, &resolved, ask, now);
                Ok(Verdict::Granted(Permit::new(self.clone(), lane.clone(), resolved, roles, intent)))
            }
            Taking::Lacking(shortage) => Ok(Verdict::Deferred(self.defer(lane, &resolved, ask, now, shortage))),
            Taking::Never(limit, scope) => {
                let detail = format!(
                    "a cost of {} is more than {limit} of {} could ever let through at once ({})",
                    ask.cost,
                    scope,
                    limit.burst()
                );
                let refusal = Refusal { reason: Never::CostTooLarge, target: lane.key().to_string(), detail };
                Ok(Verdict::Refused(self.refuse(refusal, ask.step)))
            }
        }
    }

    fn intent(&self, lane: &Lane, resolved: &Resolved, ask: &Ask<'_>, now: crate::clock::Moment) -> Intent {
        let path = match self.policy.paths {
            PathRecording::Masked => crate::target::masked_path(ask.path),
            PathRecording::Full => ask.path.to_owned(),
        };
        Intent {
            gate: self.log.gate(),
            target: lane.key().clone(),
            method: ask.method.into(),
            path: path.into(),
            step: ask.step.clone(),
            revision: resolved.revision,
            cost: ask.cost.get(),
            attempt: ask.attempt,
            hop: ask.hop,
            task: ask.task,
            decided: now,
            scopes: resolved.buckets.iter().map(|bucket| bucket.scope().clone()).collect(),
            user_agent: self.policy.user_agent.clone(),
        }
    }

    fn defer(
        &self,
        lane: &Lane,
        resolved: &Resolved,
        ask: &Ask<'_>,
        now: crate::clock::Moment,
        shortage: Shortage,
    ) -> Deferral {
        let Shortage { bucket, scope, lack, place } = shortage;
        telemetry::deferred(lane.key(), lack.cause.as_str());
        let limit = lack.limit.map(|limit| (scope, limit));
        self.log.defer(Deferred {
            target: lane.key().clone(),
            revision: resolved.revision,
            step: ask.step.clone(),
            cause: lack.cause,
            limit: limit.as_ref().map(|(scope, limit)| (scope.clone(), limit.to_string())),
            ready: lack.ready,
            count: 1,
            at: now,
        });
        let target = lane.key().clone();
        let (cause, ready) = (lack.cause, lack.ready);
        Deferral { target, revision: resolved.revision, cause, limit, ready, place, now, bucket }
    }

    /// What is left on a lane; takes nothing.
    #[must_use]
    pub fn levels(&self, lane: &Lane) -> Vec<Level> {
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        lane.resolved().buckets.iter().map(|bucket| peek(bucket, now, offset)).collect()
    }

    /// When a call of this cost would be granted if it asked now, and why not
    /// at once; takes nothing and is not recorded.
    #[must_use]
    pub fn wait(&self, lane: &Lane, cost: NonZeroU32) -> Wait {
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        let resolved = lane.resolved();
        if !resolved.can_ever(cost) {
            return Wait::Never;
        }
        match shortage(&resolved.buckets, cost, now, offset) {
            None => Wait::None,
            Some((_, lack)) => Wait::Until(lack.ready, lack.cause),
        }
    }

    /// True when a call to this lane's host has ever been answered.
    #[must_use]
    pub fn was_reached(&self, lane: &Lane) -> bool {
        let resolved = lane.resolved();
        resolved.buckets.get(resolved.host()).is_some_and(|bucket| bucket.lock().was_reached())
    }

    /// Tells the caller whenever a bucket may have become ready earlier than
    /// it said: a call ended, a pause or a hold is over, rules changed.
    #[must_use]
    pub fn watch(&self) -> mpsc::UnboundedReceiver<News> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }

    fn tell(&self, news: News) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|watcher| watcher.send(news).is_ok());
    }

    /// Puts a change of what stops a bucket on record, with the new state.
    fn note_stops(&self, bucket: &Bucket, event: Event) {
        let noted = self.log.note_with(event, |changes| {
            let stops = bucket.lock().stops();
            let key = bucket.scope().to_string();
            if stops == SavedStops::default() {
                changes.delete(Space::Stop, key.as_bytes());
            } else {
                changes.put(Space::Stop, key.as_bytes(), &stops);
            }
        });
        noted.detach();
        self.tell(News::Changed(bucket.id()));
    }

    /// A number from 0 to 1: so that what waited together does not return
    /// together. Nothing depends on its quality.
    pub(crate) fn jitter(&self) -> f64 {
        let mut hasher = self.chance.build_hasher();
        hasher.write_u64(self.draws.fetch_add(1, Ordering::Relaxed));
        let draw = u32::try_from(hasher.finish() >> 32).unwrap_or(u32::MAX);
        f64::from(draw) / f64::from(u32::MAX)
    }
}

/// Why a bucket is worth another look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A call that drew from it has ended.
    CallEnded(BucketId),
    /// Anything may be different: a refund, other rules, a pause or a hold.
    Changed(BucketId),
}

/// How long a call would have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    None,
    /// Until then, as far as is known; and why.
    Until(Option<crate::clock::Moment>, crate::budget::Cause),
    /// For ever: it costs more than there can be.
    Never,
}
