//! gRPC: without a proxy, by the Beacon alone, and through an Envoy.

use anyhow::{Result, ensure};
use tower_tests::{GrpcClient, Mode, Upstream, eventually};

use crate::{
    registrar::{Format, Registrar},
    support::{Mesh, SOON},
};

/// Waits until a target is answered by all of these and nobody else.
async fn answered(client: &GrpcClient, target: &str, authority: &str, names: &[&str]) {
    eventually(SOON, format!("{target} is answered by {names:?}"), async || {
        let tally = client.tally(target, authority, names.len() * 10).await?;
        ensure!(tally.is_exactly(names), "{tally}");
        Ok(())
    })
    .await;
}

async fn traffic_follows(mut registrar: Registrar) -> Result<()> {
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let gamma = Upstream::start("gamma").await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let client = GrpcClient::start(&mesh.beacon.grpc_bootstrap("grpc-client").await?).await?;

    let first = registrar.register(alpha.address()).await?;
    for target in ["xds:///web", "xds:///web.mesh", "xds:///WEB.mesh:5875"] {
        answered(&client, target, "", &["alpha"]).await;
    }
    let second = registrar.register(beta.address()).await?;
    answered(&client, "xds:///web", "", &["alpha", "beta"]).await;
    let _first = registrar.change(first, gamma.address()).await?;
    answered(&client, "xds:///web", "", &["beta", "gamma"]).await;
    registrar.deregister(second).await?;
    answered(&client, "xds:///web", "", &["gamma"]).await;

    // It has never rejected anything, and is seen.
    let status = mesh.beacon.http_get("/status").await?.ok()?.json()?;
    let clients = status["clients"].as_array().into_iter().flatten();
    let grpc: Vec<_> = clients.filter(|client| client["node_id"] == "grpc-client").collect();
    ensure!(!grpc.is_empty() && !status.to_string().contains(r#""reason":"#), "{status}");
    Ok(())
}

#[tokio::test]
async fn without_a_proxy_from_zookeeper() -> Result<()> {
    traffic_follows(Registrar::in_zookeeper(Format::Serverset).await?).await
}

#[tokio::test]
async fn without_a_proxy_from_files() -> Result<()> {
    traffic_follows(Registrar::in_files()?).await
}

#[tokio::test]
async fn through_an_envoy_whatever_its_mode() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let client = GrpcClient::start(&mesh.beacon.grpc_bootstrap("unused").await?).await?;
    registrar.register(alpha.address()).await?;
    for envoy in mesh.envoys_in(&Mode::ALL).await? {
        answered(&client, &envoy.egress().to_string(), "web.mesh", &["alpha"]).await;
    }
    Ok(())
}
