//! Shrinks that are held, and those that are not.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;
use tower_tests::{Tower, Upstream, ZooKeeper, eventually};

use super::{answered_by_nobody, hold, kept, list, options};
use crate::{
    registrar::{Format, SERVICE, member, payload},
    support::{Mesh, SOON, answered_by, callers, still_answered_by},
};

const STOPPING: &str = r#"{"serviceEndpoint":{"host":"HOST","port":PORT},"status":"STOPPING"}"#;

#[tokio::test]
async fn an_announced_drain_of_a_whole_service_passes_at_once() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let upstreams = [Upstream::start("alpha").await?, Upstream::start("beta").await?];
    let paths = ["member_1", "member_2"].map(member);
    for (path, upstream) in paths.iter().zip(&upstreams) {
        registry.create(path, &payload(Format::Serverset, upstream.address())).await?;
    }
    // Nothing that is held would go before the test gives up.
    let mesh = Mesh::with(options(&registry.discovery("serverset"), "10m")).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, SERVICE, &["alpha", "beta"]).await;

    for (path, upstream) in paths.iter().zip(&upstreams) {
        let address = upstream.address();
        let data = STOPPING.replace("HOST", &address.ip().to_string());
        registry.set(path, data.replace("PORT", &address.port().to_string()).as_bytes()).await?;
    }
    // Who announces that it goes and is gone before anybody reads it has announced nothing.
    eventually(SOON, "both are seen to stop", async || {
        let endpoints = list(&mesh.tower, "services/web/endpoints").await?;
        let draining = endpoints.iter().filter(|endpoint| endpoint["state"] == "DRAINING").count();
        ensure!(draining == 2, "{endpoints:?}");
        Ok(())
    })
    .await;
    for path in &paths {
        registry.delete(path).await?;
    }
    answered_by_nobody(&callers, SERVICE).await;
    assert!(list(&mesh.tower, "holds").await?.is_empty());
    assert_eq!(mesh.tower.metric("tower_source_guarded_endpoints_total").await?, Some(0.0));
    Ok(())
}

#[tokio::test]
async fn an_unannounced_one_passes_after_its_hold() -> Result<()> {
    const HOLD: Duration = Duration::from_secs(4);
    let registry = ZooKeeper::shared().await?.root().await?;
    let alpha = Upstream::start("alpha").await?;
    registry.create(&member("one"), &payload(Format::Hostport, alpha.address())).await?;
    let mesh = Mesh::with(options(&registry.discovery("hostport"), "4s")).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, SERVICE, &["alpha"]).await;

    let start = Instant::now();
    registry.delete(&member("one")).await?;
    eventually(HOLD, "it is held", async || hold(&mesh.tower).await).await;
    for caller in &callers {
        still_answered_by(caller, SERVICE, &["alpha"]).await?;
    }
    answered_by_nobody(&callers, SERVICE).await;
    assert!(start.elapsed() >= HOLD, "after {:?}", start.elapsed());
    assert!(list(&mesh.tower, "holds").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_mass_expiry_is_held_survives_a_restart_and_is_released_by_an_operator() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let session = registry.doomed_session().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    for (name, upstream) in [("one", &alpha), ("two", &beta)] {
        session.create_ephemeral(&member(name), &payload(Format::Hostport, upstream.address())).await?;
    }
    let mut mesh = Mesh::with(options(&registry.discovery("hostport"), "10m")).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, SERVICE, &["alpha", "beta"]).await;

    drop(session);
    let seen = eventually(SOON, "both are held", async || {
        let hold = hold(&mesh.tower).await?;
        ensure!(hold["endpoint_count"] == 2, "{hold}");
        Ok(hold)
    })
    .await;
    assert_eq!((&seen["service"], &seen["largest"], &seen["left"]), (&json!("web"), &json!(2), &json!(0)));
    let page = mesh.tower.http_get("/").await?.ok()?.body;
    assert!(page.contains("HELD zk-1: \"web\" went from 2 to 0 endpoints"), "{page}");

    for upstream in [&alpha, &beta] {
        kept(&mesh.tower, "zk.holds", &format!("\"port\": {}", upstream.address().port())).await;
    }
    mesh.tower.kill();
    mesh.tower.restart().await?;
    mesh.tower.wait_ready(SOON).await?;
    eventually(SOON, "the source has been read again", async || {
        let sources = list(&mesh.tower, "sources").await?;
        ensure!(sources[0]["state"] == "live", "{sources:?}");
        Ok(())
    })
    .await;
    let still = hold(&mesh.tower).await?;
    for field in ["id", "since_unix_ms", "endpoints"] {
        assert_eq!(still[field], seen[field], "{field}");
    }
    let ends = |hold: &serde_json::Value| hold["ends_unix_ms"].as_u64().unwrap_or_default();
    assert!(ends(&still).abs_diff(ends(&seen)) < 1_000, "{still} {seen}");
    for caller in &callers {
        still_answered_by(caller, SERVICE, &["alpha", "beta"]).await?;
    }

    let missing = mesh.tower.http_post("/api/v1/holds/zk-9/release", &json!({})).await?;
    assert_eq!(missing.status, 404, "{}", missing.body);
    let reason = json!({ "reason": "they are gone for good" });
    let released = mesh.tower.http_post("/api/v1/holds/zk-1/release", &reason).await?.ok()?.json()?;
    assert_eq!(released["released_endpoints"], 2);
    answered_by_nobody(&callers, SERVICE).await;
    mesh.tower.kill();
    mesh.tower.restart().await?;
    mesh.tower.wait_ready(SOON).await?;
    assert!(list(&mesh.tower, "services/web/endpoints").await?.is_empty());
    assert!(list(&mesh.tower, "holds").await?.is_empty());
    assert!(mesh.tower.log().contains("they are gone for good"));
    Ok(())
}

#[tokio::test]
async fn a_release_that_was_acknowledged_survives_a_kill_at_once() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    registry.create(&member("one"), b"127.0.0.1:1").await?;
    let mut tower = Tower::start(options(&registry.discovery("hostport"), "10m")).await?;
    tower.wait_ready(SOON).await?;
    // The snapshot of before is what a kill leaves.
    kept(&tower, "zk.snapshot", "127.0.0.1").await;
    registry.delete(&member("one")).await?;
    eventually(SOON, "it is held", async || hold(&tower).await).await;
    tower.http_post("/api/v1/holds/zk-1/release", &json!({})).await?.ok()?;
    tower.kill();
    tower.restart().await?;
    tower.wait_ready(SOON).await?;
    assert!(list(&tower, "services/web/endpoints").await?.is_empty());
    assert!(list(&tower, "holds").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn many_small_services_that_lose_most_of_all_are_held_together() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let (doomed, staying) = (registry.doomed_session().await?, registry.another_session().await?);
    let alpha = Upstream::start("alpha").await?;
    for service in 0..6_u8 {
        for number in 0..3_u8 {
            let session = if number == 0 { &staying } else { &doomed };
            let path = format!("discovery/service-{service}/prod/{number}");
            session.create_ephemeral(&path, format!("127.0.{number}.{}:1", service + 1).as_bytes()).await?;
        }
    }
    staying.create_ephemeral(&member("one"), &payload(Format::Hostport, alpha.address())).await?;
    let mesh = Mesh::with(options(&registry.discovery("hostport"), "10m")).await?;

    drop(doomed);
    let seen = eventually(SOON, "all are held", async || {
        let hold = hold(&mesh.tower).await?;
        ensure!(hold["endpoint_count"] == 12, "{hold}");
        Ok(hold)
    })
    .await;
    assert_eq!((&seen["service"], &seen["largest"], &seen["left"]), (&json!(null), &json!(19), &json!(7)));
    for service in 0..6 {
        let endpoints = list(&mesh.tower, &format!("services/service-{service}/endpoints")).await?;
        assert_eq!(endpoints.len(), 3);
    }
    Ok(())
}

#[tokio::test]
async fn a_registration_that_is_made_anew_is_no_removal() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let register = async |name: &str, upstream: &Upstream| {
        registry.create(&member(name), &payload(Format::Hostport, upstream.address())).await
    };
    register("one", &alpha).await?;
    let mesh = Mesh::with(options(&registry.discovery("hostport"), "10m")).await?;
    let transactions = async || mesh.tower.metric("tower_store_transactions_total").await;
    let before = transactions().await?;

    registry.delete(&member("one")).await?;
    register("one", &alpha).await?;
    // What comes later is there, so all before it has been taken in.
    register("two", &beta).await?;
    eventually(SOON, "the other one is there", async || {
        let endpoints = list(&mesh.tower, "services/web/endpoints").await?;
        ensure!(endpoints.len() == 2, "{endpoints:?}");
        Ok(())
    })
    .await;
    assert_eq!(transactions().await?, before.map(|count| count + 1.0), "one for the other one");
    Ok(())
}
