//! Commands of an operator: what they change, as a question to the gate.

use std::num::NonZeroU32;
use std::time::Duration;

use super::Failure;
use super::args::{Command, ResetName, SetArgs, Signed};
use super::ask::Asked;
use super::table::Column;
use crate::budget::{Limit, LimitError, Reset};
use crate::serve::{Change, Manually, Question};

pub(super) fn question(command: Command) -> Result<Asked, Failure> {
    let (what, target, span, signed, output) = match command {
        Command::Hold(args) => {
            let span = args.span;
            (Manually::Hold, args.target, span, args.signed, args.output)
        }
        Command::Deny(args) => {
            let span = args.span;
            (Manually::Deny, args.target, span, args.signed, args.output)
        }
        Command::Set(args) => {
            let limits = limits(&args)?;
            let (what, span) = (Manually::Set { limits }, Some(args.span));
            (what, args.target, span, args.signed, args.output)
        }
        Command::Release(args) => {
            let what = Manually::Release;
            (what, args.target, None, args.signed, args.output)
        }
        _ => return Err(Failure::usage("this command changes nothing")),
    };
    let Signed { by, note } = signed;
    if span == Some(Duration::ZERO) {
        return Err(Failure::usage("--for 0s changes nothing: give it a time"));
    }
    let for_ms = span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let change = Change {
        target,
        what,
        for_ms,
        by,
        note,
    };
    Ok((Question::Change(change), output, CHANGED))
}

fn limits(args: &SetArgs) -> Result<Vec<Limit>, Failure> {
    if args.burst.is_some() && args.max.or(args.rate).is_none() {
        let words = "--burst belongs to --max or --rate, and there is neither";
        return Err(Failure::usage(words));
    }
    let burst = args.burst.unwrap_or(NonZeroU32::MIN);
    let max = args.max.map(|max| Limit::max(max, burst));
    let rate = args.rate.map(|rate| Limit::rate(rate, burst));
    let reset = match args.reset {
        Some(ResetName::Rolling) => Reset::Rolling,
        Some(ResetName::Utc) | None => Reset::Utc,
    };
    let quota = args.quota.map(|quota| Ok(Limit::quota(quota, reset)));
    let limits: Result<Vec<_>, LimitError> = max.into_iter().chain(rate).chain(quota).collect();
    limits.map_err(Failure::usage)
}

const CHANGED: &[Column] = &[
    Column("TARGET", "target"),
    Column("STATE", "state"),
    Column("UNTIL", "until"),
    Column("LIMITS", "limits"),
    Column("INSTEAD OF", "instead_of"),
    Column("LIFTED", "lifted"),
];
