//! The door for names: the client dials what comes out here, and nothing else.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter::successors;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{Blocked, Guard, Lookup, is_loopback_name};

/// A name that leads to no address, so that nothing can have been sent to it.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// The look-up worked and its answer was empty.
    #[error("{name} has no address")]
    NoAddress {
        /// The name asked for.
        name: String,
    },
    /// The look-up itself failed: no such name, or nobody who could be asked.
    #[error("{name} could not be looked up")]
    Lookup {
        /// The name asked for.
        name: String,
        /// What the look-up said.
        source: io::Error,
    },
}

/// Resolves names for a [`reqwest::Client`] and judges every address before it is dialled.
///
/// One blocked address refuses the whole name: a name that mixes public and private addresses is
/// an attack or a mistake, and which of them is dialled would be chance. Only `localhost` and the
/// names under it, which systems answer in both families, keep the addresses that are open.
pub struct GuardedResolver {
    guard: Arc<Guard>,
    lookup: Lookup,
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedResolver")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

impl GuardedResolver {
    /// Judges by `guard` what `lookup` finds.
    pub fn new(guard: Arc<Guard>, lookup: Lookup) -> Self {
        Self { guard, lookup }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let guard = Arc::clone(&self.guard);
        let answer = (self.lookup)(name.clone());
        Box::pin(async move {
            let found = match answer.await {
                Ok(found) => found,
                Err(source) => return Err(Unresolved::Lookup { name, source }.into()),
            };
            let judged = judged(&guard, name, found)?;
            // The client replaces port 0 by the one of the URL or of its scheme.
            let dialled = judged.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(dialled) as Addrs)
        })
    }
}

fn judged(
    guard: &Guard,
    name: String,
    found: Vec<IpAddr>,
) -> Result<Vec<IpAddr>, Box<dyn Error + Send + Sync>> {
    let mut open = Vec::with_capacity(found.len());
    let mut refusal = None;
    for ip in found {
        match guard.check(ip) {
            Ok(()) => open.push(ip),
            Err(blocked) => refusal = refusal.or(Some(blocked)),
        }
    }
    match refusal {
        Some(blocked) if open.is_empty() || !is_loopback_name(&name) => Err(blocked.into()),
        None if open.is_empty() => Err(Unresolved::NoAddress { name }.into()),
        _ => Ok(open),
    }
}

/// The refusal of a guard in an error or in one of its causes.
pub fn blocked_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Blocked> {
    causes(error).find_map(<dyn Error>::downcast_ref)
}

/// Whether an error, or one of its causes, is a name without addresses. A blocked name is not one.
pub fn unresolved_in(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(<dyn Error>::is::<Unresolved>)
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| {
        // `io::Error::source` skips the error it wraps and names that one's source.
        match error.downcast_ref().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}
