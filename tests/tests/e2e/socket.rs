//! The Beacon's Unix socket.

use anyhow::{Result, ensure};
use tower_tests::{Beacon, BeaconOptions, GrpcClient, Mode, Upstream, eventually};

use crate::{
    registrar::Registrar,
    support::{Mesh, SOON, answered_by, callers},
};

#[tokio::test]
async fn an_envoy_is_served_through_it_and_it_goes_with_the_beacon() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("xds.sock");
    let mesh = Mesh::start(registrar.discovery()).await?;
    let flags = vec![format!("--xds-socket={}", socket.display())];
    let options = BeaconOptions { flags, ..BeaconOptions::of(mesh.tower.grpc()) };
    let mut beacon = Beacon::start(options).await?;
    beacon.wait_ready(SOON).await?;
    let mut envoys = Vec::new();
    for mode in [Mode::Delta, Mode::SotwPerType] {
        envoys.push(beacon.envoy_at(&socket, mode).await?);
    }
    registrar.register(alpha.address()).await?;
    answered_by(&callers(&envoys), "web", &["alpha"]).await;

    // Killed, it leaves the file behind, and finds it when it comes back; stopped, it takes it along.
    beacon.kill();
    assert!(socket.exists());
    beacon.restart().await?;
    let beta = Upstream::start("beta").await?;
    registrar.register(beta.address()).await?;
    answered_by(&callers(&envoys), "web", &["alpha", "beta"]).await;
    beacon.terminate().await?;
    assert!(!socket.exists());
    Ok(())
}

#[tokio::test]
async fn grpc_without_a_proxy_is_served_through_it() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("xds.sock");
    let mesh = Mesh::start(registrar.discovery()).await?;
    let flags = vec![format!("--xds-socket={}", socket.display())];
    let mut beacon = Beacon::start(BeaconOptions { flags, ..BeaconOptions::of(mesh.tower.grpc()) }).await?;
    beacon.wait_ready(SOON).await?;
    let client = GrpcClient::start(&beacon.grpc_bootstrap_by(&socket, "by-socket").await?).await?;
    let answered = async |names: &[&str]| {
        eventually(SOON, format!("web is answered by {names:?}"), async || {
            let tally = client.tally("xds:///web", "", names.len() * 10).await?;
            ensure!(tally.is_exactly(names), "{tally}");
            Ok(())
        })
        .await;
    };
    registrar.register(alpha.address()).await?;
    answered(&["alpha"]).await;
    let status = beacon.http_get("/status").await?.ok()?.json()?;
    let peer = status["clients"][0]["peer"].as_str().unwrap_or_default();
    ensure!(status["clients"][0]["node_id"] == "by-socket" && peer.starts_with("unix:"), "{status}");

    // It goes on while the Beacon is away, and follows the one that comes back.
    beacon.kill();
    answered(&["alpha"]).await;
    beacon.restart().await?;
    registrar.register(beta.address()).await?;
    answered(&["alpha", "beta"]).await;
    Ok(())
}
