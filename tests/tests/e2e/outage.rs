//! Hosts keep working when what is above them is gone.

use anyhow::{Result, ensure};
use tower_tests::{Tower, TowerOptions, Upstream, ZooKeeper, eventually};

use crate::{
    registrar::{Format, Registrar, member, payload},
    support::{Mesh, SOON, SourceStatus, answered_by, callers, still_answered_by},
};

/// EmbarkStudios/quilkin#1256: an agent that forgets when its link drops.
#[tokio::test]
async fn b17_tower_dead() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    registrar.register(alpha.address()).await?;
    let mut mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;
    let running = callers(&envoys);
    answered_by(&running, "web", &["alpha"]).await;

    mesh.tower.kill();
    for caller in &running {
        still_answered_by(caller, "web", &["alpha"]).await?;
    }
    let new = mesh.envoys().await?;
    answered_by(&callers(&new), "web", &["alpha"]).await;

    // What happened meanwhile arrives when Tower is back.
    registrar.register(beta.address()).await?;
    mesh.tower.restart().await?;
    answered_by(&running, "web", &["alpha", "beta"]).await;
    answered_by(&callers(&new), "web", &["alpha", "beta"]).await;
    Ok(())
}

#[tokio::test]
async fn beacon_restarted_while_tower_is_dead() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    // Both are known before the Beacon starts, so its first snapshot has them.
    registrar.register(alpha.address()).await?;
    registrar.register(beta.address()).await?;
    let mut mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;
    let running = callers(&envoys);
    answered_by(&running, "web", &["alpha", "beta"]).await;
    eventually(SOON, "the Beacon has a snapshot", async || {
        let written = mesh.beacon.metric("beacon_snapshot_writes_total").await?;
        ensure!(written.is_some_and(|count| count > 0.0), "{written:?} snapshots written");
        Ok(())
    })
    .await;

    mesh.tower.kill();
    mesh.beacon.kill();
    for caller in &running {
        still_answered_by(caller, "web", &["alpha", "beta"]).await?;
    }

    mesh.beacon.restart().await?;
    mesh.beacon.wait_ready(SOON).await?;
    let new = mesh.envoys().await?;
    answered_by(&callers(&new), "web", &["alpha", "beta"]).await;
    for caller in &running {
        still_answered_by(caller, "web", &["alpha", "beta"]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn zookeeper_dead() -> Result<()> {
    let mut zookeeper = ZooKeeper::start().await?;
    let registry = zookeeper.root().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let register = async |name: &str, upstream: &Upstream| {
        let data = payload(Format::Hostport, upstream.address());
        // Not ephemeral: this is about Tower's session, not about theirs.
        registry.create(&member(name), &data).await
    };
    register("one", &alpha).await?;
    let mesh = Mesh::start(registry.discovery(Format::Hostport.name())).await?;
    let envoys = mesh.envoys().await?;
    let running = callers(&envoys);
    answered_by(&running, "web", &["alpha"]).await;

    zookeeper.kill();
    eventually(SOON, "Tower says that its source is not live", async || {
        let state = SourceStatus::of(&mesh.tower).await?.state;
        ensure!(state == "stale" || state == "lost", "it is {state}");
        Ok(())
    })
    .await;
    for caller in &running {
        still_answered_by(caller, "web", &["alpha"]).await?;
    }

    zookeeper.restart().await?;
    register("two", &beta).await?;
    answered_by(&running, "web", &["alpha", "beta"]).await;
    let state = SourceStatus::of(&mesh.tower).await?.state;
    assert_eq!(state, "live");
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_does() -> Result<()> {
    let registrar = Registrar::in_files()?;
    let mut mesh = Mesh::start(registrar.discovery()).await?;
    // With a client each: a drain is to end their streams, not to wait for them.
    let _envoys = mesh.envoys().await?;
    let status = mesh.tower.terminate().await?;
    assert!(status.success(), "tower-server: {status}");
    let status = mesh.beacon.terminate().await?;
    assert!(status.success(), "beacon-agent: {status}");
    Ok(())
}

#[tokio::test]
async fn a_tower_without_its_zookeeper_says_so_and_is_not_ready() -> Result<()> {
    let nowhere = tower_tests::ports::free_address();
    let discovery = vec![format!("zk://{nowhere}/discovery/{{service}}/prod?format=kingpin")];
    let tower = Tower::start(TowerOptions { discovery, ..TowerOptions::default() }).await?;
    let state = SourceStatus::of(&tower).await?.state;
    assert!(state == "loading" || state == "lost", "{state}");
    assert_eq!(tower.http_get("/healthz").await?.status, 200);
    assert_eq!(tower.http_get("/readyz").await?.status, 503);
    Ok(())
}

#[tokio::test]
async fn a_snapshot_with_which_the_beacon_keeps_dying_is_set_aside() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    registrar.register(alpha.address()).await?;
    let mut mesh = Mesh::start(registrar.discovery()).await?;
    let written = async |mesh: &Mesh, at_least: f64| {
        eventually(SOON, format!("{at_least} snapshots are written"), async || {
            let written = mesh.beacon.metric("beacon_snapshot_writes_total").await?;
            ensure!(written.is_some_and(|count| count >= at_least), "{written:?}");
            Ok(())
        })
        .await;
    };
    written(&mesh, 1.0).await;
    let beta = Upstream::start("beta").await?;
    registrar.register(beta.address()).await?;
    written(&mesh, 2.0).await;
    mesh.tower.kill();
    // It is asked to stop while it is ready: nothing is known against its snapshot.
    mesh.beacon.terminate().await?;

    let set_aside = async |mesh: &Mesh| mesh.beacon.metric("beacon_snapshots_rejected_total").await;
    for _ in 0..3 {
        mesh.beacon.restart().await?;
        mesh.beacon.wait_ready(SOON).await?;
        assert_eq!(set_aside(&mesh).await?, Some(0.0));
        mesh.beacon.kill();
    }
    mesh.beacon.restart().await?;
    mesh.beacon.wait_ready(SOON).await?;
    assert_eq!(set_aside(&mesh).await?, Some(1.0));
    let page = mesh.beacon.http_get("/").await?.ok()?.body;
    assert!(page.contains("SET ASIDE") && page.contains("3 starts in a row did not become ready"), "{page}");
    // The one before it, which does not know of beta yet.
    let envoys = mesh.envoys().await?;
    answered_by(&callers(&envoys), "web", &["alpha"]).await;
    // And it is not held against that one.
    mesh.beacon.kill();
    mesh.beacon.restart().await?;
    assert_eq!(set_aside(&mesh).await?, Some(0.0));
    Ok(())
}
