//! All rules, checked against each other, and the terms they come to for a
//! target.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::pattern::HostPattern;
use super::rule::{Defaults, PauseScope, PoolRule, TargetRule, Terms, Tier};
use super::scope::Scope;
use crate::target::{Class, ClassRules, Origin, RuleConflict};

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
    /// A pattern whose every host is ruled by a more specific one.
    #[error("`{pattern}` can match nothing: both of its schemes have rules of their own")]
    Shadowed {
        /// Which of the rules.
        rule: usize,
        /// The pattern.
        pattern: String,
    },
    /// A class whose terms stand in two places.
    #[error(
        "the class `{class}` has limits or a pause in an earlier block: state them there, another block of the class only adds calls to it"
    )]
    ClassTerms {
        /// Which of the rules.
        rule: usize,
        /// Which of its classes.
        index: usize,
        /// The class.
        class: Class,
    },
    /// Two pools of one name.
    #[error("there are two pools `{name}`")]
    PoolTwice {
        /// Which of the pools.
        pool: usize,
        /// The name.
        name: String,
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
    #[error("no target draws from the pool `{name}`")]
    IdlePool {
        /// Which of the pools.
        pool: usize,
        /// The name.
        name: String,
    },
}

/// Everything that is wrong with rules, as one error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RuleErrors(pub Vec<RuleError>);

#[derive(Clone, Debug)]
struct Ruled {
    rule: TargetRule,
    classes: ClassRules,
}

/// All rules, checked.
#[derive(Clone, Debug, Default)]
pub struct Rulebook {
    defaults: Defaults,
    rules: Vec<Ruled>,
    exact: HashMap<Arc<str>, usize>,
    wide: Vec<usize>,
    pools: BTreeMap<Arc<str>, PoolRule>,
}

impl Rulebook {
    /// The rules of a program: no pools, and the built-in defaults for every
    /// target that they do not name.
    ///
    /// # Errors
    /// Everything that is wrong, not the first of it.
    pub fn of(rules: Vec<TargetRule>) -> Result<Self, RuleErrors> {
        Self::new(Defaults::default(), rules, Vec::new()).map_err(RuleErrors)
    }

    /// Checks the rules against each other.
    ///
    /// # Errors
    /// Everything that is wrong, not the first of it.
    pub fn new(
        defaults: Defaults,
        rules: Vec<TargetRule>,
        pools: Vec<PoolRule>,
    ) -> Result<Self, Vec<RuleError>> {
        let mut errors = Vec::new();
        let mut book = Self {
            defaults,
            ..Self::default()
        };
        let mut idle = BTreeMap::new();
        for (index, pool) in pools.into_iter().enumerate() {
            if idle.insert(pool.name.clone(), index).is_some() {
                errors.push(RuleError::PoolTwice {
                    pool: index,
                    name: pool.name.to_string(),
                });
            }
            book.pools.insert(pool.name.clone(), pool);
        }
        let mut seen = BTreeSet::new();
        for (index, rule) in rules.into_iter().enumerate() {
            if !seen.insert(rule.pattern.text.clone()) {
                errors.push(RuleError::Twice {
                    rule: index,
                    pattern: rule.pattern.to_string(),
                });
            }
            if let Some(pool) = &rule.pool {
                idle.remove(pool);
                if !book.pools.contains_key(pool) {
                    errors.push(RuleError::NoPool {
                        rule: index,
                        pool: pool.to_string(),
                    });
                }
            }
            errors.extend(rule.classes_with_terms_elsewhere().map(|(class, terms)| {
                RuleError::ClassTerms {
                    rule: index,
                    index: class,
                    class: terms.rule.name.clone(),
                }
            }));
            let classes = ClassRules::new(
                rule.classes
                    .iter()
                    .map(|class| class.rule.clone())
                    .collect(),
            );
            let classes = classes.unwrap_or_else(|conflicts| {
                errors.extend(conflicts.into_iter().map(|conflict| RuleError::Classes {
                    rule: index,
                    conflict,
                }));
                ClassRules::default()
            });
            if rule.pattern.is_one_origin() {
                book.exact.insert(rule.pattern.text.clone(), index);
            } else {
                book.wide.push(index);
            }
            book.rules.push(Ruled { rule, classes });
        }
        errors.extend(idle.into_iter().map(|(name, index)| RuleError::IdlePool {
            pool: index,
            name: name.to_string(),
        }));
        let rules = &book.rules;
        for index in &book.wide {
            let pattern = rules.get(*index).map(|ruled| &ruled.rule.pattern);
            let shadows = pattern.and_then(HostPattern::shadows);
            if let (Some(pattern), Some(shadows)) = (pattern, shadows)
                && shadows.iter().all(|text| seen.contains(text))
            {
                errors.push(RuleError::Shadowed {
                    rule: *index,
                    pattern: pattern.to_string(),
                });
            }
        }
        book.wide.sort_by_key(|index| {
            rules
                .get(*index)
                .map(|ruled| std::cmp::Reverse(ruled.rule.pattern.specificity()))
        });
        if errors.is_empty() {
            Ok(book)
        } else {
            Err(errors)
        }
    }

    fn ruling(&self, origin: &Origin) -> Option<&Ruled> {
        let exact = self
            .exact
            .get(origin.as_str())
            .and_then(|index| self.rules.get(*index));
        exact.or_else(|| {
            let mut wide = self.wide.iter().filter_map(|index| self.rules.get(*index));
            wide.find(|ruled| ruled.rule.pattern.matches(origin))
        })
    }

    /// The class of a call, by its method, normalised path and raw query.
    #[must_use]
    pub fn class(&self, origin: &Origin, method: &str, path: &str, query: &str) -> Class {
        self.ruling(origin).map_or_else(Class::default, |ruled| {
            ruled.classes.classify(method, path, query)
        })
    }

    /// The rule that names an origin, if one does.
    #[must_use]
    pub fn rule(&self, origin: &Origin) -> Option<&TargetRule> {
        self.ruling(origin).map(|ruled| &ruled.rule)
    }

    /// True when a rule's pool has this name.
    #[must_use]
    pub fn has_pool(&self, name: &str) -> bool {
        self.pools.contains_key(name)
    }

    /// True when calls may draw from a group of this name: that of a rule, or
    /// that of neighbours without a rule.
    #[must_use]
    pub fn can_have_group(&self, name: &str) -> bool {
        if name.contains("//") {
            let (budget, class) = match name.split_once('#') {
                Some((budget, class)) => (budget, Some(class)),
                None => (name, None),
            };
            let mut wide = self.wide.iter().filter_map(|index| self.rules.get(*index));
            return wide.any(|Ruled { rule, .. }| {
                let mut classes = rule.classes.iter().map(|terms| terms.rule.name.as_str());
                rule.pattern.can_name_budget(rule.sharing, budget)
                    && class.is_none_or(|class| classes.any(|name| name == class))
            });
        }
        let origin = format!("http://{name}").parse::<Origin>();
        let is_own = |origin: Origin| origin.host() == name && origin.group() == name;
        !name.contains('*') && origin.is_ok_and(is_own)
    }

    /// All rules, in the order given.
    pub fn rules(&self) -> impl Iterator<Item = &TargetRule> {
        self.rules.iter().map(|ruled| &ruled.rule)
    }

    /// Everything that holds for calls of one class of one origin.
    #[must_use]
    pub fn terms(&self, origin: &Origin, class: &Class) -> Terms {
        let Some(rule) = self.rule(origin) else {
            return self.default_terms(origin);
        };
        let tier = |scope, limits, concurrency| Tier {
            scope,
            limits,
            concurrency,
            arrival_margin: rule.conduct.arrival_margin,
            provenance: rule.provenance.clone(),
        };
        let mut tiers = Vec::with_capacity(5);
        let pool = rule.pool.as_ref().and_then(|name| self.pools.get(name));
        tiers.extend(pool.map(|pool| Tier {
            scope: Scope::Pool(pool.name.clone()),
            limits: pool.limits.clone(),
            concurrency: None,
            arrival_margin: pool.arrival_margin,
            provenance: pool.provenance.clone(),
        }));
        let mut own = tier(
            Scope::Host(origin.clone()),
            rule.limits.clone(),
            Some(rule.conduct.concurrency),
        );
        if own.limits.is_empty() && pool.is_none_or(|pool| pool.limits.is_empty()) {
            // Nothing is ever sent unbudgeted.
            own.limits.clone_from(&self.defaults.limits);
            own.provenance.clone_from(&self.defaults.provenance);
        }
        let shared = (!rule.pattern.is_one_origin())
            .then(|| rule.pattern.budget_name(rule.sharing, origin.host()));
        if let Some(name) = &shared {
            tiers.push(Tier {
                scope: Scope::Group(name.clone()),
                ..own
            });
            own = tier(Scope::Host(origin.clone()), Vec::new(), None);
        }
        let class_terms = rule.classes.iter().find(|terms| terms.rule.name == *class);
        let mut limits = class_terms.map_or_else(Vec::new, |terms| terms.limits.clone());
        if let (Some(name), true) = (&shared, class_terms.is_some()) {
            // Hosts that share a budget share those of its classes. Without a
            // limit too: should one come, it must know what is under way.
            let scope = Scope::Group(format!("{name}#{class}").into());
            tiers.push(tier(scope, std::mem::take(&mut limits), None));
        }
        tiers.push(own);
        if class_terms.is_some() {
            let scope = Scope::Class(origin.clone(), class.clone());
            tiers.push(tier(scope, limits, None));
        }
        Terms {
            tiers,
            conduct: rule.conduct.clone(),
            pause: class_terms.map_or(PauseScope::Host, |terms| terms.pause),
        }
    }

    /// A target that no rule names draws from the budget of its neighbours:
    /// the registrable domain, whatever the host, scheme or port.
    fn default_terms(&self, origin: &Origin) -> Terms {
        let Defaults {
            limits,
            conduct,
            provenance,
        } = &self.defaults;
        let tier = |scope, limits, concurrency| Tier {
            scope,
            limits,
            concurrency,
            arrival_margin: conduct.arrival_margin,
            provenance: provenance.clone(),
        };
        Terms {
            tiers: vec![
                tier(
                    Scope::Group(origin.group().into()),
                    limits.clone(),
                    Some(conduct.concurrency),
                ),
                tier(Scope::Host(origin.clone()), Vec::new(), None),
            ],
            conduct: conduct.clone(),
            pause: PauseScope::Host,
        }
    }
}
