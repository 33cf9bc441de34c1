//! Certificates made for a test, and a folder to put them into.

use std::{fs, path::PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;

use super::{ClientFiles, ServerFiles, TlsFile};

/// A CA.
pub(super) struct Authority {
    /// Its certificate in PEM.
    pub(super) cert: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(super) struct Pair {
    pub(super) cert: String,
    pub(super) key: String,
    pub(super) der: CertificateDer<'static>,
}

/// The files of a process, at well-known names.
pub(super) struct Folder(TempDir);

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        super::install_provider();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let cert = params.self_signed(&key).unwrap().pem();
        Self { cert, issuer: Issuer::new(params, key) }
    }

    pub(super) fn issue(&self, names: &[&str]) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.subject_alt_names = names
            .iter()
            .map(|name| match name.contains("://") {
                true => SanType::URI((*name).try_into().unwrap()),
                false => SanType::DnsName((*name).try_into().unwrap()),
            })
            .collect();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair { cert: certificate.pem(), key: key.serialize_pem(), der: certificate.der().clone() }
    }
}

impl Folder {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A server's, with mutual TLS.
    pub(super) fn server(&self) -> ServerFiles {
        ServerFiles {
            cert: TlsFile::new("--tls-cert", self.path("cert")),
            key: TlsFile::new("--tls-key", self.path("key")),
            client_ca: Some(TlsFile::new("--tls-client-ca", self.path("ca"))),
        }
    }

    /// A client's, with or without an identity.
    pub(super) fn client(&self, identity: bool) -> ClientFiles {
        let pair =
            (TlsFile::new("--tls-cert", self.path("cert")), TlsFile::new("--tls-key", self.path("key")));
        ClientFiles { ca: TlsFile::new("--tls-ca", self.path("ca")), identity: identity.then_some(pair) }
    }
}
