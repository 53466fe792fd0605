//! Certificates and keys of one control plane; nothing is shared between two.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::Error;

/// Names under which the API server and its neighbours are dialled.
const SERVER_NAMES: [&str; 5] =
    ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// Everything in PEM, ready to be written to files.
pub(crate) struct Pki {
    pub(crate) ca_cert: String,
    pub(crate) server_cert: String,
    pub(crate) server_key: String,
    pub(crate) service_account_key: String,
    pub(crate) service_account_public_key: String,
}

/// A certificate of a server's own, and of who signed it; in PEM.
pub struct ServingCertificate {
    /// Whom clients must trust.
    pub ca: String,
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

// === impl ServingCertificate ===

impl ServingCertificate {
    /// One for these names of hosts.
    pub fn generate(names: Vec<String>) -> Result<Self, Error> {
        let ca = authority("spiritlevel webhooks")?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "webhook");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &ca)?;
        Ok(Self { ca: ca.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn authority(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>, Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

// === impl Pki ===

impl Pki {
    pub(crate) fn generate(service_cluster_ip: &str) -> Result<Self, Error> {
        let ca = authority("spiritlevel control plane")?;

        let mut names = SERVER_NAMES.map(str::to_owned).to_vec();
        names.push(service_cluster_ip.to_owned());
        let mut server_params = CertificateParams::new(names)?;
        server_params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server_params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate()?;
        let server_cert = server_params.signed_by(&server_key, &ca)?;

        // The API server takes ECDSA as well as RSA here (k8s.io/client-go/util/keyutil); ECDSA costs no start time.
        let service_account_key = KeyPair::generate()?;
        Ok(Self {
            ca_cert: ca.pem(),
            server_cert: server_cert.pem(),
            server_key: server_key.serialize_pem(),
            service_account_public_key: service_account_key.public_key_pem(),
            service_account_key: service_account_key.serialize_pem(),
        })
    }
}
