//! From a document to Envoys: what is activated through Tower's API is served by Beacons, accepted, told, and
//! taken back; each host works out for itself what it gets.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tower_tests::{Beacon, BeaconOptions, Endpoint, EndpointFiles, Mode, Tower, Upstream, eventually};

use crate::support::{Mesh, SOON, answered_by, callers, rejections};

/// How soon a change that one host needs is to be there, with everything between.
const QUICKLY: Duration = Duration::from_secs(5);

/// A document of `web` with two subsets, and a part of the traffic for each.
fn document(stable: u32, canary: u32) -> String {
    format!(
        "
apiVersion: tower.mesh/v1
kind: MeshService
metadata: {{name: web, owner: web-team}}
spec:
  callers:
    subsets: {{stable: {{model: a}}, canary: {{model: b}}}}
    routes:
    - name: default
      backendRefs: [{{subset: stable, weight: {stable}}}, {{subset: canary, weight: {canary}}}]
"
    )
}

async fn upload(tower: &Tower, document: String) -> Result<u64> {
    let request = Request::post("/api/v1/services/web/versions").header(CONTENT_TYPE, "application/yaml");
    let reply = tower.ask(request, document).await?;
    ensure!(matches!(reply.status, 200 | 201), "{} {}", reply.status, reply.body);
    reply.json()?["number"].as_u64().context("no number")
}

/// Activates a version, in one step. Returns the activation's id.
async fn activate(tower: &Tower, version: u64, audience: &str) -> Result<String> {
    let body = json!({
        "version": version, "audience": audience, "at_once": true, "reason": "a test of all at once",
    });
    let reply = tower.http_post("/api/v1/services/web/activations", &body).await?;
    ensure!(matches!(reply.status, 200 | 202), "{} {}", reply.status, reply.body);
    Ok(reply.json()?["activation"]["id"].as_str().context("nothing was to be done")?.to_owned())
}

/// Waits until an activation has succeeded.
async fn succeeds(tower: &Tower, activation: &str) {
    eventually(SOON, format!("activation {activation:?} succeeds"), async || {
        let found = tower.http_get(&format!("/api/v1/activations/{activation}")).await?.ok()?.json()?;
        ensure!(found["state"] == "succeeded", "{found}");
        Ok(())
    })
    .await;
}

/// What a Beacon says of the release of `web`.
async fn release(beacon: &Beacon) -> Result<Value> {
    let status = beacon.http_get("/status").await?.json()?;
    let releases = status["releases"].as_array().cloned().unwrap_or_default();
    releases.into_iter().find(|release| release["service"] == "web").context("web has no assignment")
}

/// Two upstreams of `web`, one for each subset.
async fn upstreams(files: &EndpointFiles) -> Result<[Upstream; 2]> {
    let upstreams = [Upstream::start("alpha").await?, Upstream::start("beta").await?];
    let endpoints = upstreams.iter().zip(["a", "b"]).map(|(upstream, model)| {
        let mut endpoint = Endpoint::from(upstream.address());
        endpoint.labels.insert("model".to_owned(), model.to_owned());
        endpoint
    });
    files.write("web", &endpoints.collect::<Vec<_>>())?;
    Ok(upstreams)
}

#[tokio::test]
async fn what_is_activated_is_served_told_and_taken_back() -> Result<()> {
    let files = EndpointFiles::new()?;
    let _upstreams = upstreams(&files).await?;
    let mesh = Mesh::start(files.discovery()).await?;
    let envoys = mesh.envoys_in(&Mode::ALL).await?;
    let callers = callers(&envoys);
    answered_by(&callers, "web", &["alpha", "beta"]).await;

    let stable = upload(&mesh.tower, document(1, 0)).await?;
    let canary = upload(&mesh.tower, document(0, 1)).await?;
    answered_by(&callers, "web", &["alpha", "beta"]).await;
    for (version, name) in [(stable, "alpha"), (canary, "beta"), (stable, "alpha")] {
        let activation = activate(&mesh.tower, version, "everyone").await?;
        tokio::time::timeout(QUICKLY, succeeds(&mesh.tower, &activation)).await?;
        // It has succeeded when all Envoys have accepted it, so there is nothing to wait for.
        let told = release(&mesh.beacon).await?;
        assert_eq!((&told["state"], &told["release"]), (&json!("ACCEPTED"), &told["served"]), "{told}");
        answered_by(&callers, "web", &[name]).await;
    }
    for envoy in &envoys {
        assert_eq!(rejections(envoy).await?, 0);
    }
    // A new Envoy gets the same.
    let fresh = mesh.envoys().await?;
    answered_by(&self::callers(&fresh), "web", &["alpha"]).await;
    let body = json!({ "reason": "no more documents" });
    let reply = mesh.tower.http_post("/api/v1/services/web/deactivate", &body).await?;
    ensure!(matches!(reply.status, 200 | 202), "{} {}", reply.status, reply.body);
    answered_by(&callers, "web", &["alpha", "beta"]).await;
    Ok(())
}

#[tokio::test]
async fn each_host_gets_what_its_audience_says_also_after_a_restart_without_tower() -> Result<()> {
    let files = EndpointFiles::new()?;
    let _upstreams = upstreams(&files).await?;
    let mut mesh = Mesh::start(files.discovery()).await?;
    let flags = vec!["--label=team=ads".to_owned()];
    let mut ads = Beacon::start(BeaconOptions {
        node_id: "ads-host".to_owned(),
        flags,
        ..BeaconOptions::of(mesh.tower.grpc())
    })
    .await?;
    ads.wait_ready(SOON).await?;
    let other = mesh.envoys().await?;
    let own = vec![ads.envoy(Mode::Delta).await?];
    let canary = upload(&mesh.tower, document(0, 1)).await?;
    let activation = activate(&mesh.tower, canary, "label:team=ads").await?;
    succeeds(&mesh.tower, &activation).await;
    answered_by(&callers(&own), "web", &["beta"]).await;
    answered_by(&callers(&other), "web", &["alpha", "beta"]).await;
    assert_eq!(release(&mesh.beacon).await?["served"], "", "it is not meant");
    // The snapshot has the release, and the assignment.
    ads.terminate().await?;
    mesh.tower.kill();
    ads.restart().await?;
    ads.wait_ready(SOON).await?;
    let fresh = vec![ads.envoy(Mode::Sotw).await?];
    answered_by(&callers(&fresh), "web", &["beta"]).await;
    eventually(SOON, "it is accepted", async || {
        let told = release(&ads).await?;
        ensure!(told["state"] == "ACCEPTED", "{told}");
        Ok(())
    })
    .await;
    Ok(())
}
