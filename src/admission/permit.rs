//! A permit: the right to send one request, once.
//!
//! Granted -> departed -> settled, or abandoned before the first dial. From
//! the grant to the departure its tokens are a debt that does not decay. It is
//! used up by value, so that no request goes out on a permit twice; dropped
//! unsettled, it settles itself by what is known.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::closing::Closed;
use super::{Admission, Closing, Departure, Lane, News, Resolved};
use crate::audit::{Call, Event, Intent, Settlement};
use crate::budget::{Because, Bucket, MOST_TIERS, Pause, Role, Scope, Setback};
use crate::outcome::End;
use crate::store::{Durable, Fault};

/// The right to send one request.
#[derive(Debug)]
#[must_use = "a permit is spent whether it is used or not: send with it, or abandon it"]
pub struct Permit {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    admission: Arc<Admission>,
    lane: Arc<Lane>,
    resolved: Arc<Resolved>,
    roles: [Role; MOST_TIERS],
    number: u64,
    intent: Intent,
    durable: Option<Durable>,
    departure: Departure,
    dialled: bool,
}

/// How a call ended, as its sender knows it.
#[derive(Clone, Debug)]
pub struct Ending {
    /// In a word.
    pub end: End,
    /// The answer's status.
    pub status: Option<u16>,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// The address that was dialled.
    pub peer: Option<IpAddr>,
    /// What went wrong, in words without secrets.
    pub error: Option<Arc<str>>,
}

impl Ending {
    /// An end with nothing more to say.
    #[must_use]
    pub fn of(end: End) -> Self {
        Self {
            end,
            status: None,
            bytes: 0,
            peer: None,
            error: None,
        }
    }
}

/// What the target's word, or its silence, means for everybody.
#[derive(Clone, Debug)]
pub enum Word {
    /// It answered as a target that is open for calls.
    Open,
    /// It said: not now; for how long, if it said so.
    NotNow(Option<Duration>, Arc<str>),
    /// It could not be reached.
    Unreachable(Arc<str>),
}

impl Permit {
    pub(super) fn new(
        admission: Arc<Admission>,
        lane: Arc<Lane>,
        resolved: Arc<Resolved>,
        roles: [Role; MOST_TIERS],
        intent: Intent,
    ) -> Self {
        let (number, durable) = admission.log.begin(intent.clone());
        let cost = NonZeroU32::new(intent.cost).unwrap_or(NonZeroU32::MIN);
        let departure = Departure::new(admission.clone(), resolved.clone(), cost);
        let open = Open {
            admission,
            lane,
            resolved,
            roles,
            number,
            intent,
            durable: Some(durable),
            departure,
            dialled: false,
        };
        Self { open: Some(open) }
    }

    fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    /// Its number in the log.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.open().map_or(0, |open| open.number)
    }

    /// The lane it was granted on.
    #[must_use]
    pub fn lane(&self) -> Option<&Arc<Lane>> {
        self.open().map(|open| &open.lane)
    }

    /// The terms it was granted under.
    #[must_use]
    pub fn resolved(&self) -> Option<Arc<Resolved>> {
        self.open().map(|open| open.resolved.clone())
    }

    /// Waits until the intent is durable. Nothing may leave before.
    ///
    /// # Errors
    /// When it never will be; the permit can only be abandoned then.
    pub async fn on_record(&mut self) -> Result<(), Fault> {
        match self.open.as_mut().and_then(|open| open.durable.take()) {
            Some(durable) => durable.wait().await,
            None => Ok(()),
        }
    }

    /// True when its target was paused, held or denied after it was granted: it should
    /// be given back. The pause that it is to end does not stop a probe.
    #[must_use]
    pub fn is_called_off(&self) -> bool {
        let Some(open) = self.open() else {
            return false;
        };
        if open.lane.resolved().denied.is_some() {
            return true;
        }
        let now = open.admission.clock.now();
        let buckets = open.resolved.buckets.iter().zip(&open.roles);
        buckets.into_iter().any(|(bucket, role)| {
            let state = bucket.lock();
            state.is_held(now) || (*role == Role::Ordinary && state.pause().is_some())
        })
    }

    /// From here on an address is dialled: the tokens do not come back.
    pub fn dial(&mut self) -> Option<Departure> {
        let open = self.open.as_mut()?;
        open.dialled = true;
        Some(open.departure.clone())
    }

    /// The resolver said no before any address was dialled.
    pub fn never_dialled(&mut self) {
        if let Some(open) = &mut self.open {
            open.dialled = false;
        }
    }

    /// True when this is the one call that asks whether a pause is over.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.open()
            .is_some_and(|open| open.roles.contains(&Role::Probe))
    }

    /// Tells everybody what the target said.
    pub fn hear(&mut self, word: Word) {
        let Some(open) = &mut self.open else { return };
        match word {
            Word::Open => open.answered(),
            Word::NotNow(asked, reason) => {
                let bucket = open.resolved.paused();
                open.set_back(bucket, Because::Throttled, asked, reason);
            }
            Word::Unreachable(reason) => {
                let bucket = open.resolved.host();
                open.set_back(bucket, Because::Unreachable, None, reason);
            }
        }
    }

    /// Gives the tokens back; nothing was sent. A permit that has dialled
    /// cannot be given back and is settled as not sent.
    pub fn abandon(self, why: &str) -> Closing {
        self.settle(Ending {
            error: Some(why.into()),
            ..Ending::of(End::Abandoned)
        })
    }

    /// Ends the call.
    pub fn settle(mut self, ending: Ending) -> Closing {
        Closing::of(self.open.take().map(|open| open.close(ending)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            let end = if open.departure.at().is_some() || open.dialled {
                End::Unanswered
            } else {
                End::Abandoned
            };
            let error = Some("dropped by its caller".into());
            drop(Closing::of(Some(open.close(Ending {
                error,
                ..Ending::of(end)
            }))));
        }
    }
}

impl Open {
    fn answered(&mut self) {
        let now = self.admission.clock.now();
        let host = self.resolved.host();
        for (index, (bucket, role)) in self
            .resolved
            .buckets
            .iter()
            .zip(&mut self.roles)
            .enumerate()
        {
            let mut state = bucket.lock();
            if index == host {
                state.reach();
            }
            if *role == Role::Ordinary {
                continue;
            }
            *role = Role::Ordinary;
            state.free_probe();
            drop(state);
            // Its tokens would let what has waited through as a herd, and must
            // be gone before anybody is let through. A pool is left alone:
            // strangers draw from it too.
            let own = |bucket: &&Arc<Bucket>| !matches!(bucket.scope(), Scope::Pool(_));
            let drained: Vec<_> = self.resolved.buckets.iter().filter(own).collect();
            for bucket in &drained {
                bucket.lock().drain(now);
            }
            let Some(pause) = bucket.lock().resume(now) else {
                continue;
            };
            let event = Event::Resumed {
                scope: bucket.scope().clone(),
                pause,
                at: now,
            };
            self.admission.note_stops(bucket, &drained, event);
        }
    }

    fn set_back(
        &mut self,
        index: usize,
        because: Because,
        asked: Option<Duration>,
        reason: Arc<str>,
    ) {
        let now = self.admission.clock.now();
        let jitter = self.admission.jitter();
        let setback = Setback {
            because,
            asked,
            reason,
            step: self.intent.step.clone(),
        };
        for (at, (bucket, role)) in self
            .resolved
            .buckets
            .iter()
            .zip(&mut self.roles)
            .enumerate()
        {
            // A probe that is refused prolongs the pause it was to end.
            if at != index && *role == Role::Ordinary {
                continue;
            }
            let mut state = bucket.lock();
            let before = state.pause().map(|pause: &Pause| pause.until);
            let pause = state.set_back(&setback, *role, now, jitter);
            drop(state);
            *role = Role::Ordinary;
            if before != Some(pause.until) {
                let event = Event::Paused {
                    scope: bucket.scope().clone(),
                    pause,
                    at: now,
                };
                self.admission.note_stops(bucket, &[], event);
            }
            self.admission.tell(News::Changed(bucket.id()));
        }
    }

    fn close(self, ending: Ending) -> Closed {
        let now = self.admission.clock.now();
        let cost = NonZeroU32::new(self.intent.cost).unwrap_or(NonZeroU32::MIN);
        let mut end = ending.end;
        if end == End::Abandoned && self.dialled {
            end = End::NotSent;
        }
        if end == End::Abandoned {
            self.departure.refund();
        } else {
            self.departure.mark();
        }
        let news = if end == End::Abandoned {
            News::Changed
        } else {
            News::CallEnded
        };
        let departed = self.departure.at();
        let lasted = departed.map(|_| now.since(self.intent.decided));
        for (bucket, role) in self.resolved.buckets.iter().zip(&self.roles) {
            let mut state = bucket.lock();
            if *role == Role::Probe {
                state.free_probe();
            }
            state.end(lasted, now);
            drop(state);
            self.admission.tell(news(bucket.id()));
        }
        crate::telemetry::call_ended(&self.intent.target, end, ending.status, cost.get());
        let Ending {
            status,
            bytes,
            peer,
            error,
            ..
        } = ending;
        let departed = departed.filter(|_| end.may_have_arrived());
        let settlement = Settlement {
            departed,
            ended: now,
            end,
            status,
            bytes,
            peer,
            error,
        };
        Closed {
            admission: self.admission,
            resolved: self.resolved,
            number: self.number,
            call: Call {
                intent: self.intent,
                settlement,
            },
        }
    }
}
