//! Services that speak no HTTP.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use tower_tests::{eventually, ports};

use super::rig::{Instance, Rig};
use crate::support::SOON;

/// A server that answers each byte with its own letter.
struct Letter {
    address: SocketAddr,
    accept: JoinHandle<()>,
}

impl Letter {
    async fn start(letter: u8) -> Result<Self> {
        let listener = TcpListener::bind(ports::free_address()).await?;
        let address = listener.local_addr()?;
        let accept = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).await.is_ok() {
                        if stream.write_all(&[letter]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Ok(Self { address, accept })
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Sends a byte, and returns what comes back; nothing if the connection is closed.
async fn exchange(stream: &mut TcpStream) -> Result<Option<u8>> {
    stream.write_all(b"?").await?;
    let mut byte = [0];
    let read = timeout(SOON, stream.read(&mut byte)).await.context("no answer")?;
    // A reset is as good as an end.
    Ok((read.unwrap_or(0) > 0).then_some(byte[0]))
}

async fn ask(at: SocketAddr) -> Result<Option<u8>> {
    exchange(&mut TcpStream::connect(at).await?).await
}

#[tokio::test]
async fn a_dependency_has_a_local_port() -> Result<()> {
    let database = Letter::start(b'd').await?;
    let port = ports::free_address();
    let unreachable = Instance::at(ports::free_address());
    let spec = format!("outbound: {{dependencies: [{{service: db, listen: {}}}]}}", port.port());
    let _running = Rig::default()
        .service("web", &spec, &[])?
        .service("db", "callers: {protocol: tcp}", &[Instance::at(database.address), unreachable])?
        .start()
        .await?;
    for _ in 0..6 {
        let mut stream = TcpStream::connect(port).await?;
        for _ in 0..3 {
            assert_eq!(exchange(&mut stream).await?, Some(b'd'), "who cannot be reached is passed over");
        }
    }
    Ok(())
}

#[tokio::test]
async fn connections_to_the_application_are_limited_and_their_callers_checked() -> Result<()> {
    let database = Letter::start(b'd').await?;
    let (open, limited, closed, shadow) =
        (ports::free_address(), ports::free_address(), ports::free_address(), ports::free_address());
    let spec = |at: SocketAddr, more: &str| {
        format!(
            "inbound: {{ports: [{{name: db, port: {}, appPort: {}, protocol: tcp}}]{more}}}",
            at.port(),
            database.address.port()
        )
    };
    let nobody = "rules: [{name: far, addresses: [192.0.2.0/24]}]";
    let running = Rig::default()
        .service(
            "open",
            &spec(open, ", allowedCallers: {rules: [{name: near, addresses: [127.0.0.0/8]}]}"),
            &[],
        )?
        .service("limited", &spec(limited, ", rateLimits: {local: {requests: 2, interval: 1h}}"), &[])?
        .service("closed", &spec(closed, &format!(", allowedCallers: {{{nobody}}}")), &[])?
        .service("shadow", &spec(shadow, &format!(", allowedCallers: {{mode: shadow, {nobody}}}")), &[])?
        .start()
        .await?;
    assert_eq!(ask(open).await?, Some(b'd'));
    let answers = [ask(limited).await?, ask(limited).await?, ask(limited).await.unwrap_or(None)];
    assert_eq!(answers, [Some(b'd'), Some(b'd'), None]);
    assert_eq!(ask(closed).await.unwrap_or(None), None);
    assert_eq!(ask(shadow).await?, Some(b'd'));
    eventually(SOON, "it is counted who would have been refused", async || {
        let denied = running.envoy.stat("inbound_shadow_db.rbac.shadow_denied").await?;
        ensure!(denied == Some(1), "{denied:?}");
        Ok(())
    })
    .await;
    Ok(())
}
