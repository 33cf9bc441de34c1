//! Tower's start: from exec until it has read a mesh from ZooKeeper.

use anyhow::Result;
use tower_common::clock;
use tower_tests::{Tower, TowerOptions, ZooKeeper};

use crate::{
    figures::{Report, millis},
    mesh::{Size, register, until},
};

/// Runs the scenario.
///
/// # Errors
/// If something does not work.
pub async fn run(report: &mut Report, size: Size) -> Result<()> {
    let zookeeper = ZooKeeper::start().await?;
    let registry = register(&zookeeper, size).await?;
    for _ in 0..report.runs {
        let options = TowerOptions { discovery: vec![registry.discovery("hostport")], ..Default::default() };
        let start = clock::monotonic();
        let tower = Tower::start(options).await?;
        until("Tower is ready", async || Ok(tower.http_get("/readyz").await?.status == 200)).await?;
        report.note("tower_exec_to_ready_ms", millis(start.elapsed()));
        let resources = tower.metric("tower_store_resources").await?.unwrap_or_default();
        report.note("tower_resources", resources);
        let rss = tower.metric("process_resident_memory_bytes").await?.unwrap_or_default();
        report.note("tower_rss_mib", rss / f64::from(1 << 20));
    }
    Ok(())
}
