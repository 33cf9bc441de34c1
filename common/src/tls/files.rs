//! PEM files, and what can be wrong with them.

use std::{
    fmt::{self, Display},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    InconsistentKeys, RootCertStore,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    sign::CertifiedKey,
};

/// A chain, a key or a bundle of CAs is a few kilobytes.
const MAX_BYTES: u64 = 1 << 20;

const CERT: &str = "--tls-cert";
const KEY: &str = "--tls-key";

/// A file, and the flag that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFile {
    /// The flag.
    pub flag: &'static str,
    /// The file.
    pub path: PathBuf,
}

/// Why files cannot be used. Names flag and file, and has nothing of a key in it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// It is not there, or not for us to read.
    #[error("{file} cannot be read: {reason}")]
    Read {
        /// The file.
        file: TlsFile,
        /// What the system says.
        reason: io::Error,
    },
    /// It is too large to be what it should be.
    #[error("{file} has {bytes} bytes, and at most {MAX_BYTES} are read")]
    TooLarge {
        /// The file.
        file: TlsFile,
        /// Its size.
        bytes: u64,
    },
    /// There are no such PEM sections in it.
    #[error("{file} has no {wanted} in it; it must be PEM")]
    Missing {
        /// The file.
        file: TlsFile,
        /// What was looked for.
        wanted: &'static str,
    },
    /// Its PEM is malformed.
    #[error("{file} is malformed PEM")]
    Pem {
        /// The file.
        file: TlsFile,
    },
    /// One of its certificates is malformed.
    #[error("certificate {number} of {file} cannot be used: {reason}")]
    Certificate {
        /// The file.
        file: TlsFile,
        /// Its number in the file, from 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The key is malformed, or of an unknown kind.
    #[error("the key of {file} cannot be used; it must be RSA, ECDSA or Ed25519")]
    Key {
        /// The file.
        file: TlsFile,
    },
    /// Key and certificate are of different pairs.
    #[error("{key} is not the key of the first certificate of {cert}")]
    Mismatch {
        /// The key's file.
        key: TlsFile,
        /// The certificate's file.
        cert: TlsFile,
    },
}

impl TlsFile {
    /// A file that this flag names.
    pub fn new(flag: &'static str, path: impl Into<PathBuf>) -> Self {
        Self { flag, path: path.into() }
    }

    /// A certificate's file and its key's, as `--tls-cert` and `--tls-key` name them.
    ///
    /// # Errors
    /// If there is only one of them.
    pub fn pair(cert: Option<&Path>, key: Option<&Path>) -> Result<Option<(Self, Self)>, String> {
        match (cert, key) {
            (Some(cert), Some(key)) => Ok(Some((Self::new(CERT, cert), Self::new(KEY, key)))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(format!("{CERT} is given without {KEY}")),
            (None, Some(_)) => Err(format!("{KEY} is given without {CERT}")),
        }
    }

    /// Its content.
    ///
    /// # Errors
    /// If it cannot be read, or is too large.
    pub fn read(&self) -> Result<Vec<u8>, TlsError> {
        let fault = |reason| TlsError::Read { file: self.clone(), reason };
        let bytes = fs::metadata(&self.path).map_err(fault)?.len();
        if bytes > MAX_BYTES {
            return Err(TlsError::TooLarge { file: self.clone(), bytes });
        }
        fs::read(&self.path).map_err(fault)
    }

    /// The certificates in its content, at least one.
    ///
    /// # Errors
    /// If there is none, or one is malformed.
    pub fn certificates(&self, content: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let certificates: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(content).collect();
        let certificates = certificates.map_err(|_| TlsError::Pem { file: self.clone() })?;
        if certificates.is_empty() {
            return Err(TlsError::Missing { file: self.clone(), wanted: "certificate" });
        }
        Ok(certificates)
    }

    /// The CAs in its content.
    ///
    /// # Errors
    /// If there is none, or one is malformed: a bundle is trusted whole or not at all.
    pub fn roots(&self, content: &[u8]) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for (at, certificate) in self.certificates(content)?.into_iter().enumerate() {
            roots.add(certificate).map_err(|reason| TlsError::Certificate {
                file: self.clone(),
                number: at + 1,
                reason: reason.to_string(),
            })?;
        }
        Ok(roots)
    }

    fn key(&self, content: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
        // What the parser says may quote the file, so it is not repeated.
        PrivateKeyDer::from_pem_slice(content).map_err(|error| match error {
            pem::Error::NoItemsFound => TlsError::Missing { file: self.clone(), wanted: "private key" },
            _ => TlsError::Pem { file: self.clone() },
        })
    }
}

/// A chain and its key, which belong together.
///
/// # Errors
/// If either cannot be used, or they are not of one pair.
pub fn certified_key(
    (cert, chain): (&TlsFile, &[u8]),
    (key, content): (&TlsFile, &[u8]),
) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = cert.certificates(chain)?;
    let provider = ring::default_provider();
    let signer = provider
        .key_provider
        .load_private_key(key.key(content)?)
        .map_err(|_| TlsError::Key { file: key.clone() })?;
    let certified = CertifiedKey::new(chain, signer);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(Arc::new(certified)),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(TlsError::Mismatch { key: key.clone(), cert: cert.clone() })
        }
        Err(reason) => {
            Err(TlsError::Certificate { file: cert.clone(), number: 1, reason: reason.to_string() })
        }
    }
}

impl Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.flag, self.path.display())
    }
}
