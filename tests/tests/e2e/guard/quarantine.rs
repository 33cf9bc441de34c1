//! Ensembles that come back with another tree, an older one, or none.

use anyhow::{Result, ensure};
use serde_json::json;
use tower_tests::{Beacon, BeaconOptions, Mode, Protocol, Tower, Upstream, ZooKeeper, eventually};

use super::{answered_by_nobody, list, options, quarantine};
use crate::{
    registrar::{Format, SERVICE, member, payload},
    support::{Mesh, SOON, SourceStatus, answered_by, callers, still_answered_by},
};

const ADOPT: &str = "/api/v1/sources/zk/adopt";

/// Waits for a quarantine whose reason has these words.
async fn quarantined(tower: &Tower, words: &str) -> serde_json::Value {
    eventually(SOON, format!("what is found is quarantined: {words}"), async || {
        let quarantine = quarantine(tower).await?;
        let reason = quarantine["reason"].as_str().unwrap_or_default().to_owned();
        ensure!(reason.contains(words) && reason.contains(ADOPT), "{reason}");
        ensure!(SourceStatus::of(tower).await?.state == "stale", "it is not stale");
        Ok(quarantine)
    })
    .await
}

#[tokio::test]
async fn a_root_that_is_deleted_takes_nothing_with_it_until_that_is_adopted() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let alpha = Upstream::start("alpha").await?;
    registry.create(&member("one"), &payload(Format::Hostport, alpha.address())).await?;
    // The shortest hold: what keeps the endpoint is not the guard alone.
    let mesh = Mesh::with(options(&registry.discovery("hostport"), "10s")).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, SERVICE, &["alpha"]).await;

    registry.delete_all("discovery").await?;
    quarantined(&mesh.tower, "is gone, or was never made").await;
    for caller in &callers {
        still_answered_by(caller, SERVICE, &["alpha"]).await?;
    }
    assert_eq!(mesh.tower.metric("tower_source_quarantined").await?, Some(1.0));

    for (body, status) in [
        (json!({}), 428),
        (json!({ "incarnation": "another" }), 412),
        (json!({ "incarnation": 7 }), 400),
        (json!({ "carnation": "none" }), 400),
    ] {
        let reply = mesh.tower.http_post(ADOPT, &body).await?;
        assert_eq!(reply.status, status, "{body}: {}", reply.body);
    }
    let adopted = json!({ "incarnation": "none", "reason": "the mesh moved elsewhere" });
    mesh.tower.http_post(ADOPT, &adopted).await?.ok()?;
    answered_by_nobody(&callers, SERVICE).await;
    assert_eq!(mesh.tower.http_post(ADOPT, &adopted).await?.status, 409);
    assert!(mesh.tower.log().contains("the mesh moved elsewhere"));
    Ok(())
}

#[tokio::test]
async fn an_ensemble_that_was_set_up_anew_is_quarantined_over_restarts_and_adopted() -> Result<()> {
    let mut zookeeper = ZooKeeper::start().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let register = async |zookeeper: &ZooKeeper, upstream: &Upstream| {
        let registry = zookeeper.unrooted().await?;
        registry.create(&member(upstream.name()), &payload(Format::Hostport, upstream.address())).await?;
        anyhow::Ok(registry)
    };
    let registry = register(&zookeeper, &alpha).await?;
    let mut mesh = Mesh::with(options(&registry.discovery("hostport"), "1s")).await?;
    let envoys = mesh.envoys().await?;
    let running = callers(&envoys);
    answered_by(&running, SERVICE, &["alpha"]).await;
    super::kept(&mesh.tower, "zk.snapshot", "alpha").await;

    zookeeper.kill();
    zookeeper.roll_back(None)?;
    zookeeper.restart().await?;
    quarantined(&mesh.tower, "is gone, or was never made").await;
    let new = register(&zookeeper, &beta).await?;
    quarantined(&mesh.tower, "was read before").await;
    mesh.tower.kill();
    mesh.tower.restart().await?;
    mesh.tower.wait_ready(SOON).await?;
    let found = quarantined(&mesh.tower, "was read before").await;
    for caller in &running {
        still_answered_by(caller, SERVICE, &["alpha"]).await?;
    }
    let cold = Beacon::start(BeaconOptions::of(mesh.tower.grpc())).await?;
    cold.wait_ready(SOON).await?;
    let envoy = cold.envoy(Mode::Delta).await?;
    answered_by(&[envoy.caller(Protocol::Http1)], SERVICE, &["alpha"]).await;

    let adopted = mesh.tower.http_post(ADOPT, &json!({ "incarnation": found["incarnation"] })).await?;
    adopted.ok()?;
    // What was acknowledged is true after a kill at once, too.
    mesh.tower.kill();
    mesh.tower.restart().await?;
    answered_by(&running, SERVICE, &["beta"]).await;
    assert!(list(&mesh.tower, "quarantines").await?.is_empty());
    new.close().await
}

#[tokio::test]
async fn an_ensemble_that_was_restored_from_a_backup_is_quarantined_and_adopted() -> Result<()> {
    let mut zookeeper = ZooKeeper::start().await?;
    let registry = zookeeper.unrooted().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let register = async |upstream: &Upstream| {
        registry.create(&member(upstream.name()), &payload(Format::Hostport, upstream.address())).await
    };
    register(&alpha).await?;
    let backup = tempfile::tempdir()?;
    zookeeper.kill();
    zookeeper.back_up(backup.path())?;
    zookeeper.restart().await?;
    register(&beta).await?;
    let mesh = Mesh::with(options(&registry.discovery("hostport"), "1s")).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, SERVICE, &["alpha", "beta"]).await;

    zookeeper.kill();
    zookeeper.roll_back(Some(backup.path()))?;
    zookeeper.restart().await?;
    let found = quarantined(&mesh.tower, "older than it was").await;
    for caller in &callers {
        still_answered_by(caller, SERVICE, &["alpha", "beta"]).await?;
    }
    let adopted = mesh.tower.http_post(ADOPT, &json!({ "incarnation": found["incarnation"] })).await?;
    let position = adopted.ok()?.json()?["position"].clone();
    assert!(position["incarnation"].as_str().is_some_and(|name| name.ends_with("+1")), "{position}");
    answered_by(&callers, SERVICE, &["alpha"]).await;
    assert_eq!(SourceStatus::of(&mesh.tower).await?.state, "live");
    Ok(())
}
