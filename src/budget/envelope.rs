//! An envelope: all limits of a target at one time. Immutable; each distinct
//! one gets a number, store-wide, and every call names the one in force.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limit::Limit;
use super::rule::{Provenance, Terms, Tier};
use super::scope::Scope;

/// The number of an envelope.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// All limits that hold for a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Layer by layer.
    pub layers: Vec<Layer>,
}

/// The limits of one scope. It does not say whose: targets with the same
/// limits share one revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// `pool`, `group`, `host` or `class`.
    pub scope: Arc<str>,
    /// The name of a pool.
    pub pool: Option<Arc<str>>,
    /// The limits.
    pub limits: Vec<Limit>,
    /// Calls under way at once.
    pub concurrency: Option<NonZeroU32>,
    /// See [`super::Conduct::arrival_margin`].
    pub arrival_margin: Duration,
    /// Where the numbers come from.
    pub provenance: Provenance,
}

impl Envelope {
    /// The envelope of these terms. A layer that limits nothing is left out.
    #[must_use]
    pub fn of(terms: &Terms) -> Self {
        let limiting = |tier: &&Tier| !tier.limits.is_empty() || tier.concurrency.is_some();
        let layer = |tier: &Tier| Layer {
            scope: tier.scope.kind().into(),
            pool: match &tier.scope {
                Scope::Pool(name) => Some(name.clone()),
                _ => None,
            },
            limits: tier.limits.clone(),
            concurrency: tier.concurrency,
            arrival_margin: tier.arrival_margin,
            provenance: tier.provenance.clone(),
        };
        Self {
            layers: terms.tiers.iter().filter(limiting).map(layer).collect(),
        }
    }

    /// What tells two envelopes apart.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let mut digest = [0; 16];
        digest.copy_from_slice(blake3::hash(&text).as_bytes().split_at(16).0);
        digest
    }
}
