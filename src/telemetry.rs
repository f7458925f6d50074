//! Every metric's name and labels. Labels are bounded: configured targets and
//! the busiest others go by name, all the rest as `other`, so that a crawl of
//! a million hosts makes no million series.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use metrics::{counter, describe_counter, describe_gauge, gauge};

use crate::outcome::{End, Outcome};
use crate::target::{Origin, TargetKey};

const REQUESTS: &str = "tidegate_requests_total";
const TOKENS: &str = "tidegate_tokens_total";
const DEFERRALS: &str = "tidegate_deferrals_total";
const REFUSALS: &str = "tidegate_refusals_total";
const BUDGET_LEFT: &str = "tidegate_budget_left";
const EXHAUSTED: &str = "tidegate_exhausted_seconds";
const TASKS: &str = "tidegate_tasks";
const COMPLETED: &str = "tidegate_tasks_completed_total";

/// Targets with a label of their own beside the configured ones.
const MOST_NAMED: usize = 50;
/// Calls a target has to make to be one of them.
const BUSY: u64 = 20;
/// Targets whose calls are counted on the way to a name.
const MOST_COUNTED: usize = 1000;
const OTHER: &str = "other";

#[derive(Debug, Default)]
struct Labels {
    named: HashMap<Origin, metrics::SharedString>,
    busy: usize,
    counted: HashMap<Origin, u64>,
}

static LABELS: LazyLock<Mutex<Labels>> = LazyLock::new(Mutex::default);

impl Labels {
    fn label(&mut self, origin: &Origin, calls: u64) -> metrics::SharedString {
        if let Some(label) = self.named.get(origin) {
            return label.clone();
        }
        if calls == 0 || self.busy >= MOST_NAMED {
            return OTHER.into();
        }
        if self.counted.len() >= MOST_COUNTED {
            self.counted.clear();
        }
        let count = self.counted.entry(origin.clone()).or_default();
        *count += calls;
        if *count < BUSY {
            return OTHER.into();
        }
        self.counted.remove(origin);
        self.busy += 1;
        self.name(origin)
    }

    fn name(&mut self, origin: &Origin) -> metrics::SharedString {
        let label = metrics::SharedString::from(origin.to_string());
        self.named.entry(origin.clone()).or_insert(label).clone()
    }
}

fn label(origin: &Origin, calls: u64) -> metrics::SharedString {
    LABELS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .label(origin, calls)
}

/// Gives a configured target a label of its own.
pub fn name_target(origin: &Origin) {
    LABELS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .name(origin);
}

/// Targets that have a label of their own.
#[must_use]
pub fn named_targets() -> Vec<Origin> {
    LABELS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .named
        .keys()
        .cloned()
        .collect()
}

/// Says what each metric means, to whichever recorder is installed.
pub fn describe() {
    describe_counter!(
        REQUESTS,
        "Calls that ended, by target, end and status class"
    );
    describe_counter!(
        TOKENS,
        "Tokens spent by calls that may have reached their target"
    );
    describe_counter!(
        DEFERRALS,
        "Calls told to come back later, by target and cause"
    );
    describe_counter!(REFUSALS, "Calls that are never sent, by reason");
    describe_gauge!(
        BUDGET_LEFT,
        "Calls that would be granted at once, by target and limit"
    );
    describe_counter!(
        EXHAUSTED,
        "Whole seconds in which a target had nothing left or was paused"
    );
    describe_gauge!(TASKS, "Tasks by state");
    describe_counter!(COMPLETED, "Tasks that are complete, by outcome");
}

pub(crate) fn call_ended(target: &TargetKey, end: End, status: Option<u16>, cost: u32) {
    let target = label(&target.origin, 1);
    let status = status.map_or("none", |status| match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    });
    counter!(REQUESTS, "target" => target.clone(), "end" => end.as_str(), "status" => status)
        .increment(1);
    if end.may_have_arrived() {
        counter!(TOKENS, "target" => target).increment(u64::from(cost));
    }
}

pub(crate) fn deferred(target: &TargetKey, cause: &'static str) {
    counter!(DEFERRALS, "target" => label(&target.origin, 0), "cause" => cause).increment(1);
}

pub(crate) fn refused(reason: &'static str) {
    counter!(REFUSALS, "reason" => reason).increment(1);
}

/// What is left of one limit of a target, as of now.
pub(crate) fn budget_left(origin: &Origin, limit: String, left: u64) {
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    gauge!(BUDGET_LEFT, "target" => label(origin, 0), "limit" => limit).set(left as f64);
}

/// A target had nothing to give for so many seconds.
pub(crate) fn exhausted(origin: &Origin, seconds: u64) {
    counter!(EXHAUSTED, "target" => label(origin, 0)).increment(seconds);
}

/// How many tasks are in a state.
pub fn tasks(state: &'static str, count: u64) {
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    gauge!(TASKS, "state" => state).set(count as f64);
}

/// A task is complete.
pub fn task_completed(outcome: Outcome) {
    counter!(COMPLETED, "outcome" => outcome.as_str()).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_targets_make_a_bounded_number_of_labels() {
        let mut labels = Labels::default();
        let mut seen = std::collections::HashSet::new();
        for number in 0..20_000 {
            let origin: Origin = format!("http://h{number}.example").parse().unwrap();
            seen.insert(labels.label(&origin, 30));
        }
        assert_eq!(seen.len(), MOST_NAMED + 1);
        assert!(labels.counted.len() <= MOST_COUNTED);
    }

    #[test]
    fn a_configured_target_goes_by_name_from_its_first_call() {
        let mut labels = Labels::default();
        let origin: Origin = "http://quiet.example".parse().unwrap();
        labels.name(&origin);
        assert_eq!(&*labels.label(&origin, 1), "http://quiet.example");
        let other: Origin = "http://unknown.example".parse().unwrap();
        assert_eq!(&*labels.label(&other, 1), OTHER);
    }
}
