//! A TCP proxy that fails on demand, between a server and its client.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// What happens to what comes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it passes.
    None,
    /// It waits, in both directions, and new connections are accepted and wait too: a server that hangs.
    Frozen,
    /// What comes from the client passes, and what comes from the server waits: answers that are lost.
    Mute,
    /// Connections end at once: a server that is gone.
    Cut,
}

/// A proxy, gone when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
    connections: Arc<AtomicU64>,
    listener: JoinHandle<()>,
}

impl Proxy {
    /// A proxy in front of this address.
    pub async fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for a proxy")?;
        let address = listener.local_addr()?;
        let (fault, watched) = watch::channel(Fault::None);
        let connections = Arc::new(AtomicU64::new(0));
        let count = connections.clone();
        let listener = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(connection(client, upstream, watched.clone()));
            }
        });
        Ok(Self { address, fault, connections, listener })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on this happens to everything.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// How many connections there have been.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
        self.fault.send_replace(Fault::Cut);
    }
}

async fn connection(client: TcpStream, upstream: SocketAddr, fault: watch::Receiver<Fault>) {
    if !passes(&mut fault.clone(), &[Fault::Frozen]).await {
        return;
    }
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    // Whichever direction ends ends the connection.
    tokio::select! {
        () = copy(client_read, server_write, fault.clone(), &[Fault::Frozen]) => {}
        () = copy(server_read, client_write, fault, &[Fault::Frozen, Fault::Mute]) => {}
    }
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut fault: watch::Receiver<Fault>,
    held_by: &[Fault],
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            cut = fault.wait_for(|fault| *fault == Fault::Cut) => {
                drop(cut);
                return;
            }
        };
        let Ok(length @ 1..) = read else { return };
        if !passes(&mut fault, held_by).await || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// Waits while there is one of these faults; false if cut.
async fn passes(fault: &mut watch::Receiver<Fault>, held_by: &[Fault]) -> bool {
    let passing = fault.wait_for(|fault| !held_by.contains(fault)).await;
    passing.is_ok_and(|fault| *fault != Fault::Cut)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Protocol, Upstream, eventually, http};

    #[tokio::test]
    async fn it_passes_freezes_and_cuts() -> Result<()> {
        let upstream = Upstream::start("behind").await?;
        let proxy = Proxy::start(upstream.address()).await?;
        let ask = async || http::get(proxy.address(), Protocol::Http1, "h", "/").await;
        assert_eq!(ask().await?.body, "behind");
        proxy.set(Fault::Cut);
        assert!(ask().await.is_err());
        proxy.set(Fault::Frozen);
        let through = proxy.address();
        let asked = tokio::spawn(async move { http::get(through, Protocol::Http1, "h", "/").await });
        eventually(Duration::from_secs(5), "it accepts", async || {
            anyhow::ensure!(proxy.connections() == 3, "{} connections", proxy.connections());
            Ok(())
        })
        .await;
        assert_eq!(upstream.requests(), 1, "nothing has passed");
        proxy.set(Fault::None);
        assert_eq!(asked.await??.body, "behind");
        Ok(())
    }
}
