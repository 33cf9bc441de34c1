//! A steady life: endpoints come and go slowly, some Beacons leave and come back, for a long time. Memory must
//! be flat after its first part.

use anyhow::Result;
use tokio::time::{Duration, sleep};
use tower_common::clock;

use crate::{
    churn::{Rate, keep_changing},
    figures::Report,
    fleet::{Beacons, Fleet, LIMIT},
    mesh::Size,
    swarm::Swarm,
};

/// Each turn one Beacon in so many leaves and comes back.
const LEAVING: usize = 20;

/// How long a turn is.
const TURN: Duration = Duration::from_secs(5);

/// Runs the scenario.
///
/// # Errors
/// If a Beacon ends up with something else than Tower has, or something does not work.
pub async fn run(report: &mut Report, beacons: Beacons, size: Size, rate: Rate) -> Result<()> {
    let fleet = Fleet::new(beacons, size).await?;
    let count = beacons.beacons;
    for run in 0..report.runs {
        let tower = fleet.tower().await?;
        let process = tower.process()?;
        let swarm = Swarm::start(count)?;
        tower.fill(&swarm).await?;
        let total = Duration::from_secs(rate.seconds.into());
        let lives = async {
            let start = clock::monotonic();
            let mut resident = Vec::new();
            let mut turn = 0;
            while start.elapsed() < total {
                let size = count.div_ceil(LEAVING);
                let from = turn % LEAVING * size;
                let leaving = from.min(count)..(from + size).min(count);
                swarm.disconnect(leaving.clone())?;
                sleep(TURN / 2).await;
                swarm.connect(leaving, &tower.target)?;
                sleep(TURN / 2).await;
                resident.push(process.resident() / f64::from(1 << 20));
                // Nobody reads the marks here.
                swarm.marks.take();
                turn += 1;
            }
            anyhow::Ok(resident)
        };
        let (made, resident) = tokio::join!(keep_changing(&fleet.mesh, &swarm, rate, run, total), lives);
        made?;
        tower.settled(&fleet.mesh).await?;
        swarm.until_equal(count, LIMIT).await?;
        swarm.verify(fleet.mesh.resources(), LIMIT).await?;
        let resident = resident?;
        let half = &resident[resident.len() / 2..];
        report.note("beacons", count as f64);
        report.note("seconds", rate.seconds.into());
        report.note("rate_per_s", rate.rate.into());
        report.note("resident_half_way_mib", half.first().copied().unwrap_or_default());
        report.note("resident_at_the_end_mib", half.last().copied().unwrap_or_default());
        report.note("resident_most_mib", resident.iter().copied().fold(0.0, f64::max));
    }
    Ok(())
}
