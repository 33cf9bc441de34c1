//! What a connection needs by way of TLS and login, read from the files that the source's URL names. They are
//! read for each connection, so that a renewed certificate or password needs no restart.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use zookeeper_client::{Connector, Error, SaslOptions, TlsOptions};

use crate::sources::spec::{Access, Login, Scheme, TlsFiles};

/// Certificates and passwords are smaller.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why a connection cannot even be tried. Nothing of a file's contents is told.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    #[error("{key} {}: cannot be read: {error}", path.display())]
    Unreadable { key: &'static str, path: PathBuf, error: io::Error },
    #[error("{key} {}: {problem}", path.display())]
    Unusable { key: &'static str, path: PathBuf, problem: String },
}

/// The contents of the files.
#[derive(Default)]
pub(super) struct Credentials {
    tls: Option<Pem>,
    login: Option<(Login, String)>,
}

struct Pem {
    files: TlsFiles,
    ca: String,
    /// Certificate and key.
    identity: Option<(String, String)>,
}

impl Credentials {
    /// Reads the files.
    pub(super) fn read(access: &Access) -> Result<Self, AccessError> {
        let tls = access.tls.as_ref().map(Pem::read).transpose()?;
        let login = access.login.as_ref().map(|login| Ok((login.clone(), password(login)?))).transpose()?;
        Ok(Self { tls, login })
    }

    /// Makes the library use them.
    pub(super) fn apply(&self, mut connector: Connector) -> Result<Connector, AccessError> {
        if let Some(pem) = &self.tls {
            connector = connector.with_tls(pem.options()?);
        }
        if let Some((login, password)) = &self.login {
            connector = match login.scheme {
                Scheme::Sasl => {
                    connector.with_sasl(SaslOptions::digest_md5(login.user.clone(), password.clone()))
                }
                Scheme::Digest => {
                    connector.with_auth("digest", format!("{}:{password}", login.user).as_bytes())
                }
            };
        }
        Ok(connector)
    }

    /// The same for a connection without the library, if it is by TLS.
    pub(super) fn tls_config(&self) -> Result<Option<Arc<ClientConfig>>, AccessError> {
        self.tls.as_ref().map(|pem| pem.config().map(Arc::new)).transpose()
    }
}

impl Pem {
    fn read(files: &TlsFiles) -> Result<Self, AccessError> {
        let identity = files.identity.as_ref();
        let identity =
            identity.map(|(cert, key)| Ok((text("cert", cert)?, text("key", key)?))).transpose()?;
        Ok(Self { files: files.clone(), ca: text("ca", &files.ca)?, identity })
    }

    fn options(&self) -> Result<TlsOptions, AccessError> {
        let options = TlsOptions::new()
            .with_pem_ca(&self.ca)
            .map_err(|_| unusable("ca", &self.files.ca, "there is no certificate of a CA in it"))?;
        match (&self.identity, &self.files.identity) {
            (Some((cert, key)), Some((_, path))) => options
                .with_pem_identity(cert, key)
                // What the library says might quote the file.
                .map_err(|_: Error| unusable("key", path, "it is no PEM file with a private key")),
            _ => Ok(options),
        }
    }

    fn config(&self) -> Result<ClientConfig, AccessError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(
            CertificateDer::pem_slice_iter(self.ca.as_bytes()).filter_map(Result::ok),
        );
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let (Some((cert, key)), Some((cert_path, key_path))) = (&self.identity, &self.files.identity) else {
            return Ok(builder.with_no_client_auth());
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(cert.as_bytes()).filter_map(Result::ok).collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|_| unusable("key", key_path, "it is no PEM file with a private key"))?;
        builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| unusable("cert", cert_path, &format!("it does not go with the key: {error}")))
    }
}

/// The password: the file without the end of its line.
fn password(login: &Login) -> Result<String, AccessError> {
    const KEY: &str = "password_file";
    let text = text(KEY, &login.password_file)?;
    let password = text.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        return Err(unusable(KEY, &login.password_file, "it is empty"));
    }
    Ok(password.to_owned())
}

fn text(key: &'static str, path: &Path) -> Result<String, AccessError> {
    let unreadable = |error| AccessError::Unreadable { key, path: path.to_owned(), error };
    if fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE_BYTES {
        return Err(unusable(key, path, &format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| unusable(key, path, "it is not a text"))
}

fn unusable(key: &'static str, path: &Path, problem: &str) -> AccessError {
    AccessError::Unusable { key, path: path.to_owned(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_key_and_file_and_nothing_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, contents: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, contents).unwrap();
            path
        };
        let secret = file("secret", b"s3cret\n");
        let login = |path: &Path| Login {
            scheme: Scheme::Sasl,
            user: "tower".to_owned(),
            password_file: path.to_owned(),
        };
        assert_eq!(password(&login(&secret)).unwrap(), "s3cret");
        let tls =
            |ca: &Path, identity| Access { tls: Some(TlsFiles { ca: ca.to_owned(), identity }), login: None };
        let with_login = |path: &Path| Access { tls: None, login: Some(login(path)) };
        for (access, message) in [
            (with_login(&folder.path().join("none")), "none: cannot be read: No such file"),
            (with_login(&file("empty", b"\n")), "empty: it is empty"),
            (with_login(&file("binary", b"\xff")), "binary: it is not a text"),
            (with_login(&file("large", &vec![b'x'; (1 << 20) + 1])), "large: it has more than 1048576 bytes"),
            (tls(&folder.path().join("gone"), None), "gone: cannot be read"),
            (tls(&secret, None), "secret: there is no certificate of a CA in it"),
        ] {
            let applied = Credentials::read(&access)
                .and_then(|credentials| credentials.apply(zookeeper_client::Client::connector()));
            let error = applied.err().unwrap().to_string();
            assert!(error.contains(message), "{error:?} does not contain {message:?}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
