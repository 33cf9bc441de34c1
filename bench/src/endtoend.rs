//! A registration in ZooKeeper until traffic follows, through one Envoy, over and over: from the create of a
//! service's first endpoint to the last of many Beacons, and to the first answer; and from its delete to the
//! first refusal.
//!
//! Deletes are measured without holds. They include the half second in which the guard waits for the same
//! address to come back, so there are fewer of them.

use anyhow::{Context, Result, ensure};
use tower_common::clock;
use tower_tests::{Beacon, BeaconOptions, Mode, Protocol, Tower, TowerOptions, Upstream, ZooKeeper};

use crate::{
    figures::{Report, millis, quantile, sorted},
    fleet::LIMIT,
    machine::allow_files,
    mesh::until,
    swarm::{
        Swarm,
        connection::{Kind, Target},
    },
};

/// One delete for so many creates.
const CREATES_PER_DELETE: usize = 10;

/// Runs the scenario, with so many simulated Beacons beside the real one.
///
/// # Errors
/// If something does not work.
pub async fn run(report: &mut Report, changes: usize, beacons: usize) -> Result<()> {
    allow_files(beacons)?;
    let zookeeper = ZooKeeper::start().await?;
    let registry = zookeeper.root().await?;
    let upstream = Upstream::start("bench").await?;
    // Each create is the first of its service, which is known before.
    let services = changes * report.runs * Mode::AGGREGATED.len();
    for number in 0..services {
        registry.create(&format!("discovery/bench-{number}/prod"), b"").await?;
    }
    let tower = Tower::start(TowerOptions {
        discovery: vec![registry.discovery("hostport")],
        flags: vec!["--guard-hold=0s".to_owned()],
        ..Default::default()
    })
    .await?;
    tower.wait_ready(LIMIT).await?;
    let swarm = Swarm::start(beacons)?;
    swarm.connect(0..beacons, &Target { address: tower.grpc(), tls: None, kind: Kind::Tower })?;
    swarm.until_equal(beacons, LIMIT).await?;
    let beacon = Beacon::start(BeaconOptions::of(tower.grpc())).await?;
    let mut numbers = 0..services;
    for mode in Mode::AGGREGATED {
        let envoy = beacon.envoy(mode).await?;
        let caller = envoy.caller(Protocol::Http1);
        let last = format!("bench-{}", services - 1);
        until("Envoy knows all services", async || Ok(caller.get(&last).await?.status == 503)).await?;
        for _ in 0..report.runs {
            let (mut arrive, mut appear, mut vanish) = (Vec::new(), Vec::new(), Vec::new());
            for (round, number) in numbers.by_ref().take(changes).enumerate() {
                let service = format!("bench-{number}");
                let member = format!("discovery/{service}/prod/{}", upstream.address());
                // The clock starts before the request to ZooKeeper, whose own write is in the figure.
                let mark = swarm.marks.set(&upstream.address().to_string());
                let start = clock::monotonic();
                registry.create(&member, b"").await?;
                let what = "an endpoint is called after its registration";
                until(what, async || Ok(caller.get(&service).await?.status == 200)).await?;
                appear.push(millis(start.elapsed()));
                swarm.until_seen(mark, beacons, LIMIT).await?;
                arrive.push(millis(swarm.marks.get(mark).context("a mark is lost")?.last));
                if round % CREATES_PER_DELETE == 0 {
                    let start = clock::monotonic();
                    registry.delete(&member).await?;
                    let what = "an endpoint is not called after its deregistration";
                    until(what, async || Ok(caller.get(&service).await?.status == 503)).await?;
                    vanish.push(millis(start.elapsed()));
                }
            }
            let all = [
                ("create_to_last_beacon", arrive),
                ("create_to_called", appear),
                ("delete_to_refused", vanish),
            ];
            for (what, values) in all {
                let values = sorted(values);
                let name = |figure: &str| format!("endtoend_{}_{what}_{figure}_ms", mode.name());
                report.note(&name("p50"), quantile(&values, 0.5));
                report.note(&name("p99"), quantile(&values, 0.99));
                report.note(&name("max"), *values.last().context("--changes must be at least 1")?);
            }
        }
    }
    report.note("beacons", beacons as f64);
    let resources = tower.metric("tower_store_resources").await?.unwrap_or_default();
    let deleted = report.runs * Mode::AGGREGATED.len() * changes.div_ceil(CREATES_PER_DELETE);
    ensure!(resources == (2 * services - deleted) as f64, "Tower holds {resources} resources");
    swarm.verify(2 * services - deleted, LIMIT).await
}
