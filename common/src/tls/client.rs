//! The connecting end.

use std::sync::Arc;

use rustls::{ClientConfig, sign::SingleCertAndKey, version::TLS13};

use super::{
    Certificate,
    files::{TlsError, TlsFile, certified_key},
    reload::TlsFiles,
    server::earliest_end,
};

/// The files of a client.
#[derive(Debug, Clone)]
pub struct ClientFiles {
    /// Who signs the certificates of servers.
    pub ca: TlsFile,
    /// The client's chain, its own certificate first, and the key.
    pub identity: Option<(TlsFile, TlsFile)>,
}

/// What is made of them.
#[derive(Debug)]
pub struct ClientTls {
    /// For gRPC.
    pub grpc: Arc<ClientConfig>,
    /// What the client's own certificate says, if it has one.
    pub certificate: Option<Certificate>,
    not_after_unix: Option<i64>,
}

impl TlsFiles for ClientFiles {
    type Made = ClientTls;

    fn files(&self) -> Vec<&TlsFile> {
        let identity = self.identity.iter().flat_map(|(cert, key)| [cert, key]);
        std::iter::once(&self.ca).chain(identity).collect()
    }

    fn load(&self) -> Result<ClientTls, TlsError> {
        let roots = self.ca.roots(&self.ca.read()?)?;
        let builder = ClientConfig::builder_with_protocol_versions(&[&TLS13]).with_root_certificates(roots);
        let (mut grpc, certificate, not_after_unix) = match &self.identity {
            None => (builder.with_no_client_auth(), None, None),
            Some((cert, key)) => {
                let certified = certified_key((cert, &cert.read()?), (key, &key.read()?))?;
                let not_after_unix = earliest_end(cert, &certified)?;
                let certificate = Certificate::parse(&certified.cert[0])
                    .map_err(|reason| TlsError::Certificate { file: cert.clone(), number: 1, reason })?;
                let resolver = Arc::new(SingleCertAndKey::from((*certified).clone()));
                (builder.with_client_cert_resolver(resolver), Some(certificate), Some(not_after_unix))
            }
        };
        grpc.alpn_protocols = vec![b"h2".to_vec()];
        Ok(ClientTls { grpc: Arc::new(grpc), certificate, not_after_unix })
    }

    fn not_after_unix(made: &ClientTls) -> Option<i64> {
        made.not_after_unix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::{Authority, Folder};

    #[test]
    fn an_identity_is_optional() {
        let folder = Folder::new();
        let authority = Authority::new("ca");
        let pair = authority.issue(&["host-1"]);
        folder.write("ca", &authority.cert);
        folder.write("cert", &pair.cert);
        folder.write("key", &pair.key);
        let anonymous = folder.client(false).load().unwrap();
        assert_eq!(ClientFiles::not_after_unix(&anonymous), None);
        let named = folder.client(true).load().unwrap();
        assert_eq!(named.certificate.unwrap().node_id(), Some("host-1"));
        folder.write("ca", "rubbish");
        let error = folder.client(true).load().unwrap_err().to_string();
        assert!(error.starts_with("--tls-ca "), "{error}");
    }
}
