//! The gRPC listener: sockets, TLS handshakes, and the server over them.

mod handshake;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::TcpIncoming};
use tower_common::tls::{Reloading, ServerFiles};

use crate::fanout::{beacons::Beacons, service::SyncService};

/// What one connection may have in the kernel's send buffer: it bounds what a Beacon costs that does not
/// read.
const SEND_BUFFER_BYTES: u32 = 128 << 10;

/// Connections that wait to be accepted, when all Beacons come at once.
const BACKLOG: u32 = 4096;

/// The listening socket. Accepted connections inherit the size of its send buffer.
///
/// # Errors
/// If the address is taken, or is not of this host.
pub fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let bind = || -> io::Result<_> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().with_context(|| format!("--grpc-listen {address} cannot be bound"))
}

/// Serves until it is time to stop, and all streams have ended.
///
/// # Errors
/// If the server fails.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Reloading<ServerFiles>>,
    beacons: Arc<Beacons>,
    sync: SyncService,
    stopping: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let server = Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)))
        .add_service(sync);
    let stopped = stopping.cancelled_owned();
    match tls {
        None => server.serve_with_incoming_shutdown(incoming, stopped).await,
        Some(tls) => {
            let secured = handshake::secured(incoming, tls, beacons);
            server.serve_with_incoming_shutdown(secured, stopped).await
        }
    }
}
