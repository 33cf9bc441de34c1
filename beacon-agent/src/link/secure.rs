//! A TLS connection to a Tower, up to the point where both ends have accepted the other.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::{Ready, ready};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::transport::Uri;

use super::dialer::CONNECT_TIMEOUT;

/// How long a Tower may take from the connection to its first words.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection whose other end has spoken. It reads what was said already, and then on.
pub(super) type Connection = BufReader<TlsStream<TcpStream>>;

/// Why there is no such connection.
#[derive(Debug, thiserror::Error)]
pub enum SecureError {
    /// There is no connection at all.
    #[error("it cannot be reached: {0}")]
    Connect(io::Error),
    /// Its name cannot be in a certificate.
    #[error("{0:?} is neither a host name nor an IP address, so no certificate can be for it")]
    Name(String),
    /// One of the two refuses the other's certificate, or does not speak TLS.
    #[error("the TLS handshake failed: {0}")]
    Handshake(io::Error),
    /// It ended the connection without a word.
    #[error("it ended the connection after the TLS handshake")]
    Closed,
    /// It is too slow.
    #[error("the TLS handshake was not done within {} s", HANDSHAKE_TIMEOUT.as_secs())]
    Slow,
}

/// Connects, and waits for Tower's first words. In TLS 1.3 the client's handshake is over before Tower
/// has seen the client's certificate. A client that spoke first would find the connection reset, and
/// the reason lost.
pub(super) async fn connect(tower: &str, config: Arc<ClientConfig>) -> Result<Connection, SecureError> {
    let host = tower.rsplit_once(':').map_or(tower, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|_| SecureError::Name(host.to_owned()))?;
    let tcp = timeout(CONNECT_TIMEOUT, TcpStream::connect(tower))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(SecureError::Connect)?;
    tcp.set_nodelay(true).map_err(SecureError::Connect)?;
    let handshake = async {
        let stream = TlsConnector::from(config).connect(name, tcp).await?;
        let mut connection = BufReader::new(stream);
        let closed = connection.fill_buf().await?.is_empty();
        Ok((connection, closed))
    };
    match timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok((connection, false))) => Ok(connection),
        Ok(Ok((_, true))) => Err(SecureError::Closed),
        Ok(Err(error)) => Err(SecureError::Handshake(error)),
        Err(_) => Err(SecureError::Slow),
    }
}

/// Hands a connection to gRPC, which would make another one when it is lost: that is for the link to
/// decide.
#[derive(Debug)]
pub(super) struct Once(Option<Connection>);

impl Once {
    /// For this connection.
    pub(super) fn new(connection: Connection) -> Self {
        Self(Some(connection))
    }
}

impl tower_service::Service<Uri> for Once {
    type Response = TokioIo<Connection>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connection = self.0.take().map(TokioIo::new);
        ready(connection.ok_or_else(|| io::Error::other("the connection was lost")))
    }
}
