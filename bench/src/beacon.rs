//! A Beacon on its host: memory, CPU when nothing happens and when endpoints change, and its start from
//! disk, always with one Envoy connected.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tower_common::clock;
use tower_tests::{Beacon, BeaconOptions, Mode, Registry, Tower, TowerOptions, ZooKeeper, eventually};

use crate::{
    figures::{Report, millis},
    mesh::{Size, folder, register, until},
};

/// How long CPU is measured.
const WINDOW: Duration = Duration::from_secs(12);

/// What the snapshot and the Envoy need to settle after a start.
const SETTLE: Duration = Duration::from_secs(8);

/// Registrations come or go this often.
const CHANGES_PER_SECOND: u32 = 10;

/// Runs the scenario.
///
/// # Errors
/// If something does not work.
pub async fn run(report: &mut Report, size: Size) -> Result<()> {
    let zookeeper = ZooKeeper::start().await?;
    let registry = register(&zookeeper, size).await?;
    let options = TowerOptions { discovery: vec![registry.discovery("hostport")], ..Default::default() };
    for _ in 0..report.runs {
        let mut tower = Tower::start(options.clone()).await?;
        let mut beacon = Beacon::start(BeaconOptions::of(tower.grpc())).await?;
        eventually(Duration::from_secs(30), "the Beacon has the mesh", async || {
            let services = beacon.metric("beacon_services").await?;
            ensure!(services == Some(size.services as f64), "{services:?} services");
            Ok(())
        })
        .await;
        let envoy = beacon.envoy(Mode::Delta).await?;
        sleep(SETTLE).await;
        report.note("beacon_rss_mib", rss_mib(&beacon).await?);
        report.note("beacon_idle_cpu_percent", cpu_percent(&beacon, sleep(WINDOW)).await?);
        let changing = cpu_percent(&beacon, change(&registry)).await?;
        report.note("beacon_10_changes_per_second_cpu_percent", changing);
        report.note("beacon_rss_after_changes_mib", rss_mib(&beacon).await?);
        let writes = beacon.metric("beacon_snapshot_writes_total").await?;
        ensure!(writes.is_some_and(|writes| writes > 0.0), "no snapshot was written");
        drop(envoy);
        beacon.terminate().await?;
        tower.kill();
        let start = clock::monotonic();
        beacon.restart().await?;
        until("the Beacon is ready", async || Ok(beacon.http_get("/ready").await?.status == 200)).await?;
        report.note("beacon_exec_to_ready_from_disk_ms", millis(start.elapsed()));
    }
    Ok(())
}

async fn change(registry: &Registry) {
    let mut tick = interval(Duration::from_secs(1) / CHANGES_PER_SECOND);
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let member = |number: usize| format!("{}/127.200.0.1:{}", folder(number), 9000 + number);
    let count = WINDOW.as_secs() as usize * CHANGES_PER_SECOND as usize;
    for number in 0..count {
        tick.tick().await;
        // Each service gains an endpoint and loses it again.
        let changed = match number % 2 {
            0 => registry.create(&member(number), b"").await,
            _ => registry.delete(&member(number - 1)).await,
        };
        changed.expect("ZooKeeper is there");
    }
}

async fn cpu_percent(beacon: &Beacon, during: impl Future<Output = ()>) -> Result<f64> {
    let before = cpu_seconds(beacon).await?;
    let start = clock::monotonic();
    during.await;
    let elapsed = start.elapsed().as_secs_f64();
    Ok((cpu_seconds(beacon).await? - before) / elapsed * 100.0)
}

async fn cpu_seconds(beacon: &Beacon) -> Result<f64> {
    beacon.metric("process_cpu_seconds_total").await?.context("no CPU time")
}

async fn rss_mib(beacon: &Beacon) -> Result<f64> {
    let rss = beacon.metric("process_resident_memory_bytes").await?.context("no memory")?;
    Ok(rss / f64::from(1 << 20))
}
