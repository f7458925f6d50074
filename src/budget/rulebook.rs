//! The rules of a file or a program, and the terms they come to for a target.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limit::Limit;
use super::scope::Scope;
use crate::target::{Class, ClassRule, ClassRules, Origin, RuleConflict, Scheme};

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
        Self { author: author.into(), ..Self::default() }
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
    /// To the head of the answer, and between two parts of its body.
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

/// Which hosts a rule speaks of: `https://api.github.com`, `example.org`
/// (both schemes, every port) or `*.example.org` (every host below it).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPattern {
    scheme: Option<Scheme>,
    hosts: Hosts,
    port: Option<u16>,
    text: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Hosts {
    One(Arc<str>),
    Below(Arc<str>),
}

/// Why a text is no host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` matches no host ({why}): write scheme://host[:port], host, or *.domain")]
pub struct PatternError {
    text: String,
    why: String,
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let error = |why: String| PatternError { text: text.to_owned(), why };
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, text),
        };
        let (below, name) = match rest.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, rest),
        };
        if name.contains('*') {
            return Err(error("a star stands for whole labels, at the front".into()));
        }
        let spelled = format!("{}://{name}", scheme.unwrap_or("http"));
        let located = crate::target::locate(&spelled).map_err(|rejection| error(rejection.detail))?;
        if located.path != "/" || !located.query.is_empty() || located.credentials.is_some() || name.contains(['/', '?', '#']) {
            return Err(error("a path belongs to a class".into()));
        }
        let origin = located.origin;
        if below && origin.ip().is_some() {
            return Err(error("an address has no subdomains".into()));
        }
        let names_port = scheme.is_some() || name.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let port = names_port.then(|| origin.port());
        let host: Arc<str> = origin.host().into();
        let star = if below { "*." } else { "" };
        let text = match (scheme, port) {
            (Some(_), _) => match origin.as_str().split_once("://") {
                Some((scheme, rest)) => format!("{scheme}://{star}{rest}"),
                None => return Err(error("no scheme".into())),
            },
            (None, Some(port)) => format!("{star}{host}:{port}"),
            (None, None) => format!("{star}{host}"),
        };
        Ok(Self {
            scheme: scheme.map(|_| origin.scheme()),
            hosts: if below { Hosts::Below(host) } else { Hosts::One(host) },
            port,
            text: text.into(),
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl HostPattern {
    fn matches(&self, origin: &Origin) -> bool {
        let host = origin.host();
        self.scheme.is_none_or(|scheme| scheme == origin.scheme())
            && self.port.is_none_or(|port| port == origin.port())
            && match &self.hosts {
                Hosts::One(name) => **name == *host,
                Hosts::Below(domain) => {
                    host.strip_suffix(&**domain).is_some_and(|front| front.ends_with('.') && front.len() > 1)
                }
            }
    }

    /// The more specific pattern is the greater: one host before a domain, a
    /// longer domain before a shorter, then a port, then a scheme.
    fn specificity(&self) -> (usize, usize, bool, bool) {
        let (kind, length) = match &self.hosts {
            Hosts::One(name) => (1, name.len()),
            Hosts::Below(domain) => (0, domain.len()),
        };
        (kind, length, self.port.is_some(), self.scheme.is_some())
    }

    /// True when exactly one origin can match.
    fn is_one_origin(&self) -> bool {
        matches!(self.hosts, Hosts::One(_)) && self.scheme.is_some()
    }
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
        let second = super::limit::Frequency::new(NonZeroU32::MIN, Duration::from_secs(1));
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
    /// Pool, group, host, class.
    pub tiers: Vec<Tier>,
    /// How calls are made.
    pub conduct: Conduct,
    /// What a refusal pauses.
    pub pause: PauseScope,
}

/// A rule that cannot hold, by its place among the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Two rules for the same hosts.
    #[error("`{pattern}` is ruled twice")]
    Twice {
        /// Which of the rules.
        rule: usize,
        /// The pattern.
        pattern: String,
    },
    /// A pool that is not there.
    #[error("there is no pool `{pool}`")]
    NoPool {
        /// Which of the rules.
        rule: usize,
        /// The name.
        pool: String,
    },
    /// Classes that contradict each other.
    #[error("{conflict}")]
    Classes {
        /// Which of the rules.
        rule: usize,
        /// Between which classes.
        conflict: RuleConflict,
    },
    /// A pool that no target draws from.
    #[error("no target draws from the pool `{pool}`")]
    IdlePool {
        /// The name.
        pool: String,
    },
}

#[derive(Debug)]
struct Ruled {
    rule: TargetRule,
    classes: ClassRules,
}

/// All rules, checked.
#[derive(Debug)]
pub struct Rulebook {
    defaults: Defaults,
    rules: Vec<Ruled>,
    exact: BTreeMap<Arc<str>, usize>,
    wide: Vec<usize>,
    pools: BTreeMap<Arc<str>, PoolRule>,
}

impl Default for Rulebook {
    fn default() -> Self {
        Self { defaults: Defaults::default(), rules: Vec::new(), exact: BTreeMap::new(), wide: Vec::new(), pools: BTreeMap::new() }
    }
}

impl Rulebook {
    /// Checks the rules against each other.
    ///
    /// # Errors
    /// Everything that is wrong, not the first of it.
    pub fn new(defaults: Defaults, rules: Vec<TargetRule>, pools: Vec<PoolRule>) -> Result<Self, Vec<RuleError>> {
        let mut errors = Vec::new();
        let mut book = Self { defaults, ..Self::default() };
        book.pools = pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect();
        let mut idle: BTreeSet<Arc<str>> = book.pools.keys().cloned().collect();
        let mut seen = BTreeSet::new();
        for (index, rule) in rules.into_iter().enumerate() {
            if !seen.insert(rule.pattern.text.clone()) {
                errors.push(RuleError::Twice { rule: index, pattern: rule.pattern.to_string() });
            }
            if let Some(pool) = &rule.pool {
                idle.remove(pool);
                if !book.pools.contains_key(pool) {
                    errors.push(RuleError::NoPool { rule: index, pool: pool.to_string() });
                }
            }
            let classes = ClassRules::new(rule.classes.iter().map(|class| class.rule.clone()).collect());
            let classes = classes.unwrap_or_else(|conflicts| {
                errors.extend(conflicts.into_iter().map(|conflict| RuleError::Classes { rule: index, conflict }));
                ClassRules::default()
            });
            if rule.pattern.is_one_origin() {
                book.exact.insert(rule.pattern.text.clone(), index);
            } else {
                book.wide.push(index);
            }
            book.rules.push(Ruled { rule, classes });
        }
        errors.extend(idle.into_iter().map(|pool| RuleError::IdlePool { pool: pool.to_string() }));
        let rules = &book.rules;
        book.wide.sort_by_key(|index| {
            rules.get(*index).map(|ruled| std::cmp::Reverse(ruled.rule.pattern.specificity()))
        });
        if errors.is_empty() { Ok(book) } else { Err(errors) }
    }

    fn ruling(&self, origin: &Origin) -> Option<&Ruled> {
        let exact = self.exact.get(origin.as_str()).and_then(|index| self.rules.get(*index));
        exact.or_else(|| {
            let mut wide = self.wide.iter().filter_map(|index| self.rules.get(*index));
            wide.find(|ruled| ruled.rule.pattern.matches(origin))
        })
    }

    /// The class of a call, by its method, normalised path and raw query.
    #[must_use]
    pub fn class(&self, origin: &Origin, method: &str, path: &str, query: &str) -> Class {
        self.ruling(origin).map_or_else(Class::default, |ruled| ruled.classes.classify(method, path, query))
    }

    /// The rule that names an origin, if one does.
    #[must_use]
    pub fn rule(&self, origin: &Origin) -> Option<&TargetRule> {
        self.ruling(origin).map(|ruled| &ruled.rule)
    }

    /// All rules, in the order given.
    pub fn rules(&self) -> impl Iterator<Item = &TargetRule> {
        self.rules.iter().map(|ruled| &ruled.rule)
    }

    /// Everything that holds for calls of one class of one origin.
    #[must_use]
    pub fn terms(&self, origin: &Origin, class: &Class) -> Terms {
        let Some(rule) = self.rule(origin) else { return self.default_terms(origin) };
        let tier = |scope, limits, concurrency| Tier {
            scope,
            limits,
            concurrency,
            arrival_margin: rule.conduct.arrival_margin,
            provenance: rule.provenance.clone(),
        };
        let mut tiers = Vec::with_capacity(4);
        let pool = rule.pool.as_ref().and_then(|name| self.pools.get(name));
        tiers.extend(pool.map(|pool| Tier {
            scope: Scope::Pool(pool.name.clone()),
            limits: pool.limits.clone(),
            concurrency: None,
            arrival_margin: pool.arrival_margin,
            provenance: pool.provenance.clone(),
        }));
        let mut own = tier(Scope::Host(origin.clone()), rule.limits.clone(), Some(rule.conduct.concurrency));
        if own.limits.is_empty() && pool.is_none() {
            // Nothing is ever sent unbudgeted.
            own.limits.clone_from(&self.defaults.limits);
            own.provenance.clone_from(&self.defaults.provenance);
        }
        if !rule.pattern.is_one_origin() {
            let name = match rule.sharing {
                Sharing::Together => &rule.pattern.text,
                Sharing::PerHost => origin.host(),
            };
            // `//` as in a reference without a scheme: not the registrable
            // domain of the same name, which is its other neighbours' group.
            let front = if name.contains("://") { "" } else { "//" };
            tiers.push(Tier { scope: Scope::Group(format!("{front}{name}").into()), ..own });
            own = tier(Scope::Host(origin.clone()), Vec::new(), None);
        }
        tiers.push(own);
        let class_terms = rule.classes.iter().find(|terms| terms.rule.name == *class);
        if let Some(terms) = class_terms {
            tiers.push(tier(Scope::Class(origin.clone(), class.clone()), terms.limits.clone(), None));
        }
        Terms { tiers, conduct: rule.conduct.clone(), pause: class_terms.map_or(PauseScope::Host, |terms| terms.pause) }
    }

    /// A target that no rule names draws from the budget of its neighbours:
    /// the registrable domain, whatever the host, scheme or port.
    fn default_terms(&self, origin: &Origin) -> Terms {
        let Defaults { limits, conduct, provenance } = &self.defaults;
        let tier = |scope, limits, concurrency| Tier {
            scope,
            limits,
            concurrency,
            arrival_margin: conduct.arrival_margin,
            provenance: provenance.clone(),
        };
        Terms {
            tiers: vec![
                tier(Scope::Group(origin.group().into()), limits.clone(), Some(conduct.concurrency)),
                tier(Scope::Host(origin.clone()), Vec::new(), None),
            ],
            conduct: conduct.clone(),
            pause: PauseScope::Host,
        }
    }
}
