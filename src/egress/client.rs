//! The HTTP client with nothing hidden: no redirects, no retries, no system
//! proxy, no decompression, no address that was not checked.

use std::path::PathBuf;
use std::sync::Arc;
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

pub(super) fn build(wire: &Wire) -> Result<reqwest::Client, ClientError> {
    let setup = |error: &dyn std::fmt::Display| ClientError::Setup(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(&error))?
        .with_root_certificates(roots(wire)?)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    #[expect(clippy::disallowed_methods, reason = "the one client there is")]
    let builder = reqwest::Client::builder();
    builder
        .tls_backend_preconfigured(tls)
        .dns_resolver(GuardedResolver::new(
            wire.guard.clone(),
            wire.lookup.clone(),
        ))
        .connector_layer(Connecting)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .tcp_nodelay(true)
        .user_agent(&*wire.user_agent)
        .build()
        .map_err(|error| setup(&error))
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
    build(&Wire {
        guard: Arc::new(Guard::new(vec![loopback.into()])),
        ..Wire::default()
    })
}
