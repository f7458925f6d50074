//! What an operator puts in place of the rules, for one scope and for a time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::limit::{Limit, LimitError};
use super::pause::Hold;
use super::rule::{Provenance, Tier};
use crate::clock::Moment;

/// Limits that stand in place of those of the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLimits {
    /// The limits: all of the scope, at least one.
    pub limits: Vec<Limit>,
    /// By whom, why, until when.
    pub word: Hold,
    /// When, by the wall clock of then: so that each change is an envelope of
    /// its own.
    pub as_of: Arc<str>,
}

/// Everything an operator put in place of the rules of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manual {
    /// Other limits.
    pub set: Option<SetLimits>,
    /// Calls are refused: by whom, why, until when.
    pub denied: Option<Hold>,
}

/// The two changes, where one of them is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManualKind {
    /// Other limits.
    Set,
    /// No calls.
    Deny,
}

impl ManualKind {
    /// The name used in records and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Deny => "deny",
        }
    }
}

impl SetLimits {
    /// Limits as somebody gave them, from outside of this process.
    ///
    /// # Errors
    /// When one of them cannot be kept.
    pub fn checked(limits: &[Limit]) -> Result<Vec<Limit>, LimitError> {
        limits
            .iter()
            .map(|limit| match limit {
                Limit::Rate { frequency, burst } => Limit::rate(*frequency, *burst),
                Limit::Max { frequency, burst } => Limit::max(*frequency, *burst),
                Limit::Quota { .. } => Ok(*limit),
            })
            .collect()
    }

    fn provenance(&self) -> Provenance {
        let note = (!self.word.note.is_empty()).then(|| self.word.note.clone());
        Provenance {
            source: None,
            as_of: Some(self.as_of.clone()),
            note,
            author: format!("operator:{}", self.word.by).into(),
        }
    }
}

fn is_on(word: &Hold, now: Moment) -> bool {
    word.until.is_none_or(|until| now < until)
}

impl Manual {
    /// True when nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The earliest end of a change.
    #[must_use]
    pub fn next_end(&self) -> Option<Moment> {
        let set = self.set.as_ref().map(|set| &set.word);
        let words = set.into_iter().chain(&self.denied);
        words.filter_map(|word| word.until).min()
    }

    /// Takes away what has ended, and names it.
    pub fn lapse(&mut self, now: Moment) -> Vec<ManualKind> {
        let set = self.set.take_if(|set| !is_on(&set.word, now));
        let denied = self.denied.take_if(|word| !is_on(word, now));
        let set = set.map(|_| ManualKind::Set);
        set.into_iter()
            .chain(denied.map(|_| ManualKind::Deny))
            .collect()
    }

    /// Puts the limits in place of the tier's.
    pub fn lay_over(&self, tier: &mut Tier) {
        if let Some(set) = &self.set {
            tier.limits.clone_from(&set.limits);
            tier.provenance = set.provenance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(until: u64) -> Hold {
        Hold {
            until: Some(Moment::from_nanos(until)),
            by: "ana".into(),
            note: "".into(),
            since: Moment::ZERO,
        }
    }

    #[test]
    fn each_change_ends_by_itself() {
        let mut manual = Manual {
            set: Some(SetLimits {
                limits: Vec::new(),
                word: word(20),
                as_of: "".into(),
            }),
            denied: Some(word(10)),
        };
        assert_eq!(manual.next_end(), Some(Moment::from_nanos(10)));
        assert_eq!(manual.lapse(Moment::from_nanos(9)), []);
        assert_eq!(manual.lapse(Moment::from_nanos(10)), [ManualKind::Deny]);
        assert_eq!(manual.next_end(), Some(Moment::from_nanos(20)));
        assert_eq!(manual.lapse(Moment::from_nanos(30)), [ManualKind::Set]);
        assert!(manual.is_empty());
    }
}
