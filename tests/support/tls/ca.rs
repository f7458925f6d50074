//! A certificate authority that lives as long as a test.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;

/// An authority that only a client which is given its certificate trusts.
pub struct TestCa {
    /// The authority's own certificate.
    pub ca_pem: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl TestCa {
    /// A new authority with a new key.
    pub fn new() -> Self {
        let mut params = CertificateParams::new([]).expect("no names are valid names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key is made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority signs itself");
        Self {
            ca_pem: issuer.pem(),
            issuer,
        }
    }

    /// A server with a new certificate for 127.0.0.1 and localhost that speaks one protocol, named
    /// as in ALPN (RFC 7301).
    pub fn server_config(&self, protocol: &str) -> ServerConfig {
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        let mut params = CertificateParams::new(names).expect("both are valid names");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().expect("a key is made");
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("the authority signs");
        let private = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports the default versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private.into())
            .expect("the certificate is of this key");
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        config
    }
}

impl Default for TestCa {
    fn default() -> Self {
        Self::new()
    }
}
