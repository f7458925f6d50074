//! What one target saw, beside what it tolerates.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::cast::Part;
use super::judge::{allowed, window, worst};
use super::target::Target;
use crate::budget::Limit;
use crate::cli::table::Column;

/// The columns of the table.
pub(super) const COLUMNS: &[Column] = &[
    Column("TARGET", "name"),
    Column("AT", "at"),
    Column("TOLERATES", "tolerates"),
    Column("PLANNED", "planned"),
    Column("ARRIVED", "arrivals"),
    Column("OVER", "over"),
    Column("WORST WINDOW", "worst"),
    Column("REFUSED", "refused"),
    Column("EARLY", "early_returns"),
    Column("AT ONCE", "at_once"),
];

/// What one target saw.
#[derive(Debug)]
pub(super) struct Sight {
    part: Part,
    at: String,
    pub(super) arrivals: u64,
    /// Arrivals beyond its envelope, and requests at once beyond it.
    pub(super) over: u64,
    worst: u64,
    refused: u64,
    /// Arrivals while it had asked to be left alone.
    pub(super) early: u64,
    most_at_once: u32,
    /// Planned calls that it never answered.
    pub(super) missing: u64,
    /// Answers to calls that it had answered before.
    pub(super) double: u64,
}

impl Sight {
    pub(super) fn of(target: &Target) -> Self {
        let part = target.part.clone();
        let log = target.log();
        let mut answers: HashMap<&str, u64> = HashMap::new();
        let mut refused = 0;
        for arrival in &log.arrivals {
            match arrival.status {
                Some(StatusCode::TOO_MANY_REQUESTS) => refused += 1,
                Some(_) => *answers.entry(&arrival.path).or_default() += 1,
                None => {}
            }
        }
        let answered = answers.len() as u64;
        let too_many_at_once = log.most.saturating_sub(part.at_once.get());
        Self {
            at: target.address.to_string(),
            arrivals: log.arrivals.len() as u64,
            over: log.over + u64::from(too_many_at_once),
            worst: worst(
                log.arrivals.iter().map(|arrival| arrival.at),
                window(&part.limit),
            ),
            refused,
            early: log.early,
            most_at_once: log.most,
            missing: part.planned.saturating_sub(answered),
            double: answers.values().sum::<u64>() - answered,
            part,
        }
    }

    /// The least time in which its calls could be made.
    pub(super) fn optimum(&self) -> Duration {
        self.part.optimum()
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let kind = match self.part.limit {
            Limit::Rate { .. } => "rate",
            Limit::Max { .. } => "max",
            Limit::Quota { .. } => "quota",
        };
        json!({
            "kind": "target",
            "name": self.part.name,
            "target": format!("http://{}", self.at),
            "tolerance": {
                "kind": kind,
                "limit": self.part.limit.to_string(),
                "burst": self.part.limit.burst(),
                "at_once": self.part.at_once,
            },
            "planned": self.part.planned,
            "arrivals": self.arrivals,
            "over": self.over,
            "worst_window": {
                "arrivals": self.worst,
                "allowed": allowed(&self.part.limit),
                "seconds": window(&self.part.limit).as_secs(),
            },
            "refused": self.refused,
            "early_returns": self.early,
            "most_at_once": self.most_at_once,
            "missing": self.missing,
            "double_answers": self.double,
        })
    }

    /// For people: as a row of [`COLUMNS`].
    pub(super) fn cells(&self) -> Value {
        let worst = format!(
            "{} of {} in {}s",
            self.worst,
            allowed(&self.part.limit),
            window(&self.part.limit).as_secs()
        );
        json!({
            "name": self.part.name,
            "at": self.at,
            "tolerates": self.part.tolerates(),
            "planned": self.part.planned,
            "arrivals": self.arrivals,
            "over": self.over,
            "worst": worst,
            "refused": self.refused,
            "early_returns": self.early,
            "at_once": format!("{} of {}", self.most_at_once, self.part.at_once),
        })
    }
}
