//! Which statuses of a final answer are what was asked for.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Statuses that make a task `succeeded`; another final answer makes it `answered`.
///
/// Read from a list such as `200,404,410-419`. A listed 408, 425 or 5xx is final, where it would be
/// tried again otherwise. What is never final stays so: a redirect is followed, and a 429, or a 503
/// with `Retry-After`, pauses its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OkStatus(Vec<RangeInclusive<u16>>);

impl Default for OkStatus {
    /// 2xx and 304.
    fn default() -> Self {
        Self(vec![200..=299, 304..=304])
    }
}

impl OkStatus {
    /// Whether this status is what was asked for.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }
}

/// What is wrong with a list of statuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its entry {entry}, `{text}`, {problem}")]
pub struct OkStatusError {
    /// Which one, from 1.
    pub entry: usize,
    /// As it is written.
    pub text: String,
    /// What is wrong with it.
    pub problem: OkStatusProblem,
}

/// What is wrong with an entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OkStatusProblem {
    /// Something else.
    #[error("is no status from 200 to 599, and no range of them: write 200,404,410-419")]
    NoStatus,
    /// Its end comes before its beginning.
    #[error("ends before it begins: write the lower status first")]
    Backwards,
    /// It would never apply.
    #[error("is never a final answer: a 429 pauses its target, and the task is asked again")]
    NeverFinal,
}

impl FromStr for OkStatus {
    type Err = OkStatusError;

    fn from_str(list: &str) -> Result<Self, OkStatusError> {
        let ranges = (1..).zip(list.split(',')).map(|(entry, text)| {
            range(text.trim()).map_err(|problem| OkStatusError {
                entry,
                text: text.trim().chars().take(40).collect(),
                problem,
            })
        });
        ranges.collect::<Result<_, _>>().map(Self)
    }
}

fn range(text: &str) -> Result<RangeInclusive<u16>, OkStatusProblem> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (status(first)?, status(last)?);
    if first > last {
        return Err(OkStatusProblem::Backwards);
    }
    if (first, last) == (429, 429) {
        return Err(OkStatusProblem::NeverFinal);
    }
    Ok(first..=last)
}

/// Three digits, of the classes that end an exchange (RFC 9110, section 15).
fn status(text: &str) -> Result<u16, OkStatusProblem> {
    let text = text.trim();
    let is_plain = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let status = text.parse().ok().filter(|_| is_plain);
    status
        .filter(|status| (200..=599).contains(status))
        .ok_or(OkStatusProblem::NoStatus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_what_it_names_and_nothing_else() {
        let list: OkStatus = "200, 404,410-419".parse().unwrap();
        let held: Vec<u16> = (0..1000).filter(|status| list.contains(*status)).collect();
        let expected: Vec<u16> = [200, 404].into_iter().chain(410..=419).collect();
        assert_eq!(held, expected);
    }

    #[test]
    fn without_a_list_2xx_and_304_are_asked_for() {
        let held = (0..1000).filter(|status| OkStatus::default().contains(*status));
        assert_eq!(
            held.collect::<Vec<u16>>(),
            (200..300).chain([304]).collect::<Vec<u16>>()
        );
    }

    #[test]
    fn a_bad_list_is_refused_at_its_place() {
        use OkStatusProblem::{Backwards, NeverFinal, NoStatus};
        for (list, entry, text, problem) in [
            ("", 1, "", NoStatus),
            ("200,", 2, "", NoStatus),
            ("200,40x", 2, "40x", NoStatus),
            ("4xx", 1, "4xx", NoStatus),
            ("200 404", 1, "200 404", NoStatus),
            ("100", 1, "100", NoStatus),
            ("600", 1, "600", NoStatus),
            ("+20", 1, "+20", NoStatus),
            ("0200", 1, "0200", NoStatus),
            ("200-", 1, "200-", NoStatus),
            ("200-204-206", 1, "200-204-206", NoStatus),
            ("200,419-410", 2, "419-410", Backwards),
            ("404,429", 2, "429", NeverFinal),
        ] {
            let error = list.parse::<OkStatus>().unwrap_err();
            assert_eq!(
                (error.entry, error.text.as_str(), error.problem),
                (entry, text, problem),
                "{list}"
            );
        }
    }
}
