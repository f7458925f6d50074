//! What a file or a program says of targets, and the terms it comes to.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limit::{Frequency, Limit};
use super::pattern::HostPattern;
use super::scope::Scope;
use crate::target::ClassRule;

/// Where a number comes from. Every part is optional; all of it is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The page or paper that states it.
    pub source: Option<Arc<str>>,
    /// When it was read there.
    pub as_of: Option<Arc<str>>,
    /// Why this number.
    pub note: Option<Arc<str>>,
    /// Who put it in force: a file, a program, a person; `default` for a
    /// number nobody chose.
    pub author: Arc<str>,
}

impl Provenance {
    /// A number put in force by `author`.
    #[must_use]
    pub fn by(author: &str) -> Self {
        Self {
            author: author.into(),
            ..Self::default()
        }
    }
}

/// How calls to a target are made, beside how many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conduct {
    /// Calls under way at once.
    pub concurrency: NonZeroU32,
    /// By how much the delays of calls on their way may differ and the
    /// envelope still hold at the target.
    pub arrival_margin: Duration,
    /// To the head of the answer, and between two parts of its body; after
    /// it, a body must have come at 1 KiB a second on average.
    pub timeout: Duration,
    /// Hops after the first.
    pub max_redirects: u32,
    /// Bytes of an answer's body.
    pub max_body: u64,
}

impl Default for Conduct {
    fn default() -> Self {
        Self {
            concurrency: NonZeroU32::MIN.saturating_add(1),
            arrival_margin: Duration::from_millis(25),
            timeout: Duration::from_secs(60),
            max_redirects: 5,
            max_body: 1 << 30,
        }
    }
}

/// What a refusal of one class pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseScope {
    /// Everything of the host.
    #[default]
    Host,
    /// The class alone.
    Class,
}

/// Whether the hosts of a pattern share one budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// One budget for all of them.
    #[default]
    Together,
    /// One each.
    PerHost,
}

/// A class of a target's paths, with limits of its own.
#[derive(Clone, Debug)]
pub struct ClassTerms {
    /// Which calls belong to it.
    pub rule: ClassRule,
    /// Its limits, beside the host's.
    pub limits: Vec<Limit>,
    /// What a refusal here pauses.
    pub pause: PauseScope,
}

/// What a file says of a target.
#[derive(Clone, Debug)]
pub struct TargetRule {
    /// Which hosts.
    pub pattern: HostPattern,
    /// One budget, or one each.
    pub sharing: Sharing,
    /// The host's limits: they hold for the sum of its classes.
    pub limits: Vec<Limit>,
    /// How calls are made.
    pub conduct: Conduct,
    /// A budget shared with other targets.
    pub pool: Option<Arc<str>>,
    /// Its classes.
    pub classes: Vec<ClassTerms>,
    /// Where its numbers come from.
    pub provenance: Provenance,
}

impl TargetRule {
    /// A rule of one budget with these limits and everything else by default.
    #[must_use]
    pub fn new(pattern: HostPattern, limits: Vec<Limit>) -> Self {
        Self {
            pattern,
            sharing: Sharing::Together,
            limits,
            conduct: Conduct::default(),
            pool: None,
            classes: Vec::new(),
            provenance: Provenance::by("program"),
        }
    }

    /// Classes with limits or a pause that were named by a rule before: only
    /// the first would hold.
    pub(super) fn classes_with_terms_elsewhere(
        &self,
    ) -> impl Iterator<Item = (usize, &ClassTerms)> {
        self.classes.iter().enumerate().filter(|(index, terms)| {
            let mut before = self.classes.iter().take(*index);
            (!terms.limits.is_empty() || terms.pause != PauseScope::Host)
                && before.any(|other| other.rule.name == terms.rule.name)
        })
    }
}

/// A budget shared by several targets.
#[derive(Clone, Debug)]
pub struct PoolRule {
    /// Its name.
    pub name: Arc<str>,
    /// Its limits.
    pub limits: Vec<Limit>,
    /// Must cover the difference between its hosts' delays too.
    pub arrival_margin: Duration,
    /// Where its numbers come from.
    pub provenance: Provenance,
}

/// What holds where no rule says otherwise.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The limits of a target that no rule names.
    pub limits: Vec<Limit>,
    /// How calls are made.
    pub conduct: Conduct,
    /// Where its numbers come from.
    pub provenance: Provenance,
}

impl Default for Defaults {
    fn default() -> Self {
        let second = Frequency::new(NonZeroU32::MIN, Duration::from_secs(1));
        let limit = second.and_then(|frequency| Limit::rate(frequency, NonZeroU32::MIN).ok());
        Self {
            limits: limit.into_iter().collect(),
            conduct: Conduct::default(),
            provenance: Provenance::by("default"),
        }
    }
}

/// One layer of a call's budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Whose budget.
    pub scope: Scope,
    /// All limits of it.
    pub limits: Vec<Limit>,
    /// Calls under way at once.
    pub concurrency: Option<NonZeroU32>,
    /// See [`Conduct::arrival_margin`].
    pub arrival_margin: Duration,
    /// Where its numbers come from.
    pub provenance: Provenance,
}

/// Everything that holds for a target: the layers in the order in which they
/// are locked, and the manner of its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Pool, group, class of the group, host, class.
    pub tiers: Vec<Tier>,
    /// How calls are made.
    pub conduct: Conduct,
    /// What a refusal pauses.
    pub pause: PauseScope,
}
