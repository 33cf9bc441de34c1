//! A registration in ZooKeeper until traffic follows: create to the first answer, delete to the first
//! refusal, through one Envoy, over and over.

use anyhow::{Context, Result};
use tower_common::clock;
use tower_tests::{Beacon, BeaconOptions, Mode, Protocol, Tower, TowerOptions, Upstream, ZooKeeper};

use crate::{
    figures::{Report, millis, quantile, sorted},
    mesh::until,
};

pub(crate) async fn run(report: &mut Report, changes: usize) -> Result<()> {
    let zookeeper = ZooKeeper::start().await?;
    let registry = zookeeper.root().await?;
    registry.create("discovery/bench/prod", b"").await?;
    let upstream = Upstream::start("bench").await?;
    let member = format!("discovery/bench/prod/{}", upstream.address());
    let tower = TowerOptions { discovery: vec![registry.discovery("hostport")], ..Default::default() };
    let tower = Tower::start(tower).await?;
    let beacon = Beacon::start(BeaconOptions::of(tower.grpc())).await?;
    for mode in Mode::AGGREGATED {
        let envoy = beacon.envoy(mode).await?;
        let caller = envoy.caller(Protocol::Http1);
        for _ in 0..report.runs {
            let (mut appear, mut vanish) = (Vec::new(), Vec::new());
            for _ in 0..changes {
                // The clock starts before the request to ZooKeeper, whose own write is in the figure.
                let start = clock::monotonic();
                registry.create(&member, b"").await?;
                let what = "an endpoint is called after its registration";
                until(what, async || Ok(caller.get("bench").await?.status == 200)).await?;
                appear.push(millis(start.elapsed()));
                let start = clock::monotonic();
                registry.delete(&member).await?;
                let what = "an endpoint is not called after its deregistration";
                until(what, async || Ok(caller.get("bench").await?.status == 503)).await?;
                vanish.push(millis(start.elapsed()));
            }
            for (what, values) in [("create_to_called", appear), ("delete_to_refused", vanish)] {
                let values = sorted(values);
                let name = |figure: &str| format!("endtoend_{}_{what}_{figure}_ms", mode.name());
                report.note(&name("p50"), quantile(&values, 0.5));
                report.note(&name("p99"), quantile(&values, 0.99));
                report.note(&name("max"), *values.last().context("--changes must be at least 1")?);
            }
        }
    }
    Ok(())
}
