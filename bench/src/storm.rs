//! All Beacons come back at once: to the Tower that they had, to the same Tower after it was killed and started
//! again, and to another one; when nothing has changed meanwhile, and when one endpoint in a hundred has. What
//! counts is the time until each holds again what Tower holds, the bytes that takes, and that Tower stays calm.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;

use crate::{
    figures::{Report, millis},
    fleet::{Beacons, Counted, Fleet, LIMIT, WatchedTower},
    floor::Floor,
    mesh::Size,
    swarm::{
        Swarm,
        connection::{Kind, Target},
    },
};

/// One in so many endpoints changes while all are away.
const CHANGED: usize = 100;

/// Which storms there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storms {
    /// All of them.
    All,
    /// To the Tower that they had, when nothing has changed.
    Same,
}

/// Runs the scenario.
///
/// # Errors
/// If a Beacon ends up with something else than Tower has, or something does not work.
pub async fn run(report: &mut Report, beacons: Beacons, size: Size, storms: Storms) -> Result<()> {
    let fleet = Fleet::new(beacons, size).await?;
    let count = beacons.beacons;
    let mut round = 0;
    for _ in 0..report.runs {
        report.note("beacons", count as f64);
        report.note("resources", (size.services * (size.endpoints + 1)) as f64);
        let mut tower = fleet.tower().await?;
        let other = fleet.tower().await?;
        let swarm = Swarm::start(count)?;
        tower.fill(&swarm).await?;
        for changed in [false, true] {
            let what = |to: &str| format!("{to}_{}", if changed { "one_percent" } else { "unchanged" });
            let mut away = async |tower: &WatchedTower| {
                swarm.disconnect(0..count)?;
                tower.until_connected(0).await?;
                if changed {
                    round += 1;
                    fleet.mesh.change(CHANGED, round).await?;
                }
                anyhow::Ok(())
            };
            away(&tower).await?;
            tower.settled(&fleet.mesh).await?;
            storm(report, &fleet, &tower, &swarm, &what("same")).await?;
            if storms == Storms::Same {
                break;
            }

            away(&tower).await?;
            tower.tower.kill();
            tower.tower.restart().await?;
            tower.tower.wait_ready(LIMIT).await?;
            tower.settled(&fleet.mesh).await?;
            storm(report, &fleet, &tower, &swarm, &what("restarted")).await?;

            away(&tower).await?;
            other.settled(&fleet.mesh).await?;
            storm(report, &fleet, &other, &swarm, &what("other")).await?;

            // Back home, for the next round.
            swarm.disconnect(0..count)?;
            other.until_connected(0).await?;
            tower.fill(&swarm).await?;
        }
        swarm.verify(fleet.mesh.resources(), LIMIT).await?;
        drop((tower, other));
        if let Some(secrets) = fleet.secrets() {
            handshakes(report, &fleet, &swarm, secrets).await?;
        }
    }
    Ok(())
}

async fn storm(
    report: &mut Report,
    fleet: &Fleet,
    tower: &WatchedTower,
    swarm: &Swarm,
    what: &str,
) -> Result<()> {
    let count = swarm.count;
    let process = tower.process()?;
    let trouble = || {
        let board = &swarm.board;
        (board.ends.load(Relaxed) + board.goodbyes.load(Relaxed) + board.faults.load(Relaxed)) as f64
    };
    let (resident, troubles) = (process.resident(), trouble());
    let before = Counted::now(process, swarm);
    let start = swarm.connect(0..count, &tower.target)?;
    swarm.until_equal(count, LIMIT).await?;
    let span = Counted::now(process, swarm).since(before);
    swarm.verify(fleet.mesh.resources(), LIMIT).await?;
    report.note(&format!("{what}_all_equal_ms"), millis(swarm.board.last_equal_since(start)));
    report.note(&format!("{what}_bytes_per_beacon"), span.bytes / count as f64);
    report.note(&format!("{what}_state_bytes_per_beacon"), span.payload / count as f64);
    report.note(&format!("{what}_cpu_us_per_beacon"), span.cpu * 1e6 / count as f64);
    report.note(&format!("{what}_troubles"), trouble() - troubles);
    report.note(
        &format!("{what}_memory_kib_per_beacon"),
        (process.resident() - resident) / 1024.0 / count as f64,
    );
    Ok(())
}

/// As many handshakes and nothing else, with a process that does nothing but those.
async fn handshakes(
    report: &mut Report,
    fleet: &Fleet,
    swarm: &Swarm,
    secrets: &std::path::Path,
) -> Result<()> {
    let count = swarm.count;
    swarm.disconnect(0..count)?;
    swarm.until_equal(0, LIMIT).await?;
    let floor = Floor::handshakes(secrets)?;
    let cpu = floor.process().cpu();
    let target = Target { address: floor.address, tls: fleet.client(), kind: Kind::Handshake };
    let start = swarm.connect(0..count, &target)?;
    swarm.until_equal(count, LIMIT).await?;
    let took = millis(swarm.board.last_equal_since(start));
    let cpu = floor.process().cpu().saturating_sub(cpu).as_secs_f64() * 1e6 / count as f64;
    report.note("bare_handshakes_ms", took);
    report.note("bare_handshakes_cpu_us_per_beacon", cpu);
    if let Some(same) = report.last("same_unchanged_all_equal_ms") {
        report.note("same_unchanged_over_bare_handshakes", same / took);
    }
    swarm.disconnect(0..count)
}
