//! The decision, and what goes on record with it.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::{Admission, Ask, Lane, PathRecording, Permit, Resolved, StepPolicy, Verdict, Wait};
use crate::audit::{Deferred, Intent, Refused};
use crate::budget::{
    Deferral, Hold, Level, Line, Look, Never, Refusal, Scope, Shortage, Taking, look, peek,
    rfc3339, take,
};
use crate::clock::{Moment, wall_offset};
use crate::step::Step;
use crate::store::{Fault, StoreError};
use crate::target::{Rejection, RejectionReason};
use crate::telemetry;

impl Admission {
    /// Decides, at once.
    ///
    /// # Errors
    /// When the store takes nothing new: then nothing may be sent at all.
    pub fn admit(
        self: &Arc<Self>,
        lane: &Arc<Lane>,
        ask: &Ask<'_>,
        line: Line,
    ) -> Result<Verdict, Fault> {
        self.store.health()?;
        self.lapse().map_err(|error| match error {
            StoreError::Unwritten(fault) => fault,
            error => Fault::Broken(error.to_string()),
        })?;
        if self.policy.steps == StepPolicy::Required && !ask.step.is_attributed() {
            let detail = "require_step is set, and this call names no agent".to_owned();
            let refusal = Refusal {
                reason: Never::NoStep,
                target: lane.key().to_string(),
                detail,
            };
            return Ok(Verdict::Refused(self.refuse(refusal, ask.step)));
        }
        let resolved = lane.resolved();
        if let Some((scope, word)) = &resolved.denied {
            let refusal = self.denial(lane, scope, word);
            return Ok(Verdict::Refused(self.refuse(refusal, ask.step)));
        }
        let now = self.clock.now();
        match take(
            &resolved.buckets,
            ask.cost,
            now,
            self.clock.utc_offset(),
            line,
        ) {
            Taking::Taken(roles) => {
                let intent = self.intent(lane, &resolved, ask, now);
                Ok(Verdict::Granted(Permit::new(
                    self.clone(),
                    lane.clone(),
                    resolved,
                    roles,
                    intent,
                )))
            }
            Taking::Lacking(shortage) => Ok(Verdict::Deferred(
                self.defer(lane, &resolved, ask, now, shortage),
            )),
            Taking::Never(limit, scope) => {
                let detail = format!(
                    "a cost of {} is more than {limit} of {} could ever let through at once ({})",
                    ask.cost,
                    scope,
                    limit.burst()
                );
                let refusal = Refusal {
                    reason: Never::CostTooLarge,
                    target: lane.key().to_string(),
                    detail,
                };
                Ok(Verdict::Refused(self.refuse(refusal, ask.step)))
            }
        }
    }

    fn denial(&self, lane: &Lane, scope: &Scope, word: &Hold) -> Refusal {
        let offset = wall_offset(&*self.clock);
        let until = word.until.map_or_else(String::new, |until| {
            format!(" until {}", rfc3339(until, offset))
        });
        let note = if word.note.is_empty() {
            String::new()
        } else {
            format!(": {}", word.note)
        };
        Refusal {
            reason: Never::Denied,
            target: lane.key().to_string(),
            detail: format!("{} denies {scope}{until}{note}", word.by),
        }
    }

    fn intent(&self, lane: &Lane, resolved: &Resolved, ask: &Ask<'_>, now: Moment) -> Intent {
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
            scopes: resolved
                .buckets
                .iter()
                .map(|bucket| bucket.scope().clone())
                .collect(),
            user_agent: ask
                .user_agent
                .map_or_else(|| self.policy.user_agent.clone(), Into::into),
        }
    }

    fn defer(
        &self,
        lane: &Lane,
        resolved: &Resolved,
        ask: &Ask<'_>,
        now: Moment,
        shortage: Shortage,
    ) -> Deferral {
        let Shortage {
            bucket,
            scope,
            lack,
            place,
        } = shortage;
        telemetry::deferred(lane.key(), lack.cause.as_str());
        let limit = lack.limit.map(|limit| (scope, limit));
        let agent = &ask.step.agent;
        if !self.log.defer_again(lane.key(), agent, lack.cause, now) {
            self.log.defer(Deferred {
                target: lane.key().clone(),
                revision: resolved.revision,
                step: ask.step.clone(),
                cause: lack.cause,
                limit: limit
                    .as_ref()
                    .map(|(scope, limit)| (scope.clone(), limit.to_string())),
                ready: lack.ready,
                count: 1,
                at: now,
            });
        }
        let target = lane.key().clone();
        let (cause, ready) = (lack.cause, lack.ready);
        Deferral {
            target,
            revision: resolved.revision,
            cause,
            limit,
            ready,
            place,
            now,
            bucket,
        }
    }

    pub(super) fn reject(&self, rejection: Rejection, step: &Step) -> Refusal {
        let reason = match rejection.reason {
            RejectionReason::InvalidTarget => Never::InvalidTarget,
            RejectionReason::UnsupportedScheme => Never::UnsupportedScheme,
        };
        let refusal = Refusal {
            reason,
            target: String::new(),
            detail: rejection.detail,
        };
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

    /// What is left on a lane; takes nothing.
    #[must_use]
    pub fn levels(&self, lane: &Lane) -> Vec<Level> {
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        lane.resolved()
            .buckets
            .iter()
            .map(|bucket| peek(bucket, now, offset))
            .collect()
    }

    /// When a call of this cost would be granted if it asked now, and why not
    /// at once; takes nothing and is not recorded.
    #[must_use]
    pub fn wait(&self, lane: &Lane, cost: NonZeroU32) -> Wait {
        let (now, offset) = (self.clock.now(), self.clock.utc_offset());
        lane.with_resolved(|resolved| {
            if resolved.denied.is_some() {
                return Wait::Denied;
            }
            match look(&resolved.buckets, cost, now, offset) {
                Look::Open => Wait::None,
                Look::Lacking(lack) => Wait::Until(lack.ready, lack.cause),
                Look::Never => Wait::Never,
            }
        })
    }

    /// True when a call to this lane's host has ever been answered.
    #[must_use]
    pub fn was_reached(&self, lane: &Lane) -> bool {
        let resolved = lane.resolved();
        resolved
            .buckets
            .get(resolved.host())
            .is_some_and(|bucket| bucket.lock().was_reached())
    }
}
