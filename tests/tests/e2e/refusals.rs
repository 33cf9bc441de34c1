//! What an Envoy has rejected is not sent to it again, whatever restarts.

use anyhow::{Result, ensure};
use serde_json::Value;
use tower_tests::{
    Beacon, BeaconOptions, BootstrapOptions, EndpointFiles, Envoy, Mode, Upstream, eventually,
    ports::free_port,
};

use crate::{
    statics::{demanding, runtime, served},
    support::{Mesh, SOON, answered_by, callers, rejections},
};

/// A filter of this type, for a listener that takes routers only.
fn filter(kind: &str) -> String {
    format!(
        "resources:\n- \"@type\": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig\n  \
         name: from-beacon\n  typed_config: {{\"@type\": type.googleapis.com/envoy.extensions.filters.http.{kind}}}\n"
    )
}

/// The names that are kept from the only client, on all its streams.
async fn kept_back(beacon: &Beacon) -> Result<Vec<String>> {
    let status = beacon.http_get("/status").await?.ok()?.json()?;
    let clients = status["clients"].as_array().into_iter().flatten();
    let kept = clients.flat_map(|client| client["quarantined"].as_array().into_iter().flatten());
    Ok(kept.filter_map(|kept| kept["name"].as_str()).map(str::to_owned).collect())
}

async fn survives_a_restart(mode: Mode) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("runtime.yaml", &runtime(7))?;
    write("filter.yaml", &filter("router.v3.Router"))?;
    write("token", "hush")?;
    write("secret.yaml", &crate::statics::secret(folder.path()))?;
    let files = EndpointFiles::new()?;
    let alpha = Upstream::start("alpha").await?;
    files.write("web", &[alpha.address().into()])?;
    let mesh = Mesh::start(files.discovery()).await?;
    let flags = vec![format!("--static-resources={}", folder.path().display())];
    let mut beacon = Beacon::start(BeaconOptions { flags, ..BeaconOptions::of(mesh.tower.grpc()) }).await?;
    beacon.wait_ready(SOON).await?;
    let (port, egress_port) = (free_port(), Some(free_port()));
    let node_id = format!("refusals-{}", mode.name());
    let options = BootstrapOptions { mode, node_id, socket: None, egress_port };
    let bootstrap = demanding(&beacon.bootstrap(&options).await?, port)?;
    let envoy = [Envoy::start(&options.node_id, &bootstrap, egress_port).await?];
    envoy[0].wait_ready(SOON).await?;
    served(&envoy[0], port, 7).await;

    write("filter.yaml", &filter("buffer.v3.Buffer"))?;
    eventually(SOON, "the filter is kept back", async || {
        let kept = kept_back(&beacon).await?;
        ensure!(kept == ["from-beacon"], "{kept:?}");
        Ok(())
    })
    .await;
    let before = rejections(&envoy[0]).await?;
    assert!(before > 0);
    let file = beacon.folder().join("data/refusals");
    eventually(SOON, "that is on disk", async || {
        let contents = std::fs::read(&file)?;
        ensure!(String::from_utf8_lossy(&contents).contains("from-beacon"), "it is not");
        Ok(())
    })
    .await;
    beacon.kill();
    beacon.restart().await?;
    beacon.wait_ready(SOON).await?;

    // Neighbours go on, and what was accepted before stays.
    write("runtime.yaml", &runtime(8))?;
    served(&envoy[0], port, 8).await;
    let beta = Upstream::start("beta").await?;
    files.write("web", &[beta.address().into()])?;
    answered_by(&callers(&envoy), "web", &["beta"]).await;
    assert_eq!(kept_back(&beacon).await?, ["from-beacon"]);
    assert_eq!(rejections(&envoy[0]).await?, before);

    // A file that is torn costs its contents only.
    beacon.terminate().await?;
    let whole = std::fs::read(&file)?;
    std::fs::write(&file, &whole[..whole.len() / 2])?;
    beacon.restart().await?;
    beacon.wait_ready(SOON).await?;
    let status: Value = beacon.http_get("/status").await?.ok()?.json()?;
    assert!(status["snapshots_set_aside"].to_string().contains("refusals: "), "{status}");
    write("runtime.yaml", &runtime(9))?;
    served(&envoy[0], port, 9).await;
    Ok(())
}

#[tokio::test]
async fn what_an_envoy_rejected_is_not_sent_again_by_a_beacon_that_was_killed() -> Result<()> {
    for mode in [Mode::Delta, Mode::SotwPerType] {
        survives_a_restart(mode).await?;
    }
    Ok(())
}
