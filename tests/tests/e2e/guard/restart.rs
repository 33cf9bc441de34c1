//! A Tower that restarts while its source is dead.

use anyhow::{Result, ensure};
use tower_tests::{Beacon, BeaconOptions, Mode, Protocol, Upstream, ZooKeeper, eventually};

use super::{kept, list, options};
use crate::{
    registrar::{Format, SERVICE, member, payload},
    support::{Mesh, SOON, answered_by, callers},
};

#[tokio::test]
async fn the_last_good_state_is_served_to_a_new_beacon() -> Result<()> {
    let mut zookeeper = ZooKeeper::start().await?;
    let registry = zookeeper.root().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    registry.create(&member("alpha"), &payload(Format::Hostport, alpha.address())).await?;
    let mut mesh = Mesh::with(options(&registry.discovery("hostport"), "60s")).await?;
    kept(&mesh.tower, "zk.snapshot", "alpha").await;

    zookeeper.kill();
    mesh.tower.kill();
    mesh.tower.restart().await?;
    mesh.tower.wait_ready(SOON).await?;
    let source = list(&mesh.tower, "sources").await?.remove(0);
    assert!(source["state"] == "stale" || source["state"] == "lost", "{source}");
    assert!(source["position"]["index"].as_u64().is_some_and(|index| index > 0), "{source}");

    let cold = Beacon::start(BeaconOptions::of(mesh.tower.grpc())).await?;
    cold.wait_ready(SOON).await?;
    let envoy = cold.envoy(Mode::Delta).await?;
    let caller = [envoy.caller(Protocol::Http1)];
    answered_by(&caller, SERVICE, &["alpha"]).await;

    // When the ensemble is back, so is what happened meanwhile.
    zookeeper.restart().await?;
    registry.create(&member("beta"), &payload(Format::Hostport, beta.address())).await?;
    answered_by(&caller, SERVICE, &["alpha", "beta"]).await;
    let envoys = mesh.envoys().await?;
    answered_by(&callers(&envoys), SERVICE, &["alpha", "beta"]).await;
    eventually(SOON, "the source is live", async || {
        let sources = list(&mesh.tower, "sources").await?;
        ensure!(sources[0]["state"] == "live", "{sources:?}");
        Ok(())
    })
    .await;
    Ok(())
}
