//! One endpoint comes, and all Beacons are to have it: from the request to ZooKeeper until each has applied it,
//! what Tower pays for each delivery, and what must be paid by anybody: the floor, measured in the same run.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::sleep;

use crate::{
    figures::{Report, millis, quantile, sorted},
    fleet::{Beacons, Counted, Fleet, LIMIT, Span, WatchedTower},
    floor::Floor,
    mesh::Size,
    swarm::{
        Swarm,
        connection::{Kind, Target},
    },
};

/// A mesh whose size is not what is measured: what a change costs does not depend on it.
pub const USUAL: Size = Size { services: 100, endpoints: 10 };

/// So many changes are enough for a figure.
pub const CHANGES: usize = 15;

/// Changes that are not counted.
const WARM_UP: usize = 2;

/// Between two changes: every Beacon has then reported the last one.
const PAUSE: Duration = Duration::from_millis(1500);

/// Runs the scenario, with so many changes in each run.
///
/// # Errors
/// If a Beacon ends up with something else than Tower has, or something does not work.
pub async fn run(report: &mut Report, beacons: Beacons, size: Size, changes: usize) -> Result<()> {
    let fleet = Fleet::new(beacons, size).await?;
    let count = beacons.beacons;
    for run in 0..report.runs {
        report.note("beacons", count as f64);
        report.note("resources", (size.services * (size.endpoints + 1)) as f64);
        let tower = fleet.tower().await?;
        let swarm = Swarm::start(count)?;
        let (cost, message) = measure(report, &fleet, &tower, &swarm, (run, changes)).await?;
        swarm.disconnect(0..count)?;
        drop(tower);
        if !beacons.tls {
            let floor = floor(report, &swarm, &message, changes).await?;
            report.note("cpu_over_floor", cost / floor);
        }
    }
    Ok(())
}

/// Returns what a delivery cost Tower, in microseconds, and what was delivered.
async fn measure(
    report: &mut Report,
    fleet: &Fleet,
    tower: &WatchedTower,
    swarm: &Swarm,
    (run, changes): (usize, usize),
) -> Result<(f64, Vec<u8>)> {
    let count = swarm.count;
    let process = tower.process()?;
    let before = process.resident();
    tower.fill(swarm).await?;
    sleep(2 * PAUSE).await;
    report.note("bytes_per_stream", (process.resident() - before) / count as f64);
    let (mut delivering, mut between) = (Span::default(), Span::default());
    let (mut times, mut lasts) = (Vec::new(), Vec::new());
    for change in 0..WARM_UP + changes {
        // Each change is of another service.
        let address = crate::mesh::extra(run, change);
        let start = Counted::now(process, swarm);
        let mark = swarm.marks.set(&address);
        fleet.mesh.add(change, &address).await?;
        swarm.until_seen(mark, count, LIMIT).await?;
        let done = Counted::now(process, swarm);
        sleep(PAUSE).await;
        if change >= WARM_UP {
            delivering += done.since(start);
            between += Counted::now(process, swarm).since(done);
            let mark = swarm.marks.get(mark).context("a mark is lost")?;
            times.extend(mark.millis.iter().copied().map(f64::from));
            lasts.push(millis(mark.last));
        }
    }
    swarm.until_equal(count, LIMIT).await?;
    swarm.verify(fleet.mesh.resources(), LIMIT).await?;
    let times = sorted(times);
    report.note("p50_ms", quantile(&times, 0.5));
    report.note("p99_ms", quantile(&times, 0.99));
    report.note("last_ms", quantile(&sorted(lasts), 0.5));
    let cost = delivering.cpu * 1e6 / delivering.messages;
    report.note("cpu_us_per_delivery", cost);
    report.note("wire_bytes_per_delivery", delivering.bytes / delivering.messages);
    report.note("swarm_cpu_us_per_delivery", delivering.swarm_cpu * 1e6 / delivering.messages);
    // Heartbeats are deliveries, too.
    let reports = between.cpu * 1e6 - between.messages * cost;
    report.note("cpu_us_per_report", reports / (between.reports + delivering.reports));
    report.note("bytes_per_stream_after", (process.resident() - before) / count as f64);
    Ok((cost, swarm.board.marked()))
}

/// The same bytes, written to as many sockets. Returns what a delivery cost, in microseconds.
async fn floor(report: &mut Report, swarm: &Swarm, message: &[u8], changes: usize) -> Result<f64> {
    let count = swarm.count;
    let mut floor = Floor::frames(count)?;
    let process = floor.process();
    swarm.connect(0..count, &Target { address: floor.address, tls: None, kind: Kind::Floor })?;
    floor.accepted()?;
    let (mut cpu, mut times, mut lasts) = (Duration::ZERO, Vec::new(), Vec::new());
    for change in 0..WARM_UP + changes {
        let mark = swarm.marks.set("floor");
        swarm.floor(mark)?;
        let before = process.cpu();
        floor.write(message)?;
        swarm.until_seen(mark, count, LIMIT).await?;
        let spent = process.cpu().saturating_sub(before);
        if change >= WARM_UP {
            cpu += spent;
            let mark = swarm.marks.get(mark).context("a mark is lost")?;
            times.extend(mark.millis.iter().copied().map(f64::from));
            lasts.push(millis(mark.last));
        }
        sleep(PAUSE / 10).await;
    }
    swarm.disconnect(0..count)?;
    let times = sorted(times);
    let cost = cpu.as_secs_f64() * 1e6 / (changes * count) as f64;
    report.note("floor_p50_ms", quantile(&times, 0.5));
    report.note("floor_p99_ms", quantile(&times, 0.99));
    report.note("floor_last_ms", quantile(&sorted(lasts), 0.5));
    report.note("floor_cpu_us_per_delivery", cost);
    Ok(cost)
}
