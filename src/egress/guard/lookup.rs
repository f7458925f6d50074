//! Where the addresses of a name come from, before anybody has judged them.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use super::folded;

/// A future behind a pointer, so that look-ups of different kinds share a type.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Finds the addresses of a name, in the order in which they are to be tried.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Asks the operating system, as most programs of the machine do. The look-up must be awaited
/// inside a tokio runtime.
pub fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// Answers for the names in `pins` from there, and asks `fallback` for all others. Case and a
/// trailing dot make no difference.
pub fn pinned_lookup(pins: HashMap<String, Vec<IpAddr>>, fallback: Lookup) -> Lookup {
    let pins: HashMap<_, _> = pins
        .into_iter()
        .map(|(name, addresses)| (folded(&name), addresses))
        .collect();
    Arc::new(move |name| match pins.get(&folded(&name)) {
        Some(addresses) => Box::pin(ready(Ok(addresses.clone()))),
        None => fallback(name),
    })
}
