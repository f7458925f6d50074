//! What a class rule asks of a query.

use url::form_urlencoded;

/// A condition on the query of a request. Names and values are plain text: a query is decoded as a
/// form (WHATWG URL section 5) before it is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueryCondition {
    /// The parameter is there, with whatever value.
    Named(String),
    /// The parameter is there with this value; when it is repeated, once is enough, so that adding
    /// a second value is no way out of a class.
    Equals {
        /// The parameter.
        name: String,
        /// Its value; empty also means a parameter without `=`.
        value: String,
    },
}

impl QueryCondition {
    /// The parameter it is about.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::Equals { name, .. } => name,
        }
    }

    /// Whether the raw query, without its `?`, meets the condition.
    #[must_use]
    pub fn holds(&self, query: &str) -> bool {
        form_urlencoded::parse(query.as_bytes()).any(|(name, value)| match self {
            Self::Named(wanted) => name == *wanted,
            Self::Equals {
                name: wanted,
                value: wanted_value,
            } => name == *wanted && value == *wanted_value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_before_it_is_compared() {
        let named = QueryCondition::Named("a b".to_owned());
        let equals = QueryCondition::Equals {
            name: "q".to_owned(),
            value: "x&y".to_owned(),
        };
        for query in ["a+b", "a%20b=1", "z&a+b="] {
            assert!(named.holds(query), "{query}");
        }
        for query in ["", "ab", "A+b", "a", "b=a+b"] {
            assert!(!named.holds(query), "{query}");
        }
        for query in ["q=x%26y", "q=1&q=x%26y", "%71=x%26%79"] {
            assert!(equals.holds(query), "{query}");
        }
        for query in ["q=x&y", "q", "Q=x%26y", "x%26y=q"] {
            assert!(!equals.holds(query), "{query}");
        }
    }
}
