//! Scopes of routes from the Beacon's folder, at the real Envoy.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tower_tests::{
    Beacon, BeaconOptions, BootstrapOptions, Caller, EndpointFiles, Envoy, Mode, Protocol, Upstream,
    eventually, ports::free_port,
};

use crate::support::{Mesh, SOON, answered_by, rejections};

/// Scopes for requests to these hosts, with the routes to all services.
fn scopes(hosts: &[&str]) -> String {
    let scope = |host: &&str| {
        format!(
            "- \"@type\": type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration\n  name: for-{host}\n  \
             route_configuration_name: egress\n  key: {{fragments: [{{string_key: {host}}}]}}\n"
        )
    };
    format!("resources:\n{}", hosts.iter().map(scope).collect::<String>())
}

/// A bootstrap with a listener that chooses routes by scope: the host that is asked for.
fn scoped(bootstrap: &str, port: u16) -> Result<String> {
    let mut bootstrap: Value = serde_json::from_str(bootstrap)?;
    let source = bootstrap["dynamic_resources"]["cds_config"].clone();
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.\
                  HttpConnectionManager",
        "stat_prefix": "scoped",
        "scoped_routes": {
            "name": "scopes",
            "scope_key_builder": { "fragments": [
                { "header_value_extractor": { "name": ":authority", "index": 0 } },
            ] },
            "rds_config_source": source,
            "scoped_rds": { "scoped_rds_config_source": source },
        },
        "http_filters": [{ "name": "router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        } }],
    });
    bootstrap["static_resources"]["listeners"] = json!([{
        "name": "scoped",
        "address": { "socket_address": { "address": "127.0.0.1", "port_value": port } },
        "filter_chains": [{ "filters": [{ "name": "http", "typed_config": manager }] }],
    }]);
    Ok(bootstrap.to_string())
}

async fn chosen_by_scope(mode: Mode) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("scopes.yaml");
    std::fs::write(&file, scopes(&["web"]))?;
    let files = EndpointFiles::new()?;
    let (alpha, beta) = (Upstream::start("alpha").await?, Upstream::start("beta").await?);
    files.write("web", &[alpha.address().into()])?;
    files.write("other", &[beta.address().into()])?;
    let mesh = Mesh::start(files.discovery()).await?;
    let flags = vec![format!("--static-resources={}", folder.path().display())];
    let beacon = Beacon::start(BeaconOptions { flags, ..BeaconOptions::of(mesh.tower.grpc()) }).await?;
    beacon.wait_ready(SOON).await?;
    let (port, egress_port) = (free_port(), Some(free_port()));
    let node_id = format!("scopes-{}", mode.name());
    let options = BootstrapOptions { mode, node_id, socket: None, egress_port };
    let bootstrap = scoped(&beacon.bootstrap(&options).await?, port)?;
    let envoy = Envoy::start(&options.node_id, &bootstrap, egress_port).await?;
    envoy.wait_ready(SOON).await?;

    let callers = [Caller::new(([127, 0, 0, 1], port).into(), Protocol::Http1)];
    let unknown = async |host: &str| {
        eventually(SOON, format!("there is no scope for {host}"), async || {
            let status = callers[0].get(host).await?.status;
            ensure!(status == 404, "{status}");
            Ok(())
        })
        .await;
    };
    answered_by(&callers, "web", &["alpha"]).await;
    unknown("other").await;
    std::fs::write(&file, scopes(&["web", "other"]))?;
    answered_by(&callers, "other", &["beta"]).await;
    std::fs::write(&file, scopes(&["other"]))?;
    unknown("web").await;
    answered_by(&callers, "other", &["beta"]).await;
    assert_eq!(rejections(&envoy).await?, 0);
    Ok(())
}

#[tokio::test]
async fn routes_are_chosen_by_scopes_from_files() -> Result<()> {
    for mode in Mode::ALL {
        chosen_by_scope(mode).await?;
    }
    Ok(())
}
