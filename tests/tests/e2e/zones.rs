//! Routing that prefers the caller's own zone.

use anyhow::{Result, ensure};
use tower_tests::{
    Beacon, Endpoint, EndpointFiles, Envoy, Mode, Protocol, Upstream, daemon, eventually, ports::free_port,
};

use crate::support::{Mesh, SOON};

async fn local_envoy(beacon: &Beacon, mode: Mode, port: u16) -> Result<Envoy> {
    let (xds, egress) = (beacon.xds().to_string(), port.to_string());
    let flags = ["bootstrap", "--admin-port=0", "--node-id=zoned", "--local-service=web", "--zone=here"];
    let rest = ["--mode", mode.name(), "--xds-address", &xds, "--egress-port", &egress];
    let output = daemon::run("beacon-agent", &[&flags[..], &rest].concat()).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let envoy = Envoy::start("zoned", &String::from_utf8(output.stdout)?, Some(port)).await?;
    envoy.wait_ready(SOON).await?;
    Ok(envoy)
}

#[tokio::test]
async fn the_local_cluster_is_static_and_has_its_endpoints() -> Result<()> {
    let files = EndpointFiles::new()?;
    let (near, far) = (Upstream::start("near").await?, Upstream::start("far").await?);
    let zoned = |upstream: &Upstream, zone: &str| {
        let mut endpoint = Endpoint::from(upstream.address());
        endpoint.zone = Some(zone.to_owned());
        endpoint
    };
    files.write("web", &[zoned(&near, "here"), zoned(&far, "there")])?;
    let mesh = Mesh::start(files.discovery()).await?;
    for mode in Mode::ALL {
        let envoy = local_envoy(&mesh.beacon, mode, free_port()).await?;
        eventually(SOON, format!("the local cluster is there, {}", mode.name()), async || {
            let members = envoy.stat("cluster.tower_local.membership_total").await?;
            ensure!(members == Some(2), "{members:?}");
            let reply = envoy.caller(Protocol::Http1).get("web").await?;
            ensure!(reply.status == 200, "{}", reply.status);
            Ok(())
        })
        .await;
    }
    Ok(())
}
