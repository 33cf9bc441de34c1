//! Entries of the log that somebody has changed by hand, in ZooKeeper.

use anyhow::{Context, Result, ensure};
use tower_tests::{EndpointFiles, Tower, TowerOptions, ZooKeeper, eventually};

use super::{document, upload};
use crate::support::SOON;

#[tokio::test]
async fn a_changed_entry_is_refused_and_what_was_kept_stands() -> Result<()> {
    let zookeeper = ZooKeeper::shared().await?;
    let root = zookeeper.root().await?;
    let url = format!("zk://{}{}", zookeeper.connect_string(), root.absolute("tower"));
    let files = EndpointFiles::new()?;
    let flags = vec![format!("--event-log={url}")];
    let options = TowerOptions { discovery: vec![files.discovery()], flags, ..TowerOptions::default() };
    let mut tower = Tower::start(options).await?;
    tower.wait_ready(SOON).await?;
    upload(&tower, "web", document("web", 1000)).await?;
    upload(&tower, "ads", document("ads", 1000)).await?;
    let kept = tower.data().join("registry.snapshot");
    eventually(SOON, "what was published is kept", async || {
        let bytes = std::fs::read(&kept)?;
        ensure!(bytes.windows(8).any(|part| part == b"ads-team"), "not yet");
        Ok(())
    })
    .await;
    tower.kill();

    // The first entry issues the admin's token; the second uploads web@1.
    let entry = "tower/log/0/2";
    let honest = root.get(entry).await?;
    let place = honest.windows(8).position(|part| part == b"web-team").context("no owner in it")?;
    let mut forged = honest.clone();
    forged[place..place + 8].copy_from_slice(b"bad-team");
    root.set(entry, &forged).await?;

    tower.restart().await?;
    eventually(SOON, "the log is refused", async || {
        let told = tower.http_get("/api/v1/log").await?.ok()?.json()?;
        let reason = told["trouble"].as_str().unwrap_or_default();
        ensure!(reason.contains("log/0/"), "{told}");
        Ok(())
    })
    .await;
    let page = tower.http_get("/").await?.ok()?.body;
    ensure!(page.contains("NOT FOLLOWED, and nothing can be changed: ") && page.contains("log/0/"), "{page}");
    for service in ["web", "ads"] {
        let told = tower.http_get(&format!("/api/v1/services/{service}/versions")).await?.ok()?.json()?;
        assert_eq!(told["versions"][0]["owner"], format!("{service}-team"), "{told}");
    }

    root.set(entry, &honest).await?;
    tower.kill();
    tower.restart().await?;
    tower.wait_ready(SOON).await?;
    upload(&tower, "web", document("web", 2000)).await?;
    Ok(())
}
