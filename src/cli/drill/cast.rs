//! Who is called in a drill: what each target tolerates, how it behaves, and
//! how much work there is for it.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::budget::{Frequency, Limit, LimitError};
use crate::clock::nanos;

/// One target of the drill.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// What it tolerates.
    pub(super) limit: Limit,
    /// Requests it tolerates at once.
    pub(super) at_once: NonZeroU32,
    /// How long it thinks before it answers.
    pub(super) latency: Duration,
    pub(super) manner: Manner,
    /// Tasks that the swarm has for it.
    pub(super) tasks: u64,
    /// Calls that it has to answer, those sent on to it included.
    pub(super) planned: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Answers what it tolerates.
    Plain,
    /// Says "not now" so many times though nobody is over its budget.
    Moody(u64),
    /// Sends every third call on to another target.
    Signpost(&'static str),
    /// Nobody is there.
    Gone,
}

/// How long a moody target wants to be left alone, in seconds.
pub(super) const SULK: u64 = 2;
/// Of this many calls a signpost sends one on.
pub(super) const ONE_IN: u64 = 3;
/// A mood costs its pause, and the burst that is not given back at its end.
const MOOD: Duration = Duration::from_millis(1000 * SULK + 500);
const QUICK: Duration = Duration::from_millis(20);
const SLOW: Duration = Duration::from_millis(400);
/// Tasks for a target that nobody will find.
const FUTILE: u64 = 6;

/// The targets, with work for about so long.
pub(super) fn cast(seconds: u64) -> Result<Vec<Part>, LimitError> {
    let whole = Duration::from_secs(seconds);
    let moods = (seconds / 8).max(1);
    let moody = MOOD.saturating_mul(u32::try_from(moods).unwrap_or(u32::MAX));
    // The first request of a connection counts as sent when its answer comes.
    let slow = SLOW * 3;

    let brisk = part("brisk", rate("25/s", 10)?, 16, whole);
    let mut steady = part("steady", rate("8/s", 4)?, 4, whole);
    let frugal = part("frugal", rate("2/s", 2)?, 2, whole);
    let counted = part("counted", max("12/3s", 3)?, 4, whole);
    let signpost = Part {
        manner: Manner::Signpost(steady.name),
        ..part("signpost", rate("6/s", 3)?, 4, whole)
    };
    steady.tasks = steady.planned - signpost.tasks / ONE_IN;
    let slow = Part {
        latency: SLOW,
        ..part("slow", rate("10/s", 4)?, 6, whole.saturating_sub(slow))
    };
    let moody = Part {
        manner: Manner::Moody(moods),
        ..part("moody", rate("6/s", 2)?, 1, whole.saturating_sub(moody))
    };
    let gone = Part {
        manner: Manner::Gone,
        tasks: FUTILE,
        planned: 0,
        ..part("gone", rate("5/s", 2)?, 2, whole)
    };
    Ok(vec![
        brisk, steady, frugal, counted, signpost, slow, moody, gone,
    ])
}

fn part(name: &'static str, limit: Limit, at_once: u32, time: Duration) -> Part {
    let calls = u64::from(limit.burst().get()) + nanos(time) / limit.interval();
    Part {
        name,
        limit,
        at_once: count(at_once),
        latency: QUICK,
        manner: Manner::Plain,
        tasks: calls,
        planned: calls,
    }
}

fn rate(frequency: &str, burst: u32) -> Result<Limit, LimitError> {
    Limit::rate(frequency.parse::<Frequency>()?, count(burst))
}

fn max(frequency: &str, burst: u32) -> Result<Limit, LimitError> {
    Limit::max(frequency.parse::<Frequency>()?, count(burst))
}

fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

impl Part {
    /// The least time in which its calls could be made.
    pub(super) fn optimum(&self) -> Duration {
        let paced = self
            .planned
            .saturating_sub(u64::from(self.limit.burst().get()));
        Duration::from_nanos(self.limit.interval().saturating_mul(paced))
    }

    /// What it tolerates, in words.
    pub(super) fn tolerates(&self) -> String {
        match self.limit {
            Limit::Rate { frequency, burst } => format!("{frequency}, burst {burst}"),
            Limit::Max { frequency, .. } | Limit::Quota { frequency, .. } => {
                let seconds = frequency.period().as_secs();
                format!("{} in any {seconds}s", frequency.count())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_takes_about_as_long_as_was_asked_for() {
        for seconds in [3, 4, 15, 60, 600] {
            let cast = cast(seconds).unwrap();
            let longest = cast.iter().map(Part::optimum).max().unwrap();
            let asked = Duration::from_secs(seconds);
            assert!(longest <= asked, "{seconds}: {longest:?}");
            assert!(
                longest + Duration::from_millis(100) >= asked,
                "{seconds}: {longest:?}"
            );
        }
    }

    #[test]
    fn every_target_has_work_even_in_the_shortest_drill() {
        for part in cast(3).unwrap() {
            assert!(part.tasks > 2, "{part:?}");
        }
    }

    #[test]
    fn what_is_sent_on_is_planned_where_it_arrives() {
        let cast = cast(15).unwrap();
        let planned: u64 = cast.iter().map(|part| part.planned).sum();
        let tasks: u64 = cast
            .iter()
            .filter(|part| part.manner != Manner::Gone)
            .map(|part| part.tasks)
            .sum();
        let signpost = cast.iter().find(|part| part.name == "signpost").unwrap();
        assert_eq!(planned, tasks + signpost.tasks / ONE_IN);
    }
}
