//! A release that an Envoy refuses after all.

use anyhow::{Context, Result, ensure};
use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tower_tests::{Beacon, BeaconOptions, EndpointFiles, Mode, Tower, Upstream, eventually};

use super::{activate, document, ended, stand, upload};
use crate::support::{Mesh, SOON, answered_by, callers, rejections, still_answered_by};

/// A patch that only an Envoy can refuse: it has no such transport socket.
const PATCH: &str = "apiVersion: tower.mesh/v1
kind: MeshService
metadata: {name: web}
spec:
  patches:
  - target: {kind: Cluster, name: web}
    merge:
      transportSocket:
        name: nobody-has-this
        typedConfig: {'@type': type.googleapis.com/google.protobuf.StringValue, value: x}
";

async fn patch(tower: &Tower) -> Result<()> {
    let request = Request::put("/api/v1/platform/web").header(CONTENT_TYPE, "application/yaml");
    let reply = tower.ask(request, PATCH).await?;
    ensure!(reply.status == 200, "{} {}", reply.status, reply.body);
    Ok(())
}

/// The releases of `web` that a Beacon has served so far, by its own log of what it holds.
async fn release(beacon: &Beacon) -> Result<Value> {
    let status = beacon.http_get("/status").await?.json()?;
    let releases = status["releases"].as_array().cloned().unwrap_or_default();
    releases.into_iter().find(|release| release["service"] == "web").context("web has no assignment")
}

#[tokio::test]
async fn what_an_envoy_refuses_reaches_one_host_and_is_taken_back() -> Result<()> {
    let files = EndpointFiles::new()?;
    let (web, ads) = (Upstream::start("web-1").await?, Upstream::start("ads-1").await?);
    files.write("web", &[web.address().into()])?;
    files.write("ads", &[ads.address().into()])?;
    let mesh = Mesh::start(files.discovery()).await?;
    let second = BeaconOptions { node_id: "host-2".to_owned(), ..BeaconOptions::of(mesh.tower.grpc()) };
    let second = Beacon::start(second).await?;
    second.wait_ready(SOON).await?;
    let envoys = [mesh.beacon.envoy(Mode::Delta).await?, second.envoy(Mode::Sotw).await?];
    let callers = callers(&envoys);
    let tower = &mesh.tower;
    for service in ["web", "ads"] {
        let version = upload(tower, service, document(service, 1000)).await?;
        stand(tower, service, version).await?;
    }
    let before = release(&second).await?["served"].clone();

    patch(tower).await?;
    let refused = activate(tower, "web", json!({ "version": 1 })).await?;
    let version = upload(tower, "ads", document("ads", 2000)).await?;
    let how = json!({ "version": version, "at_once": true, "reason": "a neighbour" });
    let neighbour = activate(tower, "ads", how).await?;
    let told = ended(tower, &refused).await;
    assert_eq!((&told["state"], &told["step"]), (&json!("rejected"), &json!(0)), "{told}");
    let rejection = &told["rejection"];
    let text = |field: &str| rejection[field].as_str().unwrap_or_default().to_owned();
    ensure!(["beacon-1", "host-2"].contains(&&*text("host")) || !text("host").is_empty(), "{told}");
    ensure!(text("error").contains("nobody-has-this"), "{told}");
    ensure!(text("resource").contains("web") && text("type_url").contains("Cluster"), "{told}");
    ensure!(told["author"].as_str().is_some_and(|author| !author.is_empty()), "{told}");
    let changes: Vec<_> = told["changes"].as_array().into_iter().flatten().collect();
    let [change] = changes.as_slice() else { panic!("{told}") };
    ensure!(change["field"].as_str().is_some_and(|field| field.starts_with("spec.patches")), "{told}");
    assert_eq!((&change["owner"], &change["author"]), (&json!("platform"), &told["author"]), "{told}");
    assert_eq!(ended(tower, &neighbour).await["state"], "succeeded", "neighbours are unharmed");

    let refusing: Vec<u64> = vec![rejections(&envoys[0]).await?, rejections(&envoys[1]).await?];
    ensure!(refusing.iter().filter(|count| **count > 0).count() == 1, "one host only: {refusing:?}");
    for beacon in [&mesh.beacon, &second] {
        eventually(SOON, "the release before is accepted again", async || {
            let held = release(beacon).await?;
            ensure!(held["served"] == before && held["state"] == "ACCEPTED", "{held}");
            Ok(())
        })
        .await;
    }
    for (host, name) in [("web", "web-1"), ("ads", "ads-1")] {
        for caller in &callers {
            still_answered_by(caller, host, &[name]).await?;
        }
    }
    // It is not tried again by accident.
    let reply = tower.http_post("/api/v1/services/web/activations", &json!({ "version": 1 })).await?;
    assert_eq!((reply.status, &reply.json()?["code"]), (409, &json!("blocked")), "{}", reply.body);
    answered_by(&callers, "web", &["web-1"]).await;
    Ok(())
}
