//! Connecting to a Tower, with TLS or without.

use std::{error::Error, time::Duration};

use tonic::transport::{Channel, Endpoint};
use tower_common::tls::{ClientFiles, Reloading};
use tower_proto::v1;

use super::secure::{self, Once, SecureError};

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// What Tower may send before the Beacon has read it.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// Connects to Towers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Dialer {
    tls: Option<Reloading<ClientFiles>>,
    named: bool,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The files of the flags cannot be used.
    #[error("TLS files cannot be used: {0}")]
    Files(String),
    /// Tower cannot be reached by TLS.
    #[error("{0}")]
    Secure(#[from] SecureError),
    /// Tower cannot be reached.
    #[error("it cannot be reached: {}", chain(.0))]
    Connect(#[from] tonic::transport::Error),
}

impl Dialer {
    /// With these files for TLS, if there are any. `named` is whether the operator has said which node
    /// this is.
    pub fn new(tls: Option<Reloading<ClientFiles>>, named: bool) -> Self {
        Self { tls, named }
    }

    /// The node as Tower is to know it: by the name in its certificate, if nobody has named it.
    pub fn introduce(&self, node: &v1::Node) -> v1::Node {
        let mut node = node.clone();
        if !self.named
            && let Some(tls) = self.tls.as_ref().and_then(|tls| tls.current().ok())
            && let Some(id) = tls.certificate.as_ref().and_then(|certificate| certificate.node_id())
        {
            id.clone_into(&mut node.id);
        }
        node
    }

    /// A connection to this Tower, whose certificate must be for the host that is named here.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn connect(&self, tower: &str) -> Result<Channel, DialError> {
        // With TLS as well, which is made below what gRPC sees of the connection.
        let endpoint = Endpoint::from_shared(format!("http://{tower}"))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(STREAM_WINDOW_BYTES);
        let Some(tls) = &self.tls else { return Ok(endpoint.connect().await?) };
        let files = tls.current().map_err(DialError::Files)?;
        let connection = secure::connect(tower, files.grpc.clone()).await?;
        Ok(endpoint.connect_with_connector(Once::new(connection)).await?)
    }
}

/// An error with all its causes: gRPC's own words for a refused certificate are "transport error". A
/// cause that only repeats what was said is left out.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn all_causes_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("transport error")]
        struct Outer(#[source] io::Error);
        let error = Outer(io::Error::other("unknown CA"));
        assert_eq!(chain(&error), "transport error: unknown CA");
        assert_eq!(chain(&io::Error::other("once")), "once");
    }

    #[tokio::test]
    async fn files_that_are_missing_are_named() {
        let ca = tower_common::tls::TlsFile::new("--tls-ca", "/not/there");
        let dialer = Dialer::new(Some(Reloading::new(ClientFiles { ca, identity: None })), false);
        let error = dialer.connect("localhost:1").await.unwrap_err().to_string();
        assert!(error.contains("--tls-ca /not/there cannot be read"), "{error}");
    }
}
