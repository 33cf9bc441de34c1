//! Several Beacons of one Tower.

use anyhow::{Context, Result, ensure};
use tower_tests::{Beacon, BeaconOptions, Mode, Upstream, eventually};

use crate::{
    registrar::Registrar,
    support::{Mesh, SOON, answered_by, callers},
};

/// kumahq/kuma#9455: what one loses, or one that comes back, is nothing to the others.
#[tokio::test]
async fn b25_one_that_dies_and_comes_back_changes_nothing_for_others() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    registrar.register(alpha.address()).await?;
    let mut mesh = Mesh::start(registrar.discovery()).await?;
    let mut others = Vec::new();
    for number in 0..2 {
        let node_id = format!("other-{number}");
        let options = BeaconOptions { node_id, ..BeaconOptions::of(mesh.tower.grpc()) };
        let beacon = Beacon::start(options).await?;
        beacon.wait_ready(SOON).await?;
        let envoy = beacon.envoy(Mode::Delta).await?;
        answered_by(&callers(std::slice::from_ref(&envoy)), "web", &["alpha"]).await;
        others.push((beacon, envoy));
    }
    let sent = async |beacon: &Beacon| beacon.metric("xds_responses_total").await;
    let mut before = Vec::new();
    for (beacon, _) in &others {
        before.push(sent(beacon).await?);
    }
    for _ in 0..10 {
        mesh.beacon.kill();
        mesh.beacon.restart().await?;
        mesh.beacon.wait_ready(SOON).await?;
    }
    for ((beacon, _), before) in others.iter().zip(before) {
        assert_eq!(sent(beacon).await?, before, "their Envoys were sent nothing");
    }
    // They still hear what is new.
    let beta = Upstream::start("beta").await?;
    registrar.register(beta.address()).await?;
    for (_, envoy) in &others {
        answered_by(&callers(std::slice::from_ref(envoy)), "web", &["alpha", "beta"]).await;
    }
    Ok(())
}

/// How soon what is published is in force on hosts is known without anything being published.
#[tokio::test]
async fn how_soon_changes_arrive_is_measured_all_the_time() -> Result<()> {
    let registrar = Registrar::in_files()?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    eventually(SOON, "a heartbeat is reported", async || {
        let told = mesh.tower.http_get("/api/v1/latency").await?.ok()?.json()?;
        let probes = told["probes"].as_array().context("heartbeats")?;
        let reported = probes.iter().find(|probe| probe["beacons"] == 1).context("none is reported")?;
        let quantiles = ["p50_ms", "p99_ms", "max_ms"].map(|name| reported[name].as_f64());
        ensure!(quantiles.is_sorted(), "{told}");
        ensure!(quantiles.iter().all(|value| value.is_some_and(|millis| millis < 5_000.0)), "{told}");
        let beacons = mesh.tower.http_get("/api/v1/beacons").await?.ok()?.json()?;
        ensure!(beacons["beacons"][0]["arrival_micros"].is_u64(), "{beacons}");
        let count = mesh.tower.metric("tower_source_to_applied_seconds_count").await?;
        ensure!(count > Some(0.0), "{count:?}");
        Ok(())
    })
    .await;
    Ok(())
}

/// What each client was sent can be looked up; and by which stream.
#[tokio::test]
async fn what_an_envoy_was_sent_can_be_read() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    registrar.register(alpha.address()).await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys_in(&Mode::ALL).await?;
    answered_by(&callers(&envoys), "web", &["alpha"]).await;
    eventually(SOON, "all streams tell what they have sent", async || {
        let dumps = mesh.beacon.http_get("/config_dump").await?.ok()?.json()?;
        let dumps = dumps.as_array().cloned().unwrap_or_default();
        // Two aggregated streams, and four of each Envoy that has one for each type.
        ensure!(dumps.len() == 10, "{} streams", dumps.len());
        for kind in ["cds", "eds", "lds", "rds"] {
            let all = dumps.iter().filter_map(|dump| dump["resources"][kind].as_array());
            let contents: Vec<String> = all.flatten().map(ToString::to_string).collect();
            ensure!(contents.len() == 4, "{kind}: {contents:?}");
            ensure!(contents.iter().all(|content| content.contains(r#""accepted":true"#)), "{contents:?}");
        }
        let address = alpha.address().to_string();
        ensure!(format!("{dumps:?}").contains(&address), "{address} is in none");
        Ok(())
    })
    .await;
    Ok(())
}
