//! Some Beacons stop reading while much changes. What counts is that Tower's memory does not grow with them,
//! that the others do not notice, and that they hold what Tower holds soon after they read again.

use anyhow::{Context, Result, ensure};
use tokio::time::{Duration, sleep};
use tower_common::clock;

use crate::{
    churn::{Rate, keep_changing},
    figures::{Report, millis, quantile, sorted},
    fleet::{Beacons, Fleet, LIMIT},
    machine::socket_memory,
    mesh::{Size, extra},
    swarm::Swarm,
};

/// A single change after all the others, to see whether those who read are held up.
const PROBES: usize = 5;

/// Runs the scenario: so many of the Beacons stop.
///
/// # Errors
/// If a Beacon ends up with something else than Tower has, or something does not work.
pub async fn run(
    report: &mut Report,
    beacons: Beacons,
    size: Size,
    stopped: usize,
    rate: Rate,
) -> Result<()> {
    let count = beacons.beacons;
    ensure!(stopped < count, "--stopped {stopped} leaves none of {count} Beacons");
    let fleet = Fleet::new(beacons, size).await?;
    for run in 0..report.runs {
        let tower = fleet.tower().await?;
        let process = tower.process()?;
        let swarm = Swarm::start(count)?;
        let alone = process.resident();
        tower.fill(&swarm).await?;
        sleep(Duration::from_secs(2)).await;
        let (resident, sockets) = (process.resident(), socket_memory());
        swarm.pause(0..stopped, true)?;
        let total = Duration::from_secs(rate.seconds.into());
        keep_changing(&fleet.mesh, &swarm, rate, 2 * run, total).await?;
        let mut lasts = Vec::new();
        for probe in 0..PROBES {
            let address = extra(2 * run + 1, probe);
            let mark = swarm.marks.set(&address);
            fleet.mesh.add(probe, &address).await?;
            swarm.until_seen(mark, count - stopped, LIMIT).await?;
            lasts.push(millis(swarm.marks.get(mark).context("a mark is lost")?.last));
        }
        let appended = tower.tower.metric("tower_log_appended_bytes_total").await?.unwrap_or_default();
        report.note("beacons", count as f64);
        report.note("stopped", stopped as f64);
        report.note("sent_meanwhile_mib", appended / f64::from(1 << 20));
        let log = tower.tower.metric("tower_log_bytes").await?.unwrap_or_default();
        report.note("shared_log_mib", log / f64::from(1 << 20));
        report.note("bytes_per_stream_before", (resident - alone) / count as f64);
        report.note("bytes_per_stream_while_stopped", (process.resident() - alone) / count as f64);
        report.note("growth_bytes_per_stopped", (process.resident() - resident) / stopped as f64);
        report.note("socket_bytes_per_stopped", (socket_memory() - sockets) / stopped as f64);
        report.note("others_last_ms", quantile(&sorted(lasts), 0.5));
        let start = clock::monotonic();
        swarm.pause(0..stopped, false)?;
        tower.settled(&fleet.mesh).await?;
        swarm.until_equal(count, LIMIT).await?;
        report.note("all_equal_after_ms", millis(start.elapsed()));
        swarm.verify(fleet.mesh.resources(), LIMIT).await?;
    }
    Ok(())
}
