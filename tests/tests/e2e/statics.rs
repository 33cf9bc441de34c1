//! Secrets, runtime layers and extensions from the Beacon's folder, at the real Envoy.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tower_tests::{
    Beacon, BeaconOptions, BootstrapOptions, Caller, EndpointFiles, Envoy, Mode, Protocol, eventually,
    ports::free_port,
};

use crate::support::{Mesh, SOON};

const SECRET: &str = r#"
resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: token
  generic_secret: {secret: {filename: FOLDER/token}}
"#;

const EXTENSION: &str = r#"
resources:
- "@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
  name: from-beacon
  typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
"#;

pub(crate) fn runtime(value: u32) -> String {
    format!(
        "resources:\n- \"@type\": type.googleapis.com/envoy.service.runtime.v3.Runtime\n  name: limits\n  \
         layer: {{tower.test: {value}}}\n"
    )
}

/// A secret that is in the file `token` of this folder.
pub(crate) fn secret(folder: &Path) -> String {
    SECRET.replace("FOLDER", &folder.display().to_string())
}

/// A bootstrap that asks the Beacon for a layer, a secret and a filter as well.
pub(crate) fn demanding(bootstrap: &str, port: u16) -> Result<String> {
    let mut bootstrap: Value = serde_json::from_str(bootstrap)?;
    let source = bootstrap["dynamic_resources"]["cds_config"].clone();
    bootstrap["layered_runtime"] = json!({ "layers": [
        { "name": "beacon", "rtds_layer": { "name": "limits", "rtds_config": source } },
    ] });
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.\
                  HttpConnectionManager",
        "stat_prefix": "test",
        "route_config": { "virtual_hosts": [{
            "name": "all", "domains": ["*"],
            "routes": [{
                "match": { "prefix": "/" },
                "direct_response": { "status": 200, "body": { "inline_string": "served" } },
            }],
        }] },
        "http_filters": [{ "name": "credentials", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.credential_injector.v3.\
                      CredentialInjector",
            "credential": { "name": "envoy.http.injected_credentials.generic", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.http.injected_credentials.generic.v3.Generic",
                "credential": { "name": "token", "sds_config": source },
            } },
        } }, { "name": "from-beacon", "config_discovery": {
            "config_source": source,
            "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"],
        } }],
    });
    bootstrap["static_resources"]["listeners"] = json!([{
        "name": "test",
        "address": { "socket_address": { "address": "127.0.0.1", "port_value": port } },
        "filter_chains": [{ "filters": [{ "name": "http", "typed_config": manager }] }],
    }]);
    Ok(bootstrap.to_string())
}

/// Waits until it has the layer with this value, the secret, and the filter.
pub(crate) async fn served(envoy: &Envoy, port: u16, value: u32) {
    eventually(SOON, format!("layer, secret and filter are there, {value}"), async || {
        let layers = envoy.admin_get("/runtime").await?.body;
        ensure!(layers.contains(&format!("\"{value}\"")), "{layers}");
        let dump = envoy.admin_get("/config_dump?resource=dynamic_active_secrets").await?.body;
        ensure!(dump.contains("\"name\": \"token\""), "{dump}");
        let reply = Caller::new(([127, 0, 0, 1], port).into(), Protocol::Http1).get("any").await?.ok()?;
        ensure!(reply.body == "served", "{}", reply.body);
        Ok(())
    })
    .await;
}

async fn from_files(folder: &Path, mode: Mode) -> Result<()> {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text);
    write("token", "hush")?;
    write("secret.yaml", &secret(folder))?;
    write("extension.yaml", EXTENSION)?;
    write("runtime.yaml", &runtime(7))?;
    let files = EndpointFiles::new()?;
    let mesh = Mesh::start(files.discovery()).await?;
    let flags = vec![format!("--static-resources={}", folder.display())];
    let beacon = Beacon::start(BeaconOptions { flags, ..BeaconOptions::of(mesh.tower.grpc()) }).await?;
    beacon.wait_ready(SOON).await?;
    let (port, egress_port) = (free_port(), Some(free_port()));
    let node_id = format!("statics-{}", mode.name());
    let options = BootstrapOptions { mode, node_id, socket: None, egress_port };
    let bootstrap = demanding(&beacon.bootstrap(&options).await?, port)?;
    let envoy = Envoy::start(&options.node_id, &bootstrap, egress_port).await?;
    envoy.wait_ready(SOON).await?;
    served(&envoy, port, 7).await;

    // What turns bad is named, and stays as it was; what is put right is served.
    write("runtime.yaml", "resources: [{name: limits}]")?;
    eventually(SOON, "the file is named", async || {
        let status = beacon.http_get("/status").await?.ok()?.body;
        ensure!(status.contains("runtime.yaml: "), "{status}");
        Ok(())
    })
    .await;
    served(&envoy, port, 7).await;
    write("runtime.yaml", &runtime(8))?;
    served(&envoy, port, 8).await;
    Ok(())
}

#[tokio::test]
async fn secrets_layers_and_extensions_come_from_files() -> Result<()> {
    for mode in Mode::ALL {
        let folder = tempfile::tempdir()?;
        from_files(folder.path(), mode).await?;
    }
    Ok(())
}
