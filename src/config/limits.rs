//! The limits of a block: one as plain keys, or several as `limits = [...]`.

use std::num::NonZeroU32;

use super::field::Field;
use super::section::Section;
use crate::budget::{Frequency, Limit, LimitError, Reset};

/// The keys that speak of limits.
pub(super) const KEYS: [&str; 6] = ["rate", "max", "quota", "burst", "reset", "limits"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rate,
    Max,
    Quota,
}

const KINDS: [(&str, Kind); 3] = [
    ("rate", Kind::Rate),
    ("max", Kind::Max),
    ("quota", Kind::Quota),
];

const RESETS: [(&str, Reset); 2] = [("UTC", Reset::Utc), ("rolling", Reset::Rolling)];

/// All limits of a block, without those that are wrong.
pub(super) fn take(section: &mut Section<'_, '_>) -> Vec<Limit> {
    let plain = KEYS
        .iter()
        .find(|key| **key != "limits" && section.sets(key));
    let single = one(section);
    let Some(list) = section.take("limits") else {
        return single.into_iter().collect();
    };
    if let Some(plain) = plain {
        list.fault::<()>(format_args!(
            "stands beside `{plain}`: write all limits of the block into the list"
        ));
    }
    let items = list.items().unwrap_or_default();
    if list.is_empty_list() {
        list.fault::<()>("limits nothing: write a limit into it or leave it out");
    }
    let mut limits: Vec<Limit> = Vec::with_capacity(items.len());
    for item in items {
        limits.extend(listed(item, &limits));
    }
    limits
}

fn listed(item: Field<'_, '_>, before: &[Limit]) -> Option<Limit> {
    let mut section = item.section()?;
    let limit = one(&mut section);
    if !KINDS.iter().any(|(key, _)| section.sets(key)) && !section.has_strangers() {
        section.fault("is no limit: write `rate`, `max` or `quota` into it");
    }
    let twin = limit.and_then(|limit| {
        let mut twins = before
            .iter()
            .filter(|other| other.identity() == limit.identity());
        twins.next().copied()
    });
    if let Some(twin) = twin {
        section.fault(format_args!(
            "counts the same calls over the same time as `{twin}` before it: keep the stricter of the two"
        ));
    }
    section.close();
    limit
}

/// The one limit that a block states in plain keys.
fn one(section: &mut Section<'_, '_>) -> Option<Limit> {
    let stated: Vec<(&str, Kind)> = KINDS
        .into_iter()
        .filter(|(key, _)| section.sets(key))
        .collect();
    let frequencies = KINDS.map(|(key, _)| section.take_text(key, str::parse::<Frequency>));
    let burst = section
        .take("burst")
        .map(|value| value.number(1..=u32::MAX));
    let reset = section.take("reset").map(|value| value.choice(&RESETS));

    let (key, kind) = match stated.as_slice() {
        [] => {
            let orphans = ["burst", "reset"].into_iter();
            // Beside a list the list says what is wrong.
            for key in orphans.filter(|key| section.sets(key) && !section.sets("limits")) {
                section.fault_at(key, orphan(key));
            }
            return None;
        }
        [stated] => *stated,
        [(first, _), (second, _), ..] => {
            section.fault_at(
                second,
                format_args!(
                    "stands beside `{first}`: write limits = [{{ {first} = … }}, {{ {second} = … }}]"
                ),
            );
            return None;
        }
    };
    if kind == Kind::Quota && section.sets("burst") {
        section.fault_at("burst", orphan("burst"));
    }
    if kind != Kind::Quota && section.sets("reset") {
        section.fault_at("reset", orphan("reset"));
    }
    let frequency = frequencies.into_iter().flatten().next();
    let limit = match kind {
        Kind::Quota => {
            if reset.is_none() {
                section.fault_at(
                    key,
                    "when does the count start anew? Add reset = \"UTC\" or reset = \"rolling\"",
                );
            }
            return Some(Limit::quota(frequency?, reset??));
        }
        // A burst that cannot be read has its fault already.
        Kind::Rate => Limit::rate(frequency?, allowance(burst)?),
        Kind::Max => Limit::max(frequency?, allowance(burst)?),
    };
    match limit {
        Ok(limit) => Some(limit),
        Err(error) => {
            let place = match error {
                LimitError::BurstAboveMax { .. } => "burst",
                _ => key,
            };
            section.fault_at(place, error);
            None
        }
    }
}

fn allowance(burst: Option<Option<u32>>) -> Option<NonZeroU32> {
    burst.map_or(Some(NonZeroU32::MIN), |burst| {
        burst.and_then(NonZeroU32::new)
    })
}

fn orphan(key: &str) -> &'static str {
    if key == "burst" {
        "belongs to a `rate` or a `max`, and there is none beside it"
    } else {
        "belongs to a `quota`, and there is none beside it"
    }
}
