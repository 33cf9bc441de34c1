//! Peers that are quiet, and peers that are dead.

use std::time::Duration;

use anyhow::{Result, ensure};
use beacon_agent::{
    options::XdsMode,
    xds::{Keepalive, ResourceType},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::transport::Endpoint;
use tower_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use tower_tests::{Upstream, eventually, rounds};

use crate::{
    envoy::{Mesh, SOON, answered, envoy},
    support::{World, asking, composition, delta, within},
};

/// Speaks HTTP/2 by hand: opens a connection, and never answers a ping.
#[tokio::test]
async fn b20_a_dead_peer_is_noticed_and_freed() {
    let keepalive = Keepalive { interval: Duration::from_millis(200), timeout: Duration::from_millis(200) };
    let world = World::with_keepalive(composition(&[("a", 0)]), keepalive).await;
    let mut alive = world.delta().await;
    alive.send(delta(ResourceType::Cluster, &[])).await;
    alive.next().await;

    let mut dead = TcpStream::connect(world.address).await.unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    dead.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    dead.write_all(&settings).await.unwrap();
    let mut sink = Vec::new();
    within(dead.read_to_end(&mut sink)).await.ok();

    // Whoever answers stays, however quiet, and gets the next change.
    tokio::time::sleep(keepalive.interval * 5).await;
    world.compositions.send(composition(&[("b", 0)])).unwrap();
    assert_eq!(alive.next().await.resources[0].name, "b");
}

/// envoyproxy/go-control-plane#449: a client's pings are nobody's offence.
#[tokio::test]
async fn b20_a_client_may_ping_as_often_as_it_likes() {
    let world = World::new(composition(&[("a", 0)])).await;
    // 400 pings; or, if there is time, a quarter of an hour without a word.
    let interval = Duration::from_millis(rounds(5, 10_000) as u64);
    let quiet = Duration::from_secs(rounds(2, 15 * 60) as u64);
    let channel = Endpoint::from_shared(format!("http://{}", world.address))
        .unwrap()
        .http2_keep_alive_interval(interval)
        .keep_alive_while_idle(true)
        .connect()
        .await
        .unwrap();
    let mut client = AggregatedDiscoveryServiceClient::new(channel);
    let request = delta(ResourceType::Cluster, &[]);
    let mut stream = client.delta_aggregated_resources(asking(request)).await.unwrap().into_inner();
    within(stream.message()).await.unwrap().unwrap();
    tokio::time::sleep(quiet).await;
    world.compositions.send(composition(&[("a", 0), ("b", 0)])).unwrap();
    // The first response was never answered, and clusters are held back for 0.5 s.
    assert_eq!(within(stream.message()).await.unwrap().unwrap().resources[0].name, "b");
}

/// A client that is stopped where it is, with all its connections.
#[tokio::test]
async fn b20_a_frozen_envoy_is_freed_in_time_and_others_go_on() -> Result<()> {
    // What a Beacon has takes 50 s.
    let short = Keepalive { interval: Duration::from_secs(1), timeout: Duration::from_secs(1) };
    let keepalive = [short, Keepalive::default()][rounds(0, 1)];
    let alpha = Upstream::start("alpha").await?;
    let world = World::with_keepalive(Mesh::new(&[("a", &alpha)]).composition, keepalive).await;
    let (frozen, other) = (envoy(&world, XdsMode::Delta).await?, envoy(&world, XdsMode::Sotw).await?);
    for envoy in [&frozen, &other] {
        answered(envoy, &[("a", "alpha")]).await;
    }
    world.clients_are(|clients| clients.len() == 2).await;

    frozen.freeze().await?;
    // Others are served meanwhile.
    world.compositions.send(Mesh::new(&[("a", &alpha), ("b", &alpha)]).composition)?;
    answered(&other, &[("b", "alpha")]).await;
    let freed = keepalive.interval + keepalive.timeout + Duration::from_secs(10);
    eventually(freed, "its stream is gone", async || {
        let clients = world.clients.snapshot().len();
        ensure!(clients == 1, "{clients}");
        Ok(())
    })
    .await;
    assert_eq!(world.metric("xds_streams{mode=\"delta\"}"), "0");

    world.compositions.send(Mesh::new(&[("a", &alpha), ("c", &alpha)]).composition)?;
    frozen.thaw().await?;
    for envoy in [&frozen, &other] {
        answered(envoy, &[("a", "alpha"), ("c", "alpha")]).await;
        eventually(SOON, "b is gone", async || {
            let status = envoy.caller(tower_tests::Protocol::Http1).get("b").await?.status;
            ensure!(status == 404, "{status}");
            Ok(())
        })
        .await;
    }
    Ok(())
}
