//! Envoys without aggregation: a stream for each type, and one more for the endpoints of each cluster.

use std::time::Duration;

use anyhow::{Result, ensure};
use tower_tests::{
    BootstrapOptions, EndpointFiles, Envoy, Mode, Protocol, Upstream, eventually, ports::free_port, rounds,
};

use crate::support::{Mesh, SOON, rejections};

/// A debug build on a machine that does other things, too, and twice as many services if there is time.
const SERVED: Duration = Duration::from_secs(120);

#[tokio::test]
async fn it_is_served_more_services_than_envoy_by_default_opens_streams() -> Result<()> {
    // Envoy's default is 1,024.
    let services: Vec<String> =
        (0..rounds(1200, 2400)).map(|number| format!("service-{number:04}")).collect();
    let files = EndpointFiles::new()?;
    let alpha = Upstream::start("alpha").await?;
    for service in &services {
        files.write(service, &[alpha.address().into()])?;
    }
    let mesh = Mesh::start(files.discovery()).await?;
    for mode in [Mode::SotwPerType, Mode::DeltaPerType] {
        let start = tokio::time::Instant::now();
        let egress_port = Some(free_port());
        let node_id = format!("many-{}", mode.name());
        let options = BootstrapOptions { mode, node_id, socket: None, egress_port };
        let envoy =
            Envoy::start(&options.node_id, &mesh.beacon.bootstrap(&options).await?, egress_port).await?;
        envoy.wait_ready(SERVED).await?;
        let ready = start.elapsed();
        let streams = mesh.beacon.metric("xds_streams").await?.unwrap_or_default();
        assert!(streams > services.len() as f64, "{streams} streams");
        let caller = envoy.caller(Protocol::Http1);
        for service in &services {
            eventually(SOON, format!("{service} is served"), async || {
                let reply = caller.get(service).await?.ok()?;
                ensure!(reply.body == "alpha", "{}", reply.body);
                Ok(())
            })
            .await;
        }
        assert_eq!(rejections(&envoy).await?, 0);
        eprintln!(
            "{mode:?}: {} services, ready after {ready:?}, all called after {:?}",
            services.len(),
            start.elapsed()
        );
    }
    Ok(())
}
