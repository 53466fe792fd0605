//! The proxy's own certificate authority: clients of an API server verify whom they talk to.

use crate::Error;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::{ServerConfig, crypto::CryptoProvider, pki_types::PrivateKeyDer};
use std::{net::IpAddr, sync::Arc};

/// The names under which clients reach an API server.
const NAMES: [&str; 6] =
    ["127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// A certificate authority and the one certificate that it signed.
pub(crate) struct Certificates {
    /// What clients must trust.
    pub(crate) ca_pem: String,
    /// For all listeners.
    pub(crate) server: Arc<ServerConfig>,
}

impl Certificates {
    /// Valid for further addresses, too.
    pub(crate) fn make(addresses: &[IpAddr]) -> Result<Self, Error> {
        let mut ca = CertificateParams::new(vec![])?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "spiritlevel proxy");
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let ca_key = KeyPair::generate()?;
        let ca_certificate = ca.self_signed(&ca_key)?;
        let issuer = Issuer::new(ca, ca_key);

        let names = NAMES.map(String::from).into_iter().chain(addresses.iter().map(IpAddr::to_string));
        let mut leaf = CertificateParams::new(names.collect::<Vec<_>>())?;
        leaf.distinguished_name.push(DnType::CommonName, "kubernetes");
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());

        let mut server = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { ca_pem: ca_certificate.pem(), server: Arc::new(server) })
    }
}

/// Named, not taken from the process: what else is linked may bring another default.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
