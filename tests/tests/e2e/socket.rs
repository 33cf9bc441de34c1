//! The Beacon's Unix socket.

use anyhow::Result;
use tower_tests::{Beacon, BeaconOptions, Mode, Upstream};

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
