//! Which class a request falls into.
//!
//! The rules are tried in one order, most specific first, and the first whose template, query and
//! method all fit wins. A router's tree would be quicker for thousands of rules, but it takes one
//! rule per template and gives up when that one's method or query does not fit; here the next rule
//! gets its turn. A target has a handful of rules, so a walk over all of them costs little.

use std::cmp::{Ordering, Reverse};
use std::fmt;

use thiserror::Error;

use super::class::Class;
use super::query::QueryCondition;
use super::template::Template;

/// Requests of one shape, and the class they fall into. Several rules may name one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassRule {
    /// The class.
    pub name: Class,
    /// What the path looks like.
    pub template: Template,
    /// The methods it holds for, upper case; empty means any.
    pub methods: Vec<String>,
    /// What the query must meet; all of them.
    pub query: Vec<QueryCondition>,
}

/// The class rules of a target, in the order in which they are tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassRules {
    ordered: Vec<ClassRule>,
}

/// A rule as it was given to [`ClassRules::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRef {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its class.
    pub name: Class,
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (number {})", self.name, self.index + 1)
    }
}

/// Why a list of rules cannot be put in order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleConflict {
    /// Both fit the same request, and neither is more specific.
    #[error("the class rules {first} and {second} are equal: one request can fit both")]
    Equal {
        /// The one that stands first.
        first: RuleRef,
        /// The other.
        second: RuleRef,
    },
    /// One query parameter must have two values.
    #[error("the class rule {rule} can match nothing: `{parameter}` must have two values")]
    TwoValues {
        /// The rule.
        rule: RuleRef,
        /// The parameter.
        parameter: String,
    },
    /// A method is no token of RFC 9110 section 5.6.2, so no request has it.
    #[error("the class rule {rule} can match nothing: `{method}` is not a method")]
    NotAMethod {
        /// The rule.
        rule: RuleRef,
        /// The method as written.
        method: String,
    },
}

impl ClassRules {
    /// Puts rules in order. Of two rules that tie without being equal, such as `?a` and `?b` on
    /// one template, the one given first goes first.
    ///
    /// # Errors
    /// Every rule that can match nothing, and every pair of equal rules: the same template but for
    /// placeholder names, the same query conditions, and a method in common (or no methods at all).
    pub fn new(rules: Vec<ClassRule>) -> Result<Self, Vec<RuleConflict>> {
        let mut ordered = rules;
        let mut conflicts = Vec::new();
        for (index, rule) in ordered.iter_mut().enumerate() {
            rule.simplify();
            rule.check(index, &mut conflicts);
        }
        for (index, rule) in ordered.iter().enumerate() {
            let later = ordered.iter().enumerate().skip(index + 1);
            conflicts.extend(later.filter(|(_, other)| rule.equals_in_effect(other)).map(
                |(second, other)| RuleConflict::Equal {
                    first: rule.reference(index),
                    second: other.reference(second),
                },
            ));
        }
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
        ordered.sort_by(ClassRule::specificity);
        Ok(Self { ordered })
    }

    /// The class of a request: `path` as [`Located::path`](super::Located::path), `query` raw and
    /// without its `?`. A method is compared without regard to case, since some servers do so too.
    #[must_use]
    pub fn classify(&self, method: &str, path: &str, query: &str) -> Class {
        self.rule_for(method, path, query)
            .map_or_else(Class::default, |rule| rule.name.clone())
    }

    /// The rule that decides about a request; `None` when none fits.
    #[must_use]
    pub fn rule_for(&self, method: &str, path: &str, query: &str) -> Option<&ClassRule> {
        self.ordered
            .iter()
            .find(|rule| rule.fits(method, path, query))
    }

    /// Whether there is no rule, so that every request is of the default class.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }

    /// The rules in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &ClassRule> {
        self.ordered.iter()
    }
}

impl ClassRule {
    fn fits(&self, method: &str, path: &str, query: &str) -> bool {
        self.allows(method)
            && self.template.fits(path)
            && self.query.iter().all(|condition| condition.holds(query))
    }

    fn allows(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|m| m.eq_ignore_ascii_case(method))
    }

    /// Drops what says nothing, so that it does not count as more specific.
    fn simplify(&mut self) {
        for method in &mut self.methods {
            method.make_ascii_uppercase();
        }
        self.query.sort();
        self.query.dedup();
        let all = self.query.clone();
        self.query.retain(|condition| {
            let implied = |other: &QueryCondition| {
                matches!(other, QueryCondition::Equals { name, .. } if name == condition.name())
            };
            matches!(condition, QueryCondition::Equals { .. }) || !all.iter().any(implied)
        });
    }

    fn check(&self, index: usize, conflicts: &mut Vec<RuleConflict>) {
        for method in self.methods.iter().filter(|method| !is_token(method)) {
            conflicts.push(RuleConflict::NotAMethod {
                rule: self.reference(index),
                method: method.clone(),
            });
        }
        let of_one_parameter = self.query.chunk_by(|one, next| one.name() == next.name());
        for condition in of_one_parameter.filter_map(|several| several.get(1)) {
            conflicts.push(RuleConflict::TwoValues {
                rule: self.reference(index),
                parameter: condition.name().to_owned(),
            });
        }
    }

    fn equals_in_effect(&self, other: &Self) -> bool {
        let methods_meet = match (self.methods.is_empty(), other.methods.is_empty()) {
            (true, true) => true,
            (false, false) => self.methods.iter().any(|method| other.allows(method)),
            // A method list goes before none.
            (true, false) | (false, true) => false,
        };
        methods_meet && self.template.has_shape_of(&other.template) && self.query == other.query
    }

    /// `Less` when this rule is to be tried before the other.
    fn specificity(&self, other: &Self) -> Ordering {
        self.template
            .specificity(&other.template)
            .then_with(|| self.narrowness().cmp(&other.narrowness()))
    }

    fn narrowness(&self) -> Narrowness {
        let equals =
            |condition: &&QueryCondition| matches!(condition, QueryCondition::Equals { .. });
        Narrowness {
            conditions: Reverse(self.query.len()),
            with_value: Reverse(self.query.iter().filter(equals).count()),
            any_method: self.methods.is_empty(),
        }
    }

    fn reference(&self, index: usize) -> RuleRef {
        RuleRef {
            index,
            name: self.name.clone(),
        }
    }
}

/// Orders rules on equally specific templates; the smaller goes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Narrowness {
    conditions: Reverse<usize>,
    with_value: Reverse<usize>,
    any_method: bool,
}

fn is_token(method: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !method.is_empty() && method.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::tests::{rule, rules};

    fn conflicts(texts: &[&str]) -> Vec<String> {
        let list = texts.iter().map(|text| rule(text)).collect();
        let found = ClassRules::new(list).expect_err("conflicts");
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_rules_are_an_error_that_names_both() {
        for pair in [
            ["a=/x/{id}", "b=/x/{name}"],
            ["a=/x", "b=//%78/"],
            ["a=GET,POST /x", "b=post,PUT /x"],
            ["a=/x?p&q=1", "b=/x?q=1&p"],
            ["a=/x?p=1", "b=/x?p=1&p"],
            ["a=/f/{*rest}", "b=/f/{*tail}"],
            ["a=/x", "a=/x"],
        ] {
            let found = conflicts(&pair);
            assert_eq!(found.len(), 1, "{pair:?}");
            assert!(found[0].contains("`a` (number 1)"), "{found:?}");
            assert!(found[0].contains("(number 2) are equal"), "{found:?}");
        }
    }

    #[test]
    fn rules_that_differ_in_any_way_that_decides_are_no_error() {
        for text in [
            "a=/x;b=/x?p",
            "a=/x?p;b=/x?p=1",
            "a=/x?p;b=/x?q",
            "a=/x?p=1;b=/x?p=2",
            "a=GET /x;b=/x",
            "a=GET /x;b=POST /x",
            "a=/x/{id};b=/x/{*rest}",
            "a=/x/{id};b=/x/v{id}",
            "a=/x/a{id};b=/x/{id}a",
            "a=/x/{id};b=/y/{id}",
        ] {
            assert!(!rules(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn all_conflicts_are_reported_at_once() {
        let found = conflicts(&["a=/x", "b=/x", "c=/x", "d=G(T /x", "e=/x?p=1&p=2&p=3"]);
        assert_eq!(
            found,
            [
                "the class rule `d` (number 4) can match nothing: `G(T` is not a method",
                "the class rule `e` (number 5) can match nothing: `p` must have two values",
                "the class rules `a` (number 1) and `b` (number 2) are equal: one request can fit both",
                "the class rules `a` (number 1) and `c` (number 3) are equal: one request can fit both",
                "the class rules `b` (number 2) and `c` (number 3) are equal: one request can fit both",
            ]
        );
    }

    #[test]
    fn no_rules_leave_every_request_in_the_default_class() {
        let none = ClassRules::default();
        assert!(none.is_empty());
        assert_eq!(none.classify("GET", "/x", ""), Class::default());
        assert_eq!(ClassRules::new(Vec::new()), Ok(none));
    }

    #[test]
    fn the_rule_that_decided_can_be_shown() {
        let rules = rules("read=get /items/{id};all=/items/{*rest}");
        let rule = rules.rule_for("GET", "/items/7", "").expect("a rule");
        assert_eq!(rule.template.as_str(), "/items/{id}");
        assert_eq!(rule.methods, ["GET"]);
        assert!(rules.rule_for("GET", "/other", "").is_none());
        let order: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(order, ["read", "all"]);
    }
}
