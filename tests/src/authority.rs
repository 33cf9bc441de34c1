//! A certificate authority of a test, and the files that it issues.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

/// An authority.
#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, which nobody trusts yet.
    pub fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// Its own certificate in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for these names, which may be addresses and URIs as well. The first is its subject.
    pub fn sign(&self, names: &[&str]) -> Result<Issued> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, names.first().copied().unwrap_or_default());
        for name in names {
            params.subject_alt_names.push(match name.parse::<IpAddr>() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) if name.contains("://") => SanType::URI((*name).try_into()?),
                Err(_) => SanType::DnsName((*name).try_into()?),
            });
        }
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }

    /// Writes `ca.pem`, `cert.pem` and `key.pem` into this folder, for these names. What was there is
    /// replaced.
    pub fn issue(&self, folder: &Path, names: &[&str]) -> Result<TlsFiles> {
        let issued = self.sign(names)?;
        let files = TlsFiles { folder: folder.to_owned() };
        files.write("ca.pem", &self.certificate)?;
        files.write("cert.pem", &issued.certificate)?;
        files.write("key.pem", &issued.key)?;
        Ok(files)
    }
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The key, in PKCS #8.
    pub key: String,
}

/// The files of one process.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    folder: PathBuf,
}

impl TlsFiles {
    /// The flags of a Tower that asks for certificates.
    pub fn tower(&self) -> Vec<String> {
        let mut flags = self.identity();
        flags.push(format!("--tls-client-ca={}", self.path("ca.pem").display()));
        flags
    }

    /// The flags of a Beacon that has one.
    pub fn beacon(&self) -> Vec<String> {
        [self.anonymous(), self.identity()].concat()
    }

    /// The flags of a Beacon that has none.
    pub fn anonymous(&self) -> Vec<String> {
        vec![format!("--tls-ca={}", self.path("ca.pem").display())]
    }

    /// One of the files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Replaces one of the files.
    pub fn write(&self, name: &str, content: &str) -> Result<()> {
        let path = self.path(name);
        std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }

    fn identity(&self) -> Vec<String> {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        vec![format!("--tls-cert={}", cert.display()), format!("--tls-key={}", key.display())]
    }
}
