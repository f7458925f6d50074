//! What happens in a run, drawn at random so that a failing one can be made smaller.
#![cfg(test)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::judge::{Kind, Policy, Way};

const MILLI: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MILLI;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// A pool, a host in it with a class, a pattern of hosts in it with a class, and a host that no
/// rule names: by their places in [`Rules`].
pub const LANES: [&[usize]; 5] = [&[0, 1], &[0, 1, 2], &[0, 3], &[0, 3, 4], &[5]];
pub const SCOPES: usize = 6;

/// The limits of each scope.
#[derive(Clone, Debug)]
pub struct Rules(pub [Vec<Policy>; SCOPES]);

/// One wish to call, and what becomes of it.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub lane: usize,
    pub cost: u32,
    /// Comes back until it is granted; else asks once.
    pub insists: bool,
    /// From the grant until the gate is told that the request has left.
    pub told_after: u64,
    /// When in that time it really left, in parts of a hundred.
    pub left_at: u64,
    /// How much of the spread it is on its way, in parts of a hundred.
    pub delay: u64,
    /// From its departure to its end.
    pub lasts: u64,
    pub is_abandoned: bool,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Call(Wish),
    Rest(u64),
    /// Other rules come into force, by their place in the script.
    Revise(usize),
    /// The record ends; so long after, the gate is killed; so long after that another one opens,
    /// perhaps under other rules.
    Crash {
        dying: u64,
        down: u64,
        rules: Option<usize>,
    },
    StepWall(i64),
    Sweep,
}

#[derive(Clone, Debug)]
pub struct Script {
    pub rules: Vec<Rules>,
    pub way: Way,
    pub margin: u64,
    pub concurrency: u32,
    pub start: u64,
    pub acts: Vec<Act>,
}

/// What else happens than calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    Revisions,
    Crashes,
    All,
}

impl Trouble {
    fn revises(self) -> bool {
        matches!(self, Self::Revisions | Self::All)
    }

    fn crashes(self) -> bool {
        matches!(self, Self::Crashes | Self::All)
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    let paced = (
        select(vec![SECOND, 10 * SECOND, MINUTE]),
        1_u32..60,
        1_u32..20,
        any::<bool>(),
    )
        .prop_map(|(period, count, burst, is_cap)| {
            let (kind, burst) = match is_cap {
                true => (Kind::Max, burst.min(count)),
                false => (Kind::Rate, burst),
            };
            Policy {
                kind,
                count,
                period,
                burst,
            }
        });
    let counted = (
        select(vec![MINUTE, HOUR, 24 * HOUR]),
        1_u32..40,
        select(vec![Kind::Utc, Kind::Rolling]),
    );
    let counted = counted.prop_map(|(period, count, kind)| Policy {
        kind,
        count,
        period,
        burst: count,
    });
    prop_oneof![6 => paced, 1 => counted]
}

fn rules() -> impl Strategy<Value = Rules> {
    // A host and a pattern of their own have limits, or the defaults would come in.
    let some = || vec(policy(), 1..4);
    let any = || vec(policy(), 0..3);
    (any(), some(), any(), some(), any(), some())
        .prop_map(|(a, b, c, d, e, f)| Rules([a, b, c, d, e, f]))
}

/// Other numbers for the same limits, or others altogether.
fn revised(rules: Rules) -> impl Strategy<Value = Rules> {
    let numbers = vec((1_u32..60, 1_u32..20), 1..6);
    let same = numbers.prop_map(move |numbers| {
        let mut numbers = numbers.into_iter().cycle();
        let mut rules = rules.clone();
        for policy in rules.0.iter_mut().flatten() {
            let (count, burst) = numbers.next().unwrap_or((1, 1));
            policy.count = count;
            policy.burst = match policy.kind {
                Kind::Rate => burst,
                Kind::Max => burst.min(count),
                Kind::Utc | Kind::Rolling => count,
            };
        }
        rules
    });
    prop_oneof![3 => same, 1 => self::rules()]
}

fn wish() -> impl Strategy<Value = Wish> {
    let edge = || prop_oneof![2 => Just(0_u64), 1 => Just(100), 2 => 0_u64..=100];
    (
        0..LANES.len(),
        prop_oneof![5 => Just(1_u32), 1 => 2_u32..6],
        prop::bool::weighted(0.8),
        prop_oneof![3 => Just(0_u64), 2 => 0..50 * MILLI, 1 => 0..2 * SECOND],
        edge(),
        edge(),
        prop_oneof![2 => Just(0_u64), 2 => 0..300 * MILLI],
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(lane, cost, insists, told_after, left_at, delay, lasts, is_abandoned)| Wish {
                lane,
                cost,
                insists,
                told_after,
                left_at,
                delay,
                lasts,
                is_abandoned,
            },
        )
}

fn act(trouble: Trouble, revisions: usize) -> impl Strategy<Value = Act> {
    let dying = prop_oneof![Just(0_u64), 0..SECOND];
    let down = prop_oneof![Just(0_u64), 0..100 * MILLI, 0..MINUTE];
    let rest = prop_oneof![0..SECOND, 0..MINUTE, 0..HOUR];
    let step = -400_i64..400;
    let mut acts = vec![
        (60, wish().prop_map(Act::Call).boxed()),
        (4, rest.prop_map(Act::Rest).boxed()),
        (
            1,
            step.prop_map(|days| Act::StepWall(days * 86_400_000_000_000))
                .boxed(),
        ),
        (1, Just(Act::Sweep).boxed()),
    ];
    if trouble.revises() {
        acts.push((3, (0..revisions).prop_map(Act::Revise).boxed()));
    }
    if trouble.crashes() {
        let others = if trouble.revises() { revisions } else { 1 };
        let rules = prop_oneof![2 => Just(None), 1 => (0..others).prop_map(Some)];
        let crash =
            (dying, down, rules).prop_map(|(dying, down, rules)| Act::Crash { dying, down, rules });
        acts.push((3, crash.boxed()));
    }
    proptest::strategy::Union::new_weighted(acts)
}

/// A run of up to `most` things that happen.
pub fn script(trouble: Trouble, most: usize) -> impl Strategy<Value = Script> {
    let others = if trouble.revises() { 3 } else { 0 };
    let rulebooks = rules().prop_flat_map(move |first| {
        let others = vec(revised(first.clone()), others);
        others.prop_map(move |others| {
            let mut rules = vec![first.clone()];
            rules.extend(others);
            rules
        })
    });
    let spread = select(vec![0, 10 * MILLI, 25 * MILLI, 100 * MILLI, SECOND]);
    let base = select(vec![0, 30 * MILLI, 300 * MILLI]);
    let margin = prop_oneof![3 => Just(0_u64), 1 => 0..50 * MILLI];
    let acts = vec(act(trouble, others + 1), 1..most);
    let start = 1_800_000_000 * SECOND..1_800_100_000 * SECOND;
    let concurrency = select(vec![1_u32, 2, 8, 64]);
    (rulebooks, spread, base, margin, concurrency, start, acts).prop_map(
        |(rules, spread, base, more, concurrency, start, acts)| Script {
            rules,
            way: Way { base, spread },
            margin: spread + more,
            concurrency,
            start,
            acts,
        },
    )
}
