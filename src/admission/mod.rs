//! Bucket and record together: the only public way to a token.
//!
//! [`Admission::admit`] answers at once - granted, deferred or refused - and
//! never sleeps. A grant takes the tokens as debt, puts the intent on record
//! and returns a [`Permit`]; nothing may leave before the permit's
//! [`on_record`](Permit::on_record) has resolved.

mod ask;
mod closing;
mod decide;
mod departure;
mod lane;
mod operator;
mod outlook;
mod overrides;
mod permit;
mod revisions;
mod rules;
mod upkeep;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use dashmap::DashMap;
use tokio::sync::mpsc;

pub use ask::{Ask, News, NoRoute, PathRecording, Policy, StepPolicy, Verdict, Wait};
pub use closing::Closing;
pub use departure::Departure;
pub use lane::{Lane, Resolved, Route};
pub use operator::{Chosen, Lifted, Operator};
pub use outlook::Outlook;
pub use permit::{Ending, Permit, Word};

use crate::audit::{Event, Log};
use crate::budget::{Bucket, BucketId, Rulebook, SavedBucket, SavedStops, Scope, Tier};
use crate::clock::{Clock, Moment};
use crate::step::Step;
use crate::store::{Changes, Space, Store, StoreError};
use crate::target::{TargetKey, locate};

/// The gate's buckets and its record.
#[derive(Debug)]
pub struct Admission {
    store: Arc<Store>,
    log: Log,
    clock: Arc<dyn Clock>,
    policy: Policy,
    rulebook: RwLock<Rules>,
    revisions: revisions::Revisions,
    overrides: overrides::Overrides,
    changing: Mutex<()>,
    adopted: AtomicBool,
    lanes: DashMap<TargetKey, Arc<Lane>>,
    buckets: DashMap<Scope, Arc<Bucket>>,
    next_bucket: AtomicU64,
    watchers: Mutex<Vec<mpsc::UnboundedSender<News>>>,
    chance: RandomState,
    draws: AtomicU64,
}

#[derive(Debug)]
struct Rules {
    book: Arc<Rulebook>,
    /// When they came into force.
    since: Moment,
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
        let overrides = overrides::Overrides::load(&store)?;
        let rules = Rules {
            book: Arc::new(rulebook),
            since: clock.now(),
        };
        let admission = Self {
            store,
            log,
            clock,
            policy,
            rulebook: RwLock::new(rules),
            revisions,
            overrides,
            changing: Mutex::default(),
            adopted: AtomicBool::new(false),
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
        self.rules().book.clone()
    }

    fn rules(&self) -> RwLockReadGuard<'_, Rules> {
        self.rulebook.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the lane of a call; takes nothing.
    ///
    /// # Errors
    /// A URL without a target is refused, and the refusal is on record; or what
    /// was spent at its target cannot be read.
    pub fn route(&self, url: &str, method: &str, step: &Step) -> Result<Route, NoRoute> {
        let located = locate(url).map_err(|rejection| self.reject(rejection, step))?;
        let class = self
            .rules()
            .book
            .class(&located.origin, method, &located.path, &located.query);
        let lane = self.lane(&TargetKey::new(located.origin.clone(), class))?;
        Ok(Route { located, lane })
    }

    /// The lane of a target key.
    ///
    /// # Errors
    /// When what was spent there cannot be read.
    pub fn lane(&self, key: &TargetKey) -> Result<Arc<Lane>, StoreError> {
        if let Some(lane) = self.lanes.get(key) {
            return Ok(lane.clone());
        }
        // Made under the entry's lock: rules adopted meanwhile either were read
        // here, or find the lane.
        let lane = self.lanes.entry(key.clone()).or_try_insert_with(|| {
            let resolved = self.resolve(key)?;
            // Its buckets may be older than the rules: a hold makes one too.
            self.refit(&resolved);
            Ok::<_, StoreError>(Arc::new(Lane::new(key.clone(), resolved)))
        })?;
        Ok(lane.clone())
    }

    fn resolve(&self, key: &TargetKey) -> Result<Resolved, StoreError> {
        let mut terms = self.rulebook().terms(&key.origin, &key.class);
        let denied = self.overrides.lay_over(&mut terms);
        let revision = self.revisions.number(&terms, &self.log, self.clock.now());
        let buckets: Result<Vec<_>, _> = terms.tiers.iter().map(|tier| self.bucket(tier)).collect();
        Ok(Resolved {
            revision,
            buckets: buckets?,
            terms,
            denied,
        })
    }

    fn bucket(&self, tier: &Tier) -> Result<Arc<Bucket>, StoreError> {
        if let Some(bucket) = self.buckets.get(&tier.scope) {
            return Ok(bucket.clone());
        }
        // Read under the entry's lock: an evicted bucket is gone from the
        // store before another of its scope is made.
        let vacant = match self.buckets.entry(tier.scope.clone()) {
            dashmap::Entry::Occupied(made_meanwhile) => return Ok(made_meanwhile.get().clone()),
            dashmap::Entry::Vacant(vacant) => vacant,
        };
        let name = tier.scope.to_string();
        let saved: Option<SavedBucket> = self.store.get(Space::Bucket, name.as_bytes())?;
        let stops: Option<SavedStops> = self.store.get(Space::Stop, name.as_bytes())?;
        let id = BucketId(self.next_bucket.fetch_add(1, Ordering::Relaxed));
        // Since the rules are in force, what was spent comes back at their rate.
        let since = self.rules().since;
        let offset = self.clock.utc_offset();
        let bucket = Bucket::resumed(
            id,
            tier,
            &saved.unwrap_or_default(),
            stops.unwrap_or_default(),
            since,
            offset,
        );
        Ok(vacant.insert(Arc::new(bucket)).clone())
    }

    /// Tells the caller whenever a bucket may have become ready earlier than
    /// it said: a call ended, a pause or a hold is over, rules changed.
    #[must_use]
    pub fn watch(&self) -> mpsc::UnboundedReceiver<News> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.watchers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sender);
        receiver
    }

    fn tell(&self, news: News) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|watcher| watcher.send(news).is_ok());
    }

    /// Puts a change of what stops a bucket on record, with the new state, and
    /// with what is spent of the buckets that were drained for it.
    fn note_stops(&self, bucket: &Bucket, drained: &[&Arc<Bucket>], event: Event) {
        let noted = self.log.note_with(event, |changes| {
            save_stops(bucket, changes);
            for bucket in drained {
                let key = bucket.scope().to_string();
                changes.put(Space::Bucket, key.as_bytes(), &bucket.lock().saved());
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

/// What stops a bucket as it is now, to be called in the order of the log.
fn save_stops(bucket: &Bucket, changes: &mut Changes) {
    let stops = bucket.lock().stops();
    let key = bucket.scope().to_string();
    if stops == SavedStops::default() {
        changes.delete(Space::Stop, key.as_bytes());
    } else {
        changes.put(Space::Stop, key.as_bytes(), &stops);
    }
}
