//! Where a call may not go.
//!
//! An agent that can be talked into fetching a URL can be talked into fetching the metadata
//! service, the database next door or the gate itself. So special-purpose addresses are closed
//! unless the operator opens their range.
//!
//! There are two doors, because a client has two ways to an address: a literal in a URL never
//! reaches a resolver, so [`Guard::check_host`] judges it before the call is made; a name is
//! judged by [`GuardedResolver`], which hands the client the very addresses it has judged, so
//! that no second look-up can answer differently.

mod lookup;
mod ranges;
mod resolver;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use ipnet::{IpNet, Ipv4Net};
use url::Host;

pub use lookup::{BoxFuture, Lookup, pinned_lookup, system_lookup};
pub use resolver::{GuardedResolver, Unresolved, blocked_in, unresolved_in};

/// An address or a name that a call may not be made to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why} are not reachable from here")]
pub struct Blocked {
    /// What was judged: an address (an IPv4-mapped one as IPv4), or a host as it was given.
    pub address_or_name: String,
    /// Its kind, in the plural, such as `link-local addresses`.
    pub why: &'static str,
}

/// Judges addresses and hosts. Everything special is closed, except the ranges it was given.
#[derive(Debug, Default)]
pub struct Guard {
    open: RwLock<Vec<IpNet>>,
}

impl Guard {
    /// Opens the ranges of `allow_private`. A range of IPv4-mapped addresses counts as the IPv4
    /// range it maps.
    pub fn new(allow_private: Vec<IpNet>) -> Self {
        let guard = Self::default();
        guard.reopen(allow_private);
        guard
    }

    /// Opens these ranges, and no others from now on. A connection that is
    /// open is not closed: where it leads was judged when it was made.
    pub fn reopen(&self, allow_private: Vec<IpNet>) {
        let open = allow_private.into_iter().map(unmapped).collect();
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = open;
    }

    fn open(&self) -> RwLockReadGuard<'_, Vec<IpNet>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges one address, and, where it is an IPv6 address that stands for an IPv4 one, that one
    /// too.
    ///
    /// Only mapped addresses (`::ffff:0:0/96`) are the same host as their IPv4 address; an open
    /// IPv4 range therefore does not open NAT64 or 6to4 addresses that carry one of its members.
    ///
    /// # Errors
    /// [`Blocked`] if the address is special and in no open range.
    pub fn check(&self, ip: IpAddr) -> Result<(), Blocked> {
        let ip = ip.to_canonical();
        if self.open().iter().any(|range| range.contains(&ip)) {
            return Ok(());
        }
        match ranges::closed(ip) {
            Some(why) => Err(Blocked {
                address_or_name: ip.to_string(),
                why,
            }),
            None => Ok(()),
        }
    }

    /// Judges the host of a URL, with IPv6 in brackets. It is read as the WHATWG URL standard
    /// reads it, so `0x7f.1` and `2130706433` are judged as the address they are. A name passes
    /// here and is judged by what it resolves to, except `localhost` and the names under it
    /// (RFC 6761 section 6.3), which need an open loopback range.
    ///
    /// # Errors
    /// [`Blocked`] if the host is a closed address, a closed loopback name, or no host at all.
    pub fn check_host(&self, host: &str) -> Result<(), Blocked> {
        let blocked = |why| Blocked {
            address_or_name: host.to_owned(),
            why,
        };
        match Host::parse(host) {
            Ok(Host::Ipv4(ip)) => self.check(ip.into()),
            Ok(Host::Ipv6(ip)) => self.check(ip.into()),
            Ok(Host::Domain(name)) if is_loopback_name(&name) && !self.opens_loopback() => {
                Err(blocked("loopback names"))
            }
            Ok(Host::Domain(_)) => Ok(()),
            Err(_) => Err(blocked("hosts that cannot be read")),
        }
    }

    fn opens_loopback(&self) -> bool {
        self.open().iter().any(|open| {
            ranges::LOOPBACK
                .iter()
                .any(|loopback| open.contains(loopback) || loopback.contains(open))
        })
    }
}

fn is_loopback_name(name: &str) -> bool {
    let name = folded(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// One spelling for the names that a resolver treats alike.
fn folded(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

fn unmapped(range: IpNet) -> IpNet {
    let IpNet::V6(mapped) = range else {
        return range;
    };
    mapped
        .addr()
        .to_ipv4_mapped()
        .zip(mapped.prefix_len().checked_sub(96))
        .and_then(|(addr, prefix)| Ipv4Net::new(addr, prefix).ok())
        .map_or(range, IpNet::V4)
}
