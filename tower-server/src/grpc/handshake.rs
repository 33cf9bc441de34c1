//! TLS handshakes of accepted connections.

use std::{io, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, future};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tower_common::tls::{Reloading, ServerFiles};
use tracing::debug;

use crate::fanout::beacons::Beacons;

/// Handshakes under way; more connections wait to be accepted. It bounds what those cost who connect and
/// say nothing.
const AT_ONCE: usize = 1024;

/// How long a handshake may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// These connections, each after its handshake, in the order in which they are done. Those whose handshake
/// fails are noted, and left out.
pub(super) fn secured(
    incoming: impl Stream<Item = io::Result<TcpStream>>,
    tls: Reloading<ServerFiles>,
    beacons: Arc<Beacons>,
) -> impl Stream<Item = io::Result<TlsStream<TcpStream>>> {
    incoming
        // On tasks of their own, so that all threads take part when all Beacons come at once.
        .map(move |tcp| tokio::spawn(handshake(tcp, tls.clone(), beacons.clone())))
        .buffer_unordered(AT_ONCE)
        .filter_map(|joined| future::ready(joined.unwrap_or_default()))
}

async fn handshake(
    tcp: io::Result<TcpStream>,
    tls: Reloading<ServerFiles>,
    beacons: Arc<Beacons>,
) -> Option<io::Result<TlsStream<TcpStream>>> {
    let tcp = match tcp {
        Ok(tcp) => tcp,
        Err(error) => return Some(Err(error)),
    };
    let peer = tcp.peer_addr().ok();
    let refuse = |reason: &str| {
        beacons.refusals().handshake(peer, reason);
        None
    };
    // Taken anew for each: connections that are up keep what they began with.
    let config = match tls.current() {
        Ok(made) => made.grpc.clone(),
        Err(reason) => return refuse(&reason),
    };
    match timeout(TIMEOUT, TlsAcceptor::from(config).accept(tcp)).await {
        Ok(Ok(stream)) => Some(Ok(stream)),
        // A probe of the port, or a Beacon that went away: nobody was refused.
        Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            debug!(?peer, "a connection ended before its handshake");
            None
        }
        Ok(Err(error)) => refuse(&error.to_string()),
        Err(_) => refuse("the TLS handshake was not done in time"),
    }
}
