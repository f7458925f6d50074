//! The HTTP client with nothing hidden: no redirects, no retries, no system
//! proxy, no decompression, no address that was not checked.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::departure::Connecting;
use super::guard::{Guard, GuardedResolver, Lookup};

/// How the wire is reached.
#[derive(Clone)]
pub struct Wire {
    /// Which addresses may be.
    pub guard: Arc<Guard>,
    /// How names become addresses.
    pub lookup: Lookup,
    /// A file of certificates to trust beside the bundled roots, in PEM.
    pub ca_file: Option<PathBuf>,
    /// What we call ourselves.
    pub user_agent: Arc<str>,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire")
            .field("guard", &self.guard)
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}

impl Default for Wire {
    /// Public addresses only, names as the system resolves them.
    fn default() -> Self {
        Self {
            guard: Arc::new(Guard::default()),
            lookup: super::guard::system_lookup(),
            ca_file: None,
            user_agent: concat!("tidegate/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file of certificates is not one.
    #[error("{}: no certificates in PEM could be read: {error}", path.display())]
    CaFile {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        error: String,
    },
    /// TLS or the client could not be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(String),
}

/// Longer to get a connection is a target that cannot be reached.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The client, made anew before its idle connections take all descriptors: a
/// pool bounds them by host, and a crawl has hosts without number.
#[derive(Debug)]
pub(super) struct Client {
    wire: Wire,
    /// Shared by all, so that TLS sessions are resumed.
    tls: rustls::ClientConfig,
    most: usize,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    client: reqwest::Client,
    opened: Arc<AtomicUsize>,
}

/// Connections that one client opens at most, where descriptors abound; an
/// idle one costs some 30 kB.
const MOST_OPENED: usize = 4096;

impl Client {
    pub(super) fn new(wire: &Wire) -> Result<Self, ClientError> {
        let tls = tls(wire)?;
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let descriptors = descriptors.map_or(usize::MAX, |most| most.try_into().unwrap_or(0));
        Ok(Self {
            current: Mutex::new(Current::new(wire, &tls)?),
            wire: wire.clone(),
            tls,
            // The rest is for calls, those of the client before, files and names.
            most: (descriptors / 4).clamp(1, MOST_OPENED),
        })
    }

    /// The client for the next request. One that is replaced closes what is
    /// idle at once, and the rest as its calls end.
    pub(super) fn get(&self) -> reqwest::Client {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.opened.load(Ordering::Relaxed) >= self.most {
            match Current::new(&self.wire, &self.tls) {
                Ok(new) => *current = new,
                Err(error) => tracing::warn!(%error, "the HTTP client could not be renewed"),
            }
        }
        current.client.clone()
    }
}

impl Current {
    fn new(wire: &Wire, tls: &rustls::ClientConfig) -> Result<Self, ClientError> {
        let opened = Arc::new(AtomicUsize::new(0));
        let client = build(wire, tls.clone(), opened.clone())?;
        Ok(Self { client, opened })
    }
}

fn tls(wire: &Wire) -> Result<rustls::ClientConfig, ClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Setup(error.to_string()))?
        .with_root_certificates(roots(wire)?)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

fn build(
    wire: &Wire,
    tls: rustls::ClientConfig,
    opened: Arc<AtomicUsize>,
) -> Result<reqwest::Client, ClientError> {
    #[expect(clippy::disallowed_methods, reason = "the one place a client is made")]
    let builder = reqwest::Client::builder();
    builder
        .tls_backend_preconfigured(tls)
        .dns_resolver(GuardedResolver::new(
            wire.guard.clone(),
            wire.lookup.clone(),
        ))
        .connector_layer(Connecting { opened })
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .tcp_nodelay(true)
        .user_agent(&*wire.user_agent)
        .build()
        .map_err(|error| ClientError::Setup(error.to_string()))
}

fn roots(wire: &Wire) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let Some(path) = &wire.ca_file else {
        return Ok(roots);
    };
    let failed = |error: String| ClientError::CaFile {
        path: path.clone(),
        error,
    };
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    let mut found = false;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| failed(error.to_string()))?;
        found = true;
    }
    if found {
        Ok(roots)
    } else {
        Err(failed("the file holds none".into()))
    }
}

/// A client for a gate of this machine's own: nothing but loopback.
///
/// # Errors
/// When the client cannot be set up.
pub fn loopback_client() -> Result<reqwest::Client, ClientError> {
    let loopback = ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::LOCALHOST, 8);
    let wire = Wire {
        guard: Arc::new(Guard::new(vec![loopback.into()])),
        ..Wire::default()
    };
    build(&wire, tls(&wire)?, Arc::default())
}
