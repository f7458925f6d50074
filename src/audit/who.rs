//! Who caused it: the record grouped by agent, trajectory, step, goal or
//! target, the greatest pressure first.
//!
//! Holds a row for each group, and a fixed number of hashes to tell what was
//! seen before: past that number, what they tell is a lower bound, and said
//! to be one. Deferrals are recorded by agent and minute; below an agent they
//! count for the step that was deferred first.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::event::{Call, Event};
use super::query::Recorded;
use crate::budget::rfc3339;
use crate::clock::Moment;
use crate::outcome::End;
use crate::step::Step;

/// What calls are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The agent.
    Agent,
    /// The agent and its trajectory.
    Trajectory,
    /// The agent, its trajectory and the step in it.
    Step,
    /// The goal, whoever pursued it.
    Goal,
    /// The target, whoever called it.
    Target,
}

impl By {
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Agent => &["agent"],
            Self::Trajectory => &["agent", "trajectory"],
            Self::Step => &["agent", "trajectory", "step"],
            Self::Goal => &["goal"],
            Self::Target => &["target"],
        }
    }

    fn names(self, step: &Step, target: &str) -> Vec<Arc<str>> {
        let Step {
            agent,
            trajectory,
            step,
            goal,
        } = step;
        match self {
            Self::Agent => vec![agent.clone()],
            Self::Trajectory => vec![agent.clone(), trajectory.clone()],
            Self::Step => vec![agent.clone(), trajectory.clone(), step.clone()],
            Self::Goal => vec![goal.clone()],
            Self::Target => vec![target.into()],
        }
    }
}

/// Whether all that was to be counted is in a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// It is.
    #[default]
    Whole,
    /// There was more than could be remembered.
    AtLeast,
}

/// What one group did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Calls that may have arrived.
    pub calls: u64,
    /// Calls of these that the target refused for now.
    pub throttled: u64,
    /// Deferrals.
    pub deferrals: u64,
    /// Refusals by us.
    pub refusals: u64,
    /// Bytes of answers.
    pub bytes: u64,
    /// Calls of these that were another attempt of a task.
    pub retries: u64,
    /// Calls of these that followed a redirect.
    pub redirects: u64,
    /// Calls of the rest whose target, method and path the group had called
    /// before.
    pub repeats: u64,
    /// Targets called, deferred or refused.
    pub targets: u64,
    /// Of repeats and targets.
    pub counted: Counted,
    first: At,
    last: At,
}

/// A moment with what translates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    moment: Moment,
    wall_offset: i64,
}

impl Group {
    fn new(first: At, last: At) -> Self {
        Self {
            calls: 0,
            throttled: 0,
            deferrals: 0,
            refusals: 0,
            bytes: 0,
            retries: 0,
            redirects: 0,
            repeats: 0,
            targets: 0,
            counted: Counted::Whole,
            first,
            last,
        }
    }

    /// How hard the group pushed: calls and deferrals.
    #[must_use]
    pub fn pressure(&self) -> u64 {
        self.calls.saturating_add(self.deferrals)
    }

    fn span(&mut self, first: At, last: At) {
        if first.moment < self.first.moment {
            self.first = first;
        }
        if last.moment > self.last.moment {
            self.last = last;
        }
    }

    /// Sendings for each call that somebody asked for, in hundredths.
    fn attempts(&self) -> Option<f64> {
        let asked = self
            .calls
            .saturating_sub(self.retries)
            .saturating_sub(self.redirects);
        let sent = asked.saturating_add(self.retries).saturating_mul(100);
        let hundredths = sent.checked_div(asked)?;
        Some(f64::from(u32::try_from(hundredths).unwrap_or(u32::MAX)) / 100.0)
    }
}

/// The record by groups.
#[derive(Debug)]
pub struct Who {
    by: By,
    groups: HashMap<Vec<Arc<str>>, Group>,
    paths: Seen,
    targets: Seen,
}

impl Who {
    /// Nobody yet.
    #[must_use]
    pub fn new(by: By) -> Self {
        Self::remembering(by, MOST_SEEN)
    }

    pub(super) fn remembering(by: By, most: usize) -> Self {
        let (paths, targets) = (Seen::up_to(most), Seen::up_to(most));
        Self {
            by,
            groups: HashMap::new(),
            paths,
            targets,
        }
    }

    /// Counts an event.
    pub fn add(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Call(call) => self.call(call, recorded),
            Event::Deferred(deferred) => {
                let group = self.group(&deferred.step, &deferred.target.to_string(), recorded);
                group.deferrals = group.deferrals.saturating_add(deferred.count);
            }
            Event::Refused(refused) => {
                let group = self.group(&refused.step, &refused.target, recorded);
                group.refusals = group.refusals.saturating_add(refused.count);
            }
            Event::Revised { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::Held { .. }
            | Event::Released { .. }
            | Event::Opened { .. }
            | Event::Closed { .. }
            | Event::ClockStepped { .. }
            | Event::Truncated { .. }
            | Event::Pruned { .. }
            | Event::BodiesLetGo { .. }
            | Event::Task { .. }
            | Event::Set { .. }
            | Event::Denied { .. }
            | Event::Lapsed { .. }
            | Event::Reloaded { .. }
            | Event::ReloadFailed { .. } => {}
        }
    }

    fn call(&mut self, call: &Call, recorded: &Recorded) {
        let (intent, settlement) = (&call.intent, &call.settlement);
        if !settlement.end.may_have_arrived() {
            return;
        }
        let target = intent.target.to_string();
        let is_asked = intent.attempt <= 1 && intent.hop == 0;
        let path = (
            self.by.names(&intent.step, &target),
            &target,
            &intent.method,
            &intent.path,
        );
        let sight = if is_asked {
            self.paths.see(&path)
        } else {
            Sight::New
        };
        let group = self.group(&intent.step, &target, recorded);
        group.calls += 1;
        group.throttled += u64::from(settlement.end == End::Throttled);
        group.bytes = group.bytes.saturating_add(settlement.bytes);
        if intent.hop > 0 {
            group.redirects += 1;
        } else if intent.attempt > 1 {
            group.retries += 1;
        }
        match sight {
            Sight::New => {}
            Sight::Known => group.repeats += 1,
            Sight::Unknown => group.counted = Counted::AtLeast,
        }
    }

    fn group(&mut self, step: &Step, target: &str, recorded: &Recorded) -> &mut Group {
        let Recorded {
            event,
            wall_offset,
            begun_offset,
            ..
        } = recorded;
        let first = At {
            moment: event.begin(),
            wall_offset: *begun_offset,
        };
        let last = At {
            moment: event.at(),
            wall_offset: *wall_offset,
        };
        let names = self.by.names(step, target);
        let sight = self.targets.see(&(&names, target));
        let group = self
            .groups
            .entry(names)
            .or_insert_with(|| Group::new(first, last));
        group.span(first, last);
        match sight {
            Sight::New => group.targets += 1,
            Sight::Known => {}
            Sight::Unknown => group.counted = Counted::AtLeast,
        }
        group
    }

    /// Names and what they did, the greatest pressure first.
    #[must_use]
    pub fn groups(&self) -> Vec<(&[Arc<str>], &Group)> {
        let mut groups: Vec<_> = self
            .groups
            .iter()
            .map(|(names, group)| (&**names, group))
            .collect();
        groups.sort_by_key(|(names, group)| (Reverse(group.pressure()), *names));
        groups
    }

    /// The groups as objects.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        self.groups()
            .into_iter()
            .map(|(names, group)| self.json(names, group))
            .collect()
    }

    fn json(&self, names: &[Arc<str>], group: &Group) -> Value {
        let time = |at: At| rfc3339(at.moment, at.wall_offset);
        let fields = json!({
            "calls": group.calls,
            "throttled": group.throttled,
            "deferrals": group.deferrals,
            "refusals": group.refusals,
            "bytes": group.bytes,
            "retries": group.retries,
            "attempts_per_call": group.attempts(),
            "redirects": group.redirects,
            "repeats": group.repeats,
            "targets": group.targets,
            "capped": group.counted == Counted::AtLeast,
            "first": time(group.first),
            "last": time(group.last),
        });
        let names = self.by.fields().iter().zip(names);
        let mut row: Map<String, Value> = names
            .map(|(field, name)| ((*field).to_owned(), json!(name)))
            .collect();
        if let Value::Object(fields) = fields {
            row.extend(fields);
        }
        Value::Object(row)
    }
}

/// Hashes held of paths, and as many of targets.
const MOST_SEEN: usize = 100_000;

#[derive(Debug)]
struct Seen {
    hashes: HashSet<u64>,
    most: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    New,
    Known,
    /// Not remembered, and there is no room to.
    Unknown,
}

impl Seen {
    fn up_to(most: usize) -> Self {
        Self {
            hashes: HashSet::new(),
            most,
        }
    }

    fn see(&mut self, what: &impl Hash) -> Sight {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let hash = hasher.finish();
        if self.hashes.contains(&hash) {
            return Sight::Known;
        }
        if self.hashes.len() >= self.most {
            return Sight::Unknown;
        }
        self.hashes.insert(hash);
        Sight::New
    }
}
