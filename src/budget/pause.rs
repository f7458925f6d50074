//! What keeps a whole target waiting: its own word, our failure to reach it,
//! or an operator's.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::step::Step;

/// Why a target rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The target said: not now.
    Throttled,
    /// It could not be reached.
    Unreachable,
}

/// A request for a pause, from what became of a call.
#[derive(Clone, Debug)]
pub struct Setback {
    /// Which kind.
    pub because: Because,
    /// How long the target asked for; none: our own back-off decides.
    pub asked: Option<Duration>,
    /// What it said, or how it failed: `429 Retry-After: 120`.
    pub reason: Arc<str>,
    /// Whose call met it.
    pub step: Step,
}

/// The one pause of a target. It only lengthens, and ends with a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Nothing is sent before.
    pub until: Moment,
    /// Why.
    pub because: Because,
    /// What the target said, or how it failed.
    pub reason: Arc<str>,
    /// Whose call met it.
    pub step: Step,
    /// When it was set first.
    pub since: Moment,
    /// Steps of back-off so far: calls that failed together are one step.
    pub streak: u32,
    /// True while the one call that asks whether it is over is under way.
    #[serde(skip)]
    pub probing: bool,
}

/// Whether the call that met a setback was the probe of the pause in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An ordinary call.
    Ordinary,
    /// The one call let through at the end of a pause.
    Probe,
}

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(5);

/// Our own back-off after `streak` steps: 1 s doubling to 5 min, and of that
/// between a half and the whole, by `jitter` from 0 to 1.
#[must_use]
pub fn backoff(streak: u32, jitter: f64) -> Duration {
    let doubled = FIRST.saturating_mul(
        1_u32
            .checked_shl(streak.saturating_sub(1))
            .unwrap_or(u32::MAX),
    );
    doubled
        .min(LONGEST)
        .mul_f64(jitter.clamp(0.0, 1.0).mul_add(0.5, 0.5))
}

impl Pause {
    /// The pause after a setback at `now`, given the one before, if there was
    /// one. Setbacks of calls that were under way together are one step of
    /// back-off; only a probe's is another. A pause never gets shorter.
    #[must_use]
    pub fn after(
        before: Option<&Self>,
        setback: &Setback,
        role: Role,
        now: Moment,
        jitter: f64,
    ) -> Self {
        let streak = match (before, role) {
            (None, _) => 1,
            (Some(pause), Role::Probe) => pause.streak.saturating_add(1),
            (Some(pause), Role::Ordinary) => pause.streak,
        };
        let until = now.after(setback.asked.unwrap_or_else(|| backoff(streak, jitter)));
        let since = before.map_or(now, |pause| pause.since);
        // The probe is still out while stragglers of before the pause report.
        let probing = role == Role::Ordinary && before.is_some_and(|pause| pause.probing);
        match before {
            Some(pause) if pause.until >= until => Self {
                streak,
                probing,
                ..pause.clone()
            },
            _ => Self {
                until,
                because: setback.because,
                reason: setback.reason.clone(),
                step: setback.step.clone(),
                since,
                streak,
                probing,
            },
        }
    }
}

/// An operator's word: nothing is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Its end, if it has one.
    pub until: Option<Moment>,
    /// Who.
    pub by: Arc<str>,
    /// Why.
    pub note: Arc<str>,
    /// When it was set.
    pub since: Moment,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setback(asked: Option<u64>) -> Setback {
        Setback {
            because: Because::Throttled,
            asked: asked.map(Duration::from_secs),
            reason: "429".into(),
            step: Step::default(),
        }
    }

    #[test]
    fn eight_refusals_in_flight_together_are_one_step() {
        let now = Moment::from_nanos(1);
        let mut pause = Pause::after(None, &setback(None), Role::Ordinary, now, 1.0);
        for _ in 0..7 {
            pause = Pause::after(Some(&pause), &setback(None), Role::Ordinary, now, 1.0);
        }
        assert_eq!(pause.streak, 1);
        assert_eq!(pause.until, now.after(FIRST));
    }

    #[test]
    fn a_shorter_pause_never_shortens_a_longer_one() {
        let now = Moment::from_nanos(1);
        let long = Pause::after(None, &setback(Some(3600)), Role::Ordinary, now, 0.0);
        let both = Pause::after(Some(&long), &setback(Some(1)), Role::Ordinary, now, 0.0);
        assert_eq!(both.until, now.after(Duration::from_secs(3600)));
        let probed = Pause::after(Some(&long), &setback(Some(1)), Role::Probe, now, 0.0);
        assert_eq!((probed.until, probed.streak), (long.until, 2));
    }

    #[test]
    fn our_own_backoff_doubles_to_five_minutes_and_what_was_asked_is_never_cut() {
        assert_eq!(backoff(1, 1.0), Duration::from_secs(1));
        assert_eq!(backoff(4, 1.0), Duration::from_secs(8));
        assert_eq!(backoff(4, 0.0), Duration::from_secs(4));
        assert_eq!(backoff(99, 1.0), LONGEST);
        let asked = Pause::after(
            None,
            &setback(Some(3600)),
            Role::Ordinary,
            Moment::ZERO,
            0.5,
        );
        assert_eq!(asked.until, Moment::ZERO.after(Duration::from_secs(3600)));
    }
}
