//! Which events of the log are wanted.

use super::event::Event;
use crate::budget::Scope;
use crate::clock::Moment;
use crate::step::Step;
use crate::target::{Origin, TargetKey};

/// Which events are wanted. Everything unset matches all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// A target; its origin alone stands for all its classes. What stops or
    /// releases the whole of its host or its neighbours belongs to it.
    pub target: Option<TargetKey>,
    /// A registrable domain or host, with everything below it.
    pub site: Option<String>,
    /// Whose calls.
    pub agent: Option<String>,
    /// Of which trajectory.
    pub trajectory: Option<String>,
    /// Not over before.
    pub from: Option<Moment>,
    /// Begun before.
    pub to: Option<Moment>,
}

/// Whom an event is about.
pub(super) enum About<'a> {
    Target(&'a TargetKey),
    Scope(&'a Scope),
    Text(&'a str),
    Nobody,
}

impl Filter {
    /// Does the event belong to what was asked for?
    #[must_use]
    pub fn matches(&self, event: &Event) -> bool {
        let is_before = self.from.is_some_and(|from| event.at() < from);
        let is_after = self.to.is_some_and(|to| event.begin() >= to);
        if is_before || is_after {
            return false;
        }
        let step = step_of(event);
        let named = |wanted: &Option<String>, name: fn(&Step) -> &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| step.is_some_and(|step| name(step) == wanted))
        };
        named(&self.agent, |step| &step.agent)
            && named(&self.trajectory, |step| &step.trajectory)
            && self.speaks_of(event)
    }

    fn speaks_of(&self, event: &Event) -> bool {
        if self.target.is_none() && self.site.is_none() {
            return true;
        }
        match about(event) {
            About::Target(found) => self.is_on(found),
            About::Scope(Scope::Host(origin)) => {
                self.target
                    .as_ref()
                    .is_none_or(|wanted| wanted.origin == *origin)
                    && self.is_in_site(origin)
            }
            About::Scope(Scope::Class(origin, class)) => {
                self.is_on(&TargetKey::new(origin.clone(), class.clone()))
            }
            About::Scope(Scope::Group(name) | Scope::Pool(name)) => self.is_among(name),
            About::Text(text) => match text.parse::<TargetKey>() {
                Ok(found) => self.is_on(&found),
                Err(_) => self.is_among(text),
            },
            About::Nobody => false,
        }
    }

    fn is_on(&self, found: &TargetKey) -> bool {
        let on_target = self.target.as_ref().is_none_or(|wanted| {
            wanted.origin == found.origin
                && (wanted.class == found.class || wanted.class.is_default())
        });
        on_target && self.is_in_site(&found.origin)
    }

    fn is_in_site(&self, origin: &Origin) -> bool {
        self.site.as_ref().is_none_or(|site| {
            let front = origin.host().strip_suffix(site.as_str());
            front.is_some_and(|front| front.is_empty() || front.ends_with('.'))
        })
    }

    /// A group by its name: of the target, or the site itself.
    fn is_among(&self, name: &str) -> bool {
        self.target
            .as_ref()
            .is_none_or(|wanted| wanted.origin.group() == name)
            && self.site.as_ref().is_none_or(|site| site == name)
    }
}

pub(super) fn step_of(event: &Event) -> Option<&Step> {
    match event {
        Event::Call(call) => Some(&call.intent.step),
        Event::Deferred(deferred) => Some(&deferred.step),
        Event::Refused(refused) => Some(&refused.step),
        Event::Paused { pause, .. } | Event::Resumed { pause, .. } => Some(&pause.step),
        Event::Task { step, .. } => Some(step),
        Event::Revised { .. }
        | Event::Held { .. }
        | Event::Released { .. }
        | Event::Opened { .. }
        | Event::Closed { .. }
        | Event::ClockStepped { .. }
        | Event::Truncated { .. }
        | Event::Pruned { .. }
        | Event::BodiesLetGo { .. }
        | Event::Set { .. }
        | Event::Denied { .. }
        | Event::Lapsed { .. }
        | Event::Reloaded { .. }
        | Event::ReloadFailed { .. } => None,
    }
}

pub(super) fn about(event: &Event) -> About<'_> {
    match event {
        Event::Call(call) => About::Target(&call.intent.target),
        Event::Deferred(deferred) => About::Target(&deferred.target),
        Event::Refused(refused) => About::Text(&refused.target),
        Event::Paused { scope, .. }
        | Event::Resumed { scope, .. }
        | Event::Held { scope, .. }
        | Event::Released { scope, .. }
        | Event::Set { scope, .. }
        | Event::Denied { scope, .. }
        | Event::Lapsed { scope, .. } => About::Scope(scope),
        Event::Revised { .. }
        | Event::Opened { .. }
        | Event::Closed { .. }
        | Event::ClockStepped { .. }
        | Event::Truncated { .. }
        | Event::Reloaded { .. }
        | Event::ReloadFailed { .. }
        | Event::Pruned { .. }
        | Event::BodiesLetGo { .. }
        | Event::Task { .. } => About::Nobody,
    }
}
