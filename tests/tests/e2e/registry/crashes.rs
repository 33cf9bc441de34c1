//! A Tower that is killed in the middle of an activation.

use anyhow::{Result, ensure};
use serde_json::json;
use tower_tests::{Beacon, BeaconOptions, EndpointFiles, Tower, TowerOptions, Upstream, eventually};

use super::{activate, document, ended, stand, upload};
use crate::support::{Mesh, SOON, answered_by, callers};

#[tokio::test]
async fn an_activation_goes_on_where_it_was_after_a_kill_at_each_step() -> Result<()> {
    let files = EndpointFiles::new()?;
    let upstream = Upstream::start("web-1").await?;
    files.write("web", &[upstream.address().into()])?;
    let options = TowerOptions { discovery: vec![files.discovery()], ..TowerOptions::default() };
    let tower = Tower::start(options).await?;
    tower.wait_ready(SOON).await?;
    let flags = vec!["--label=kind=test".to_owned()];
    let beacon = Beacon::start(BeaconOptions { flags, ..BeaconOptions::of(tower.grpc()) }).await?;
    beacon.wait_ready(SOON).await?;
    let mut mesh = Mesh { beacon, tower };
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    let first = upload(&mesh.tower, "web", document("web", 1000)).await?;
    stand(&mesh.tower, "web", first).await?;
    let second = upload(&mesh.tower, "web", document("web", 2000)).await?;
    let steps = json!([
        { "audience": "label:kind=test", "pause_seconds": 0 },
        { "audience": "label:kind=test,other", "pause_seconds": 1 },
        { "audience": "everyone", "pause_seconds": 1 },
    ]);
    let id = activate(&mesh.tower, "web", json!({ "version": second, "steps": steps })).await?;
    for step in 0..3 {
        eventually(SOON, format!("step {step} is reached"), async || {
            let found = mesh.tower.http_get(&format!("/api/v1/activations/{id}")).await?.ok()?.json()?;
            ensure!(found["step"].as_u64() >= Some(step), "{found}");
            Ok(())
        })
        .await;
        mesh.tower.kill();
        mesh.tower.restart().await?;
        mesh.tower.wait_ready(SOON).await?;
    }
    let told = ended(&mesh.tower, &id).await;
    assert_eq!((&told["state"], &told["step"]), (&json!("succeeded"), &json!(2)), "{told}");
    answered_by(&callers, "web", &["web-1"]).await;
    Ok(())
}
