//! A Beacon that goes from one Tower to the next before the stream of the first ends: changes arrive all
//! the while.

use anyhow::{Context, Result, ensure};
use tower_tests::{
    Beacon, BeaconOptions, Fault, Mode, Protocol, Proxy, Registry, Tower, TowerOptions, Upstream, ZooKeeper,
    eventually,
};

use crate::{
    registrar::{Format, SERVICE, member, payload},
    support::{SOON, answered_by},
};

/// What a Beacon logs that has no stream and no other in prospect.
const GAP: &str = "no stream from Tower";

/// Two Towers of the same registry, each behind a proxy, and a Beacon of both.
struct World {
    registry: Registry,
    towers: [Tower; 2],
    proxies: [Proxy; 2],
    beacon: Beacon,
}

impl World {
    async fn start(flags: &[&str]) -> Result<Self> {
        let registry = ZooKeeper::shared().await?.root().await?;
        registry.create(&format!("discovery/{SERVICE}/prod"), b"").await?;
        let tower = async || {
            let tower = Tower::start(TowerOptions {
                discovery: vec![registry.discovery(Format::Hostport.name()) + "&id=zk"],
                flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
                ..TowerOptions::default()
            });
            let tower = tower.await?;
            tower.wait_ready(SOON).await?;
            anyhow::Ok(tower)
        };
        let towers = [tower().await?, tower().await?];
        let proxies = [Proxy::start(towers[0].grpc()).await?, Proxy::start(towers[1].grpc()).await?];
        let tower = proxies.iter().map(|proxy| proxy.address().to_string()).collect();
        let beacon = Beacon::start(BeaconOptions { tower, ..BeaconOptions::default() }).await?;
        beacon.wait_ready(SOON).await?;
        Ok(Self { registry, towers, proxies, beacon })
    }
}

async fn register(registry: &Registry, upstream: &Upstream) -> Result<()> {
    registry.create(&member(upstream.name()), &payload(Format::Hostport, upstream.address())).await
}

/// The number of the Tower that a Beacon follows.
async fn followed(beacon: &Beacon, proxies: &[Proxy; 2]) -> Result<usize> {
    let status = beacon.http_get("/status").await?.ok()?.json()?;
    let connected =
        status["link"]["connected"].as_str().with_context(|| format!("not connected: {status}"))?;
    let number = proxies.iter().position(|proxy| proxy.address().to_string() == connected);
    number.with_context(|| format!("{connected} is no Tower"))
}

async fn hand_overs(beacon: &Beacon) -> Result<f64> {
    beacon.metric("beacon_link_hand_overs_total").await?.context("no such metric")
}

#[tokio::test]
async fn changes_arrive_while_a_tower_drains_and_after_it() -> Result<()> {
    let World { registry, mut towers, proxies, beacon } = World::start(&[]).await?;
    let upstreams =
        [Upstream::start("alpha").await?, Upstream::start("beta").await?, Upstream::start("gamma").await?];
    let envoy = beacon.envoy(Mode::Delta).await?;
    let caller = [envoy.caller(Protocol::Http1)];
    register(&registry, &upstreams[0]).await?;
    answered_by(&caller, SERVICE, &["alpha"]).await;

    let old = eventually(SOON, "it is connected", async || followed(&beacon, &proxies).await).await;
    let next = 1 - old;
    // The next one accepts connections, and says nothing: only the old one can bring news.
    proxies[next].set(Fault::Frozen);
    let story = async {
        eventually(SOON, "the old Tower says goodbye", async || {
            ensure!(beacon.log().contains("Tower says goodbye"), "it has not");
            Ok(())
        })
        .await;
        register(&registry, &upstreams[1]).await?;
        answered_by(&caller, SERVICE, &["alpha", "beta"]).await;
        ensure!(followed(&beacon, &proxies).await? == old, "it follows the Tower that says nothing");
        proxies[next].set(Fault::None);
        anyhow::Ok(())
    };
    let (ended, told) = tokio::join!(towers[old].terminate(), story);
    told?;
    ensure!(ended?.success(), "the old Tower did not end in good order");
    ensure!(!towers[old].log().contains("did not end in time"), "streams were cut");
    eventually(SOON, "the next Tower is followed", async || {
        ensure!(followed(&beacon, &proxies).await? == next, "it is not");
        Ok(())
    })
    .await;
    ensure!(!beacon.log().contains(GAP), "there was a gap: {}", beacon.log());
    ensure!(hand_overs(&beacon).await? == 1.0, "{} hand-overs", hand_overs(&beacon).await?);

    register(&registry, &upstreams[2]).await?;
    answered_by(&caller, SERVICE, &["alpha", "beta", "gamma"]).await;
    eventually(SOON, "the Beacon has what its Tower has, and has said so", async || {
        let status = beacon.http_get("/status").await?.ok()?.json()?;
        ensure!(status["mirror"]["equal_to_tower"] == true, "{status}");
        let beacons = towers[next].http_get("/api/v1/beacons").await?.ok()?.json()?;
        ensure!(beacons["beacons"][0]["revision"] == status["mirror"]["revision"], "{beacons}");
        Ok(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn streams_that_grow_old_go_from_tower_to_tower_without_a_gap() -> Result<()> {
    let World { registry, towers: _towers, proxies, beacon } = World::start(&["--stream-age=1s"]).await?;
    let upstreams = [Upstream::start("alpha").await?, Upstream::start("beta").await?];
    let envoy = beacon.envoy(Mode::Delta).await?;
    let caller = [envoy.caller(Protocol::Http1)];
    register(&registry, &upstreams[0]).await?;
    answered_by(&caller, SERVICE, &["alpha"]).await;
    let mut followed_by_turns = [false; 2];
    while hand_overs(&beacon).await? < 5.0 {
        followed_by_turns[followed(&beacon, &proxies).await?] = true;
        register(&registry, &upstreams[1]).await?;
        answered_by(&caller, SERVICE, &["alpha", "beta"]).await;
        registry.delete(&member("beta")).await?;
        answered_by(&caller, SERVICE, &["alpha"]).await;
    }
    ensure!(followed_by_turns == [true; 2], "only one Tower was followed");
    ensure!(!beacon.log().contains(GAP), "there was a gap: {}", beacon.log());
    Ok(())
}
