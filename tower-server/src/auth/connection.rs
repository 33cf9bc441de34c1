//! The client certificate of a connection: read once, when the connection is made.

use std::{any::Any, net::SocketAddr};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::{dev::Extensions, rt::net::TcpStream};
use tower_common::tls::Certificate;

/// The names in the client certificate of a connection, which the handshake has verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateNames(pub Vec<String>);

/// Notes what requests on a connection need to know of it.
pub fn note(connection: &dyn Any, extensions: &mut Extensions) {
    let Some(tls) = connection.downcast_ref::<TlsStream<TcpStream>>() else { return };
    let (peer, session) = tls.get_ref();
    let Some(first) = session.peer_certificates().and_then(|chain| chain.first()) else { return };
    match Certificate::parse(first) {
        Ok(certificate) => {
            extensions.insert(CertificateNames(certificate.names().to_vec()));
        }
        // A certificate that cannot be read is none: its bearer may do nothing.
        Err(reason) => {
            let peer: Option<SocketAddr> = peer.peer_addr().ok();
            tracing::warn!(?peer, reason, "a client certificate cannot be read");
        }
    }
}
