//! The other end of a connection, and which node it may be.

use std::net::SocketAddr;

use http::Extensions;
use tonic::{
    Status,
    transport::server::{TcpConnectInfo, TlsConnectInfo},
};
use tower_common::tls::Certificate;

/// What is known of a Beacon before it says anything.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its address.
    pub(super) address: Option<SocketAddr>,
    /// Its certificate, which the handshake has verified, or why that cannot be read.
    certificate: Option<Result<Certificate, String>>,
}

impl Peer {
    /// Of a request, from what the server has noted at the connection.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let Some(tls) = extensions.get::<TlsConnectInfo<TcpConnectInfo>>() else {
            let tcp = extensions.get::<TcpConnectInfo>();
            return Self { address: tcp.and_then(TcpConnectInfo::remote_addr), certificate: None };
        };
        let chain = tls.peer_certs();
        let certificate = chain.as_ref().and_then(|chain| chain.first()).map(Certificate::parse);
        Self { address: tls.get_ref().remote_addr(), certificate }
    }

    /// Whether it may be this node. Without a client certificate, and without names in it, it may be any.
    pub(super) fn check(&self, node_id: &str) -> Result<(), Status> {
        match &self.certificate {
            None => Ok(()),
            Some(Ok(certificate)) if certificate.is_for(node_id) => Ok(()),
            Some(Ok(certificate)) => Err(Status::permission_denied(format!(
                "the hello is from the node {}, and the client certificate is for {}",
                node_id.escape_debug(),
                certificate.names().join(", ")
            ))),
            Some(Err(reason)) => {
                Err(Status::permission_denied(format!("the client certificate cannot be read: {reason}")))
            }
        }
    }
}
