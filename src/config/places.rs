//! Where the rules stand, for faults that show only between them.

use super::report::{Report, Spot};
use crate::budget::RuleError;
use crate::target::RuleConflict;

/// The places of all blocks that could be read, by the number of their rule.
#[derive(Default)]
pub(super) struct Places {
    pub(super) targets: Vec<TargetPlace>,
    pub(super) pools: Vec<Spot>,
    pub(super) all_targets: Reading,
    pub(super) all_pools: Reading,
}

pub(super) struct TargetPlace {
    pub(super) pattern: Spot,
    pub(super) pool: Spot,
    pub(super) classes: Vec<Spot>,
}

/// How much of the blocks could be read. What is missing in some of them would
/// show as a second fault elsewhere.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    #[default]
    Whole,
    Partial,
}

impl Places {
    /// None for a fault that may only follow from another one.
    pub(super) fn spot_of(&self, error: &RuleError) -> Option<&Spot> {
        let target = |index: &usize| self.targets.get(*index);
        let class = |rule: &usize, index: usize| target(rule)?.classes.get(index);
        match error {
            RuleError::Twice { rule, .. } | RuleError::Shadowed { rule, .. } => {
                target(rule).map(|place| &place.pattern)
            }
            RuleError::NoPool { .. } if self.all_pools == Reading::Partial => None,
            RuleError::IdlePool { .. } if self.all_targets == Reading::Partial => None,
            RuleError::NoPool { rule, .. } => target(rule).map(|place| &place.pool),
            RuleError::IdlePool { pool, .. } | RuleError::PoolTwice { pool, .. } => {
                self.pools.get(*pool)
            }
            RuleError::ClassTerms { rule, index, .. } => class(rule, *index),
            RuleError::Classes { rule, conflict } => class(rule, later_class(conflict)),
        }
    }

    /// The fault in words that fit the file: its blocks have lines, and those
    /// that could not be read have no number.
    pub(super) fn described(&self, error: &RuleError, report: &Report<'_>) -> String {
        let RuleError::Classes { rule, conflict } = error else {
            return error.to_string();
        };
        match conflict {
            RuleConflict::Equal { first, .. } => {
                let places = self.targets.get(*rule).map(|place| &place.classes);
                let other = places.and_then(|classes| classes.get(first.index));
                let line = other.map_or(0, |spot| report.line(spot));
                let name = &first.name;
                format!(
                    "fits the same calls as the class `{name}` on line {line}, and no more closely"
                )
            }
            RuleConflict::TwoValues { parameter, .. } => {
                format!("can match nothing: `{parameter}` must have two values")
            }
            RuleConflict::NotAMethod { method, .. } => {
                format!("can match nothing: `{method}` is not a method")
            }
        }
    }
}

/// Of two classes that conflict the later is the one to change.
fn later_class(conflict: &RuleConflict) -> usize {
    match conflict {
        RuleConflict::Equal { second, .. } => second.index,
        RuleConflict::TwoValues { rule, .. } | RuleConflict::NotAMethod { rule, .. } => rule.index,
    }
}
