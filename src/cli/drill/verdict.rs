//! What a drill came to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::account::{Account, Difference};
use super::cast::Manner;
use super::sight::Sight;
use super::target::Target;
use crate::outcome::Outcome;
use crate::schedule::JobRecord;

/// What a drill came to.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) sights: Vec<Sight>,
    outcomes: Vec<(Outcome, u64)>,
    lost: u64,
    account: Account,
    difference: Difference,
    makespan: Duration,
}

impl Verdict {
    /// Judges by what the targets saw; the job and the record are held against
    /// it.
    pub(super) fn new(
        targets: &[Arc<Target>],
        job: &JobRecord,
        account: Account,
        makespan: Duration,
    ) -> Self {
        let sights: Vec<_> = targets.iter().map(|target| Sight::of(target)).collect();
        let outcomes = Outcome::ALL
            .into_iter()
            .map(|outcome| (outcome, job.outcome(outcome)));
        let there = targets
            .iter()
            .filter(|target| target.part.manner != Manner::Gone);
        let answerable: u64 = there.map(|target| target.part.tasks).sum();
        let asked: u64 = targets.iter().map(|target| target.part.tasks).sum();
        // Three views of one loss: the targets', the tasks', the results'.
        let missing: u64 = sights.iter().map(|sight| sight.missing).sum();
        let unsuccessful = answerable.saturating_sub(job.outcome(Outcome::Succeeded));
        let without_result = asked.saturating_sub(job.results);
        Self {
            outcomes: outcomes.filter(|(_, count)| *count > 0).collect(),
            lost: missing.max(unsuccessful).max(without_result),
            difference: account.against(targets),
            sights,
            account,
            makespan,
        }
    }

    fn sum(&self, of: impl Fn(&Sight) -> u64) -> u64 {
        self.sights.iter().map(of).sum()
    }

    /// The promises that were broken, in words.
    pub(super) fn broken(&self) -> Vec<String> {
        let Difference { unrecorded, unseen } = self.difference;
        let broken = [
            (self.sum(|sight| sight.over), "arrivals over an envelope"),
            (
                self.sum(|sight| sight.early),
                "arrivals while a target had asked to be left alone",
            ),
            (self.lost, "tasks lost"),
            (self.sum(|sight| sight.double), "calls answered twice"),
            (unrecorded, "arrivals that are not on record"),
            (unseen, "calls on record that no target saw"),
            (self.account.unattributed, "calls without an agent"),
        ];
        let broken = broken.into_iter().filter(|(count, _)| *count > 0);
        broken
            .map(|(count, what)| format!("{what}: {count}"))
            .collect()
    }

    fn optimum(&self) -> Duration {
        self.sights
            .iter()
            .map(Sight::optimum)
            .max()
            .unwrap_or_default()
    }

    fn ratio(&self) -> f64 {
        self.makespan.as_secs_f64() / self.optimum().as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let outcomes: serde_json::Map<_, _> = self
            .outcomes
            .iter()
            .map(|(outcome, count)| (outcome.to_string(), (*count).into()))
            .collect();
        json!({
            "kind": "summary",
            "verdict": if self.broken().is_empty() { "kept" } else { "broken" },
            "broken": self.broken(),
            "tasks": outcomes,
            "over": self.sum(|sight| sight.over),
            "early_returns": self.sum(|sight| sight.early),
            "lost": self.lost,
            "double_answers": self.sum(|sight| sight.double),
            "makespan_seconds": self.makespan.as_secs_f64(),
            "optimum_seconds": self.optimum().as_secs_f64(),
            "ratio": self.ratio(),
            "deferrals": self.account.deferrals,
            "calls_on_record": self.account.calls,
            "arrivals": self.sum(|sight| sight.arrivals),
            "unrecorded": self.difference.unrecorded,
            "unseen": self.difference.unseen,
            "unattributed": self.account.unattributed,
        })
    }
}

impl fmt::Display for Verdict {
    /// For people, below the table of what the targets saw.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes = self.outcomes.iter();
        let outcomes: Vec<_> = outcomes
            .map(|(outcome, count)| format!("{count} {outcome}"))
            .collect();
        writeln!(f, "tasks      {}", outcomes.join(", "))?;
        writeln!(f, "lost       {}", self.lost)?;
        writeln!(f, "double     {} answers", self.sum(|sight| sight.double))?;
        writeln!(
            f,
            "makespan   {:.2} s; the envelopes allow {:.2} s at best ({:.3}x)",
            self.makespan.as_secs_f64(),
            self.optimum().as_secs_f64(),
            self.ratio()
        )?;
        writeln!(f, "deferrals  {}", self.account.deferrals)?;
        let Difference { unrecorded, unseen } = self.difference;
        writeln!(
            f,
            "record     {} calls on record, {} arrivals seen; {unrecorded} not on record, {unseen} not seen",
            self.account.calls,
            self.sum(|sight| sight.arrivals),
        )?;
        match self.broken().as_slice() {
            [] => writeln!(
                f,
                "verdict    kept: nothing over, early, lost, double or unaccounted"
            ),
            broken => writeln!(f, "verdict    BROKEN: {}", broken.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::super::cast::cast;
    use super::*;

    fn target(name: &str) -> Arc<Target> {
        let part = cast(3).unwrap().into_iter().find(|part| part.name == name);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        Arc::new(Target::new(part.unwrap(), address, None))
    }

    fn broken(target: &Arc<Target>) -> Vec<String> {
        let (job, account) = (JobRecord::default(), Account::default());
        let targets = std::slice::from_ref(target);
        Verdict::new(targets, &job, account, Duration::ZERO).broken()
    }

    #[test]
    fn arrivals_over_the_envelope_twice_and_without_a_record_are_all_told() {
        let frugal = target("frugal");
        for path in ["/1", "/1", "/2"] {
            drop(frugal.clone().arrive(path).answer());
        }
        assert_eq!(
            broken(&frugal),
            [
                "arrivals over an envelope: 1",
                "tasks lost: 8",
                "calls answered twice: 1",
                "arrivals that are not on record: 3",
            ]
        );
    }

    #[test]
    fn whoever_returns_before_a_target_is_over_its_mood_is_told() {
        let moody = target("moody");
        for path in ["/1", "/2", "/3", "/3"] {
            drop(moody.clone().arrive(path).answer());
        }
        let broken = broken(&moody);
        let early = "arrivals while a target had asked to be left alone: 1".to_owned();
        assert!(broken.contains(&early), "{broken:?}");
    }

    #[test]
    fn more_at_once_than_tolerated_is_over_the_envelope() {
        let moody = target("moody");
        let open = moody.clone().arrive("/1");
        drop(moody.clone().arrive("/2").answer());
        drop(open.answer());
        assert_eq!(
            broken(&moody).first().unwrap(),
            "arrivals over an envelope: 1"
        );
    }
}
