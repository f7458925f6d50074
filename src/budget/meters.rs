//! All limits of a scope, and those that were in force before.
//!
//! A limit that is changed and changed back must not come back full: what left
//! meanwhile has reached the target as well. So a limit that goes out of force
//! goes on counting, until its bucket is forgotten.

use std::time::Duration;

use super::limit::Limit;
use super::meter::{Meter, SavedMeter, Surroundings};
use crate::clock::Moment;

/// No margin is longer.
const LONGEST_MARGIN: Duration = Duration::from_secs(10);
/// Limits out of force that go on counting, at most.
const REMEMBERED: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Meters {
    in_force: Vec<Meter>,
    retired: Vec<Meter>,
}

/// True when new meters would answer the same for ever, whatever the margin.
#[must_use]
pub(crate) fn nothing_spent(known: &[SavedMeter], now: Moment, utc_offset: i64) -> bool {
    let around = Surroundings {
        now,
        under_way: 0,
        margin: LONGEST_MARGIN,
        utc_offset,
    };
    Meters::of(&[], known, &around).is_full(&around)
}

impl Meters {
    /// Meters of `limits` that go on from what is known of these limits, or
    /// of their neighbours; newest first.
    pub(super) fn of(limits: &[Limit], known: &[SavedMeter], around: &Surroundings) -> Self {
        let in_force = limits
            .iter()
            .map(|limit| Meter::resumed(*limit, known, around))
            .collect();
        let is_out = |known: &&SavedMeter| !limits.iter().any(|limit| known.is_of(limit));
        let retired = known
            .iter()
            .filter(is_out)
            .take(REMEMBERED)
            .map(|out| Meter::resumed(out.limit, std::slice::from_ref(out), around))
            .collect();
        Self { in_force, retired }
    }

    /// True when just these limits are in force.
    pub(super) fn are_of(&self, limits: &[Limit]) -> bool {
        self.in_force.iter().map(Meter::limit).eq(limits)
    }

    /// Those in force.
    pub(super) fn in_force(&self) -> &[Meter] {
        &self.in_force
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Meter> {
        self.in_force.iter_mut().chain(&mut self.retired)
    }

    pub(super) fn depart(&mut self, cost: u64, departed: Moment, around: &Surroundings) {
        self.all()
            .for_each(|meter| meter.depart(cost, departed, around));
    }

    pub(super) fn clamp(&mut self, around: &Surroundings) {
        self.all().for_each(|meter| meter.clamp(around));
    }

    pub(super) fn drain(&mut self, now: Moment) {
        self.all().for_each(|meter| meter.drain(now));
    }

    pub(super) fn is_full(&self, around: &Surroundings) -> bool {
        self.in_force
            .iter()
            .chain(&self.retired)
            .all(|meter| meter.is_full(around))
    }

    /// All of them as the store keeps them, newest first.
    pub(super) fn saved(&self) -> Vec<SavedMeter> {
        self.in_force
            .iter()
            .chain(&self.retired)
            .map(Meter::saved)
            .collect()
    }
}
