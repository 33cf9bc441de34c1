//! What comes over a socket may be anything. It costs its own connection, and nothing else.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tower_tests::Upstream;

use crate::{
    registrar::Registrar,
    support::{Mesh, answered_by, callers},
};

/// How long an answer is waited for, where a server may rightly wait for more.
const PATIENCE: Duration = Duration::from_millis(500);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A gRPC call of `method`, as raw HTTP/2 frames, whose message is `body`.
fn call(method: &str, body: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    // Literal fields without indexing, with names in full: the plainest form of HPACK.
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        headers.push(0);
        for text in [name, value] {
            headers.push(u8::try_from(text.len()).unwrap_or_default());
            headers.extend_from_slice(text.as_bytes());
        }
    }
    let mut message = vec![0];
    message.extend_from_slice(&u32::try_from(body.len()).unwrap_or_default().to_be_bytes());
    message.extend_from_slice(body);
    let mut bytes = PREFACE.to_vec();
    frame(&mut bytes, 4, 0, 0, &[]);
    frame(&mut bytes, 1, 4, 1, &headers);
    frame(&mut bytes, 0, 1, 1, &message);
    bytes
}

fn frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    bytes.extend_from_slice(&length[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
}

/// Sends this, and reads whatever comes until the server closes or has nothing more to say.
async fn send(address: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    Ok(answer)
}

#[tokio::test]
async fn servers_survive_what_no_client_of_theirs_sends() -> Result<()> {
    const SYNC: &str = "/tower.v1.Sync/Watch";
    const DELTA: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
    const SOTW: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;

    let no_protobuf = [0xff_u8; 64];
    // Field 1 as a length-delimited value that claims to be longer than the message.
    let broken_off = [0x0a, 0x7f, 0x01];
    let mut messages = vec![
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        [PREFACE, &[0xff; 300]].concat(),
        (0..=255).cycle().take(100_000).collect(),
    ];
    for method in [SYNC, DELTA, SOTW, "/no.such.Service/Method"] {
        messages.extend([call(method, &no_protobuf), call(method, &broken_off), call(method, &[])]);
    }
    let sockets = [mesh.tower.grpc(), mesh.tower.http(), mesh.beacon.xds(), mesh.beacon.admin()];
    for address in sockets {
        for message in &messages {
            send(address, message).await?;
        }
    }

    // Both still run, and what is true is still served.
    assert_eq!(mesh.tower.http_get("/healthz").await?.status, 200);
    assert_eq!(mesh.beacon.http_get("/healthz").await?.status, 200);
    registrar.register(alpha.address()).await?;
    answered_by(&callers(&envoys), "web", &["alpha"]).await;
    Ok(())
}
