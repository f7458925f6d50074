//! The other side: whether a target that keeps its own count would have taken every call.
//!
//! Without revisions this is promise 1 itself: its bucket is never found empty, no window and no
//! day holds more than it may. Over revisions an arrival is judged by every limit that was in
//! force from its decision until it arrived; what was sent under another limit takes from a
//! target's bucket too, as far as there is something in it.
#![cfg(test)]

use std::collections::{BTreeSet, VecDeque};

/// What a limit counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A token bucket.
    Rate,
    /// A cap over any window.
    Max,
    /// A count in each period of UTC.
    Utc,
    /// A count in any period.
    Rolling,
}

/// A limit in plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Policy {
    pub kind: Kind,
    pub count: u32,
    /// In nanoseconds.
    pub period: u64,
    pub burst: u32,
}

/// The limits of one scope from an instant on.
#[derive(Clone, Debug)]
pub struct Phase {
    pub from: u64,
    pub policies: Vec<Policy>,
    /// It began with another gate over the same record.
    pub is_restart: bool,
}

/// How long calls are on their way: between `base` and `base + spread` nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub base: u64,
    pub spread: u64,
}

/// A call that reached the target.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it was granted.
    pub decided: u64,
    /// When the gate was told that it had left; never before it had.
    pub told: u64,
    /// When it arrived.
    pub at: u64,
    pub cost: u32,
}

/// An arrival that the target would have refused.
#[derive(Debug)]
#[expect(dead_code, reason = "shown when a property fails")]
pub struct Over {
    pub policy: Policy,
    pub arrival: Arrival,
    pub why: String,
}

/// Judges the arrivals of one scope, in the order in which they arrived.
pub fn judge(phases: &[Phase], arrivals: &[Arrival], way: Way) -> Result<(), Over> {
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
    let court = Court {
        phases,
        arrivals,
        way,
    };
    let policies: BTreeSet<Policy> = phases
        .iter()
        .flat_map(|phase| phase.policies.clone())
        .collect();
    for policy in &policies {
        for counted in court.counted(*policy) {
            match policy.kind {
                Kind::Rate => court.bucket(*policy, &counted)?,
                Kind::Max => {
                    court.bucket(*policy, &counted)?;
                    court.window(*policy, &counted)?;
                }
                Kind::Utc => court.day(*policy, &counted)?,
                Kind::Rolling => court.window(*policy, &counted)?,
            }
        }
    }
    let paced = policies
        .iter()
        .filter(|policy| matches!(policy.kind, Kind::Rate | Kind::Max));
    let kinds: BTreeSet<(Kind, u64)> = paced.map(|policy| (policy.kind, policy.period)).collect();
    kinds
        .into_iter()
        .try_for_each(|(kind, period)| court.rerated(kind, period))
}

struct Court<'a> {
    phases: &'a [Phase],
    arrivals: &'a [Arrival],
    way: Way,
}

/// The tokens that come back in a policy's period; a window cap paces what its burst leaves.
fn paced(policy: Policy) -> u128 {
    u128::from(match policy.kind {
        Kind::Max => policy.count - policy.burst + 1,
        _ => policy.count,
    })
}

/// Tokens times their period in nanoseconds, so that every sum is exact.
fn tokens(count: u32, policy: Policy) -> u128 {
    u128::from(count) * u128::from(policy.period)
}

fn back_to(spent: u128, back: u128) -> u128 {
    spent.saturating_sub(back)
}

impl Court<'_> {
    fn end_of(&self, index: usize) -> u64 {
        self.phases
            .get(index + 1)
            .map_or(u64::MAX, |next| next.from)
    }

    /// The phases with an instant in `from..=to`.
    fn during(&self, from: u64, to: u64) -> impl Iterator<Item = &Phase> {
        let overlaps =
            move |(index, phase): &(usize, &Phase)| phase.from <= to && from < self.end_of(*index);
        self.phases
            .iter()
            .enumerate()
            .filter(overlaps)
            .map(|(_, phase)| phase)
    }

    /// True when the limit held from the decision until nothing sent later could overtake.
    fn holds_for(&self, policy: Policy, arrival: &Arrival) -> bool {
        self.during(arrival.decided, arrival.at - self.way.base)
            .all(|phase| phase.policies.contains(&policy))
    }

    /// The first phase of those without the limit in which the request left; none if the limit
    /// was in force then.
    fn gap(&self, policy: Policy, arrival: &Arrival) -> Option<usize> {
        let has = |phase: &Phase| phase.policies.contains(&policy);
        let now = self
            .phases
            .partition_point(|phase| phase.from <= arrival.told);
        let since = self.phases[..now]
            .iter()
            .rposition(has)
            .map_or(0, |at| at + 1);
        (since < now).then_some(since)
    }

    /// What counts for a limit: all that left while it was in force, and after that until all
    /// of it has come back; in the order in which it arrived. Apart: what came before another
    /// gate opened the record without it, since not every call of a killed gate was on record
    /// with what its limits were.
    fn counted(&self, policy: Policy) -> Vec<Vec<&Arrival>> {
        let forgets = |phase: &&Phase| phase.is_restart && !phase.policies.contains(&policy);
        let ends = self.phases.iter().filter(forgets).map(|phase| phase.from);
        let mut from = 0;
        let parts = ends.chain([u64::MAX]).map(|to| {
            let part = self.counted_in(policy, from, to);
            from = to;
            part
        });
        parts.collect()
    }

    fn counted_in(&self, policy: Policy, from: u64, to: u64) -> Vec<&Arrival> {
        let is_inside = |arrival: &&Arrival| (from..to).contains(&arrival.told);
        let mut by_told: Vec<&Arrival> = self.arrivals.iter().filter(is_inside).collect();
        by_told.sort_by_key(|arrival| arrival.told);
        let (mut lost, mut spent, mut last) = (0, 0, 0);
        let counts = |arrival: &&Arrival| {
            let back = u128::from(arrival.told - last) * paced(policy);
            spent = back_to(spent, back);
            let is_whole = match policy.kind {
                Kind::Rate | Kind::Max => spent == 0,
                Kind::Utc => arrival.told / policy.period != last / policy.period,
                Kind::Rolling => arrival.told - last >= policy.period,
            };
            if let Some(gap) = self.gap(policy, arrival) {
                if is_whole {
                    lost = gap;
                }
                if gap == lost {
                    return false;
                }
            }
            last = arrival.told;
            spent = (spent + tokens(arrival.cost, policy)).min(tokens(policy.burst, policy));
            true
        };
        let mut counted: Vec<&Arrival> = by_told.into_iter().filter(counts).collect();
        counted.sort_by_key(|arrival| arrival.at);
        counted
    }

    fn bucket(&self, policy: Policy, arrivals: &[&Arrival]) -> Result<(), Over> {
        let full = tokens(policy.burst, policy);
        let (mut spent, mut last) = (0, 0);
        for arrival in arrivals {
            spent = back_to(spent, u128::from(arrival.at - last) * paced(policy));
            last = arrival.at;
            spent += tokens(arrival.cost, policy);
            if spent > full && self.holds_for(policy, arrival) {
                return Err(over(policy, arrival, "its bucket was empty"));
            }
            spent = spent.min(full);
        }
        Ok(())
    }

    /// Never more than the count in a half-open window. A paced limit starts from no worse than
    /// an empty bucket when it comes back, so only what was sent under it is its own.
    fn window(&self, policy: Policy, arrivals: &[&Arrival]) -> Result<(), Over> {
        let mut inside: VecDeque<&Arrival> = VecDeque::new();
        for arrival in arrivals {
            let holds = self.holds_for(policy, arrival);
            if policy.kind == Kind::Max && !holds {
                continue;
            }
            inside.push_back(arrival);
            let is_past = |first: &&Arrival| arrival.at - first.at >= policy.period;
            while inside.front().is_some_and(is_past) {
                inside.pop_front();
            }
            let sum: u64 = inside.iter().map(|inside| u64::from(inside.cost)).sum();
            if holds && sum > u64::from(policy.count) {
                return Err(over(policy, arrival, &format!("{sum} in one window")));
            }
        }
        Ok(())
    }

    fn day(&self, policy: Policy, arrivals: &[&Arrival]) -> Result<(), Over> {
        let (mut day, mut sum) = (0, 0);
        for arrival in arrivals {
            if arrival.at / policy.period != day {
                (day, sum) = (arrival.at / policy.period, 0);
            }
            sum += arrival.cost;
            if sum > policy.count && self.holds_for(policy, arrival) {
                return Err(over(policy, arrival, &format!("{sum} in one day")));
            }
        }
        Ok(())
    }

    /// One limit whose numbers change: what was spent stays spent. While calls of before a change
    /// may still arrive, the target is as generous as the looser of the two.
    fn rerated(&self, kind: Kind, period: u64) -> Result<(), Over> {
        let of = |phase: &Phase| {
            let mut same = phase
                .policies
                .iter()
                .filter(|policy| policy.kind == kind && policy.period == period);
            let first = same.next().copied();
            first.filter(|_| same.next().is_none())
        };
        let mut index = 0;
        while index < self.phases.len() {
            // A limit that comes back goes on from its own count, which was judged already; and
            // what the record of a killed gate holds was reckoned in the numbers of before.
            let is_new = |at: usize| of(&self.phases[at - 1]) != of(&self.phases[at]);
            let was_known = |at: usize| {
                let before = self.phases[..at].iter().map(of);
                before
                    .into_iter()
                    .any(|policy| policy == of(&self.phases[at]))
            };
            let comes_back = |at: usize| {
                at > index && is_new(at) && (was_known(at) || self.phases[at].is_restart)
            };
            let run = (index..self.phases.len())
                .take_while(|at| of(&self.phases[*at]).is_some() && !comes_back(*at))
                .count();
            if run > 0 {
                self.one_run(index, index + run, &of)?;
            }
            index += run.max(1);
        }
        Ok(())
    }

    fn one_run(
        &self,
        first: usize,
        end: usize,
        of: &impl Fn(&Phase) -> Option<Policy>,
    ) -> Result<(), Over> {
        let (since, until) = (self.phases[first].from, self.end_of(end - 1));
        let way = self.way;
        let in_run = |from: u64, to: u64| self.during(from, to).filter_map(of);
        let mut changes: Vec<u64> = self.phases[first..end]
            .iter()
            .flat_map(|phase| [phase.from + way.base, phase.from + way.base + way.spread])
            .collect();
        changes.sort_unstable();
        let mut spent: u128 = 0;
        let mut last = since;
        let mut changes = changes.into_iter().peekable();
        for arrival in self.arrivals.iter().filter(|arrival| arrival.told >= since) {
            let on_its_way = |at: u64| {
                let left = at.saturating_sub(way.base);
                (left.saturating_sub(way.spread).max(since), left.max(since))
            };
            loop {
                let step = changes.peek().map_or(arrival.at, |at| arrival.at.min(*at));
                let (from, to) = on_its_way(last);
                let rate = in_run(from, to).map(paced).max().unwrap_or(0);
                spent = spent.saturating_sub(u128::from(step.saturating_sub(last)) * rate);
                last = last.max(step);
                if step == arrival.at {
                    break;
                }
                changes.next();
                let (from, to) = on_its_way(last);
                let burst = in_run(from, to)
                    .map(|policy| tokens(policy.burst, policy))
                    .max();
                spent = spent.min(burst.unwrap_or(0));
            }
            let to = arrival.at - way.base;
            let loosest = in_run(arrival.decided, to).max_by_key(|policy| policy.burst);
            let (Some(policy), true) = (loosest, arrival.decided >= since && to < until) else {
                spent += u128::from(arrival.cost) * u128::from(period_of(&self.phases[first], of));
                continue;
            };
            spent += tokens(arrival.cost, policy);
            if spent > tokens(policy.burst, policy) {
                return Err(over(policy, arrival, "over a change of its numbers"));
            }
        }
        Ok(())
    }
}

fn period_of(phase: &Phase, of: &impl Fn(&Phase) -> Option<Policy>) -> u64 {
    of(phase).map_or(1, |policy| policy.period)
}

fn over(policy: Policy, arrival: &Arrival, why: &str) -> Over {
    Over {
        policy,
        arrival: *arrival,
        why: why.to_owned(),
    }
}
