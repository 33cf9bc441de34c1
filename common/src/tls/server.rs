//! The accepting end.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::{
        ClientHello, NoClientAuth, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::{CertifiedKey, SingleCertAndKey},
    version::TLS13,
};

use super::{
    Certificate,
    files::{TlsError, TlsFile, certified_key},
    reload::{Reloading, TlsFiles},
};

/// The files of a server.
#[derive(Debug, Clone)]
pub struct ServerFiles {
    /// Its chain, the server's own certificate first.
    pub cert: TlsFile,
    /// The key of that certificate.
    pub key: TlsFile,
    /// Who signs the certificates of clients. Without it clients need none.
    pub client_ca: Option<TlsFile>,
}

/// What is made of them.
#[derive(Debug)]
pub struct ServerTls {
    /// For gRPC; asks for the client's certificate if there is a CA for them.
    pub grpc: Arc<ServerConfig>,
    /// Checks certificates of clients, where they are signed by somebody who counts.
    verifier: Arc<dyn ClientCertVerifier>,
    key: Arc<CertifiedKey>,
    not_after_unix: i64,
}

impl TlsFiles for ServerFiles {
    type Made = ServerTls;

    fn files(&self) -> Vec<&TlsFile> {
        [&self.cert, &self.key].into_iter().chain(&self.client_ca).collect()
    }

    fn load(&self) -> Result<ServerTls, TlsError> {
        let key = certified_key((&self.cert, &self.cert.read()?), (&self.key, &self.key.read()?))?;
        let not_after_unix = earliest_end(&self.cert, &key)?;
        let verifier: Arc<dyn ClientCertVerifier> = match &self.client_ca {
            None => Arc::new(NoClientAuth),
            Some(file) => {
                let roots = Arc::new(file.roots(&file.read()?)?);
                WebPkiClientVerifier::builder(roots).build().map_err(|reason| TlsError::Certificate {
                    file: file.clone(),
                    number: 1,
                    reason: reason.to_string(),
                })?
            }
        };
        // Each load makes a configuration of its own, and with it new session tickets: nobody resumes
        // past a CA that was taken away.
        let mut grpc = ServerConfig::builder_with_protocol_versions(&[&TLS13])
            .with_client_cert_verifier(verifier.clone())
            .with_cert_resolver(Arc::new(SingleCertAndKey::from((*key).clone())));
        grpc.alpn_protocols = vec![b"h2".to_vec()];
        Ok(ServerTls { grpc: Arc::new(grpc), verifier, key, not_after_unix })
    }

    fn not_after_unix(made: &ServerTls) -> Option<i64> {
        Some(made.not_after_unix)
    }
}

/// When the first certificate of a chain ends.
pub(super) fn earliest_end(file: &TlsFile, key: &CertifiedKey) -> Result<i64, TlsError> {
    let mut end = i64::MAX;
    for (at, der) in key.cert.iter().enumerate() {
        let certificate = Certificate::parse(der).map_err(|reason| TlsError::Certificate {
            file: file.clone(),
            number: at + 1,
            reason,
        })?;
        end = end.min(certificate.not_after_unix);
    }
    Ok(end)
}

/// A configuration for HTTP, which takes the newest files at each handshake. If there is a CA for clients they
/// are asked for a certificate, and let in without one, too: who may do what is not decided here.
pub fn http_config(tls: &Reloading<ServerFiles>) -> ServerConfig {
    let newest = Arc::new(Newest(tls.clone()));
    let config = ServerConfig::builder_with_protocol_versions(&[&TLS13]);
    let mut config = config.with_client_cert_verifier(newest.clone()).with_cert_resolver(newest);
    // Nobody resumes past a CA that was taken away.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config
}

#[derive(Debug)]
struct Newest(Reloading<ServerFiles>);

impl ResolvesServerCert for Newest {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current().ok()?.key.clone())
    }
}

impl Newest {
    fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, rustls::Error> {
        let current = self.0.current().map_err(rustls::Error::General)?;
        Ok(current.verifier.clone())
    }
}

impl ClientCertVerifier for Newest {
    fn offer_client_auth(&self) -> bool {
        self.verifier().is_ok_and(|verifier| verifier.offer_client_auth())
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // They may change, and nobody needs them.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.verifier()?.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier()?.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier()?.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier().map(|verifier| verifier.supported_verify_schemes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::{Authority, Folder};

    #[test]
    fn what_is_wrong_is_named_by_flag_and_file() {
        let folder = Folder::new();
        let authority = Authority::new("ca");
        let (pair, other) = (authority.issue(&["tower"]), authority.issue(&["other"]));
        folder.write("cert", &pair.cert);
        folder.write("key", &pair.key);
        folder.write("ca", &authority.cert);
        assert!(folder.server().load().is_ok());

        let check = |name: &str, content: &str, message: &str| {
            let before = folder.read(name);
            folder.write(name, content);
            let error = folder.server().load().unwrap_err().to_string();
            assert!(error.contains(message), "{error:?} does not contain {message:?}");
            assert!(error.contains(folder.path(name).to_str().unwrap()), "{error}");
            assert!(!error.contains("SECRET"), "{error}");
            folder.write(name, &before);
        };
        check("cert", "rubbish", "--tls-cert");
        check("cert", "", "has no certificate in it");
        check("cert", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 of");
        check("cert", "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n", "malformed PEM");
        check("cert", &pair.key, "has no certificate in it");
        check("key", &other.key, "is not the key of the first certificate of --tls-cert");
        check("key", &pair.cert, "has no private key in it");
        check("key", "-----BEGIN PRIVATE KEY-----\nSECRET*\n-----END PRIVATE KEY-----\n", "malformed PEM");
        check(
            "key",
            "-----BEGIN PRIVATE KEY-----\nSECR\n-----END PRIVATE KEY-----\n",
            "the key of --tls-key",
        );
        check("ca", "rubbish", "--tls-client-ca");
        std::fs::remove_file(folder.path("ca")).unwrap();
        let error = folder.server().load().unwrap_err().to_string();
        assert!(error.starts_with("--tls-client-ca ") && error.contains("cannot be read"), "{error}");
    }
}
