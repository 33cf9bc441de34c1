//! The HTTP/2 server around the services.

use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tonic::{
    service::Routes,
    transport::{Error, Server, server::Connected},
};

/// Streams of one connection. Without aggregation an Envoy has one for the endpoints of each cluster.
const MAX_STREAMS: u32 = 16_384;

/// How a dead peer is noticed: by a ping that it does not answer. Nothing is held against peers that
/// ping themselves, however often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// How long a connection may be silent before it is asked.
    pub interval: Duration,
    /// How long the answer may take.
    pub timeout: Duration,
}

impl Default for Keepalive {
    /// A dead peer's streams are gone after 50 s.
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), timeout: Duration::from_secs(20) }
    }
}

/// Serves until `stopping`, and then until the streams that are open have ended.
///
/// # Errors
/// If connections cannot be accepted any more.
pub async fn serve<I, IO, E>(
    incoming: I,
    routes: Routes,
    keepalive: Keepalive,
    stopping: CancellationToken,
) -> Result<(), Error>
where
    I: Stream<Item = Result<IO, E>>,
    IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
    IO::ConnectInfo: Clone + Send + Sync + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Server::builder()
        .http2_keepalive_interval(Some(keepalive.interval))
        .http2_keepalive_timeout(Some(keepalive.timeout))
        .max_concurrent_streams(MAX_STREAMS)
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming, stopping.cancelled_owned())
        .await
}
