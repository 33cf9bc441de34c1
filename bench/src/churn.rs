//! Endpoints come and go all the time, at a rate, and all Beacons are to have each change: from the request to
//! ZooKeeper until it has been applied, what Tower pays for it, and what is on the wire.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tower_common::clock;

use crate::{
    figures::{Report, quantile, sorted},
    fleet::{Beacons, Counted, Fleet, LIMIT, WatchedTower},
    mesh::{Mesh, Size, extra},
    swarm::Swarm,
};

/// How many changes, and for how long.
#[derive(Debug, Clone, Copy, Args)]
pub struct Rate {
    /// Endpoints that come or go, each second
    #[arg(long, default_value_t = 1667)]
    pub rate: u32,
    /// How long, in each run
    #[arg(long, default_value_t = 10)]
    pub seconds: u32,
}

/// Requests are made in groups, so many times a second: no clock of a process that shares its core is finer.
const GROUPS: u32 = 100;

/// An endpoint lives so long, in seconds: longer than Tower waits for one to come back that has gone.
const LIFE: u32 = 2;

/// Before figures are taken, so that as many go as come.
const WARM_UP: Duration = Duration::from_secs(LIFE as u64 + 1);

/// Requests under way, at most. ZooKeeper is behind if that is reached.
const UNDER_WAY: usize = 4096;

/// Runs the scenario.
///
/// # Errors
/// If a Beacon ends up with something else than Tower has, or something does not work.
pub async fn run(report: &mut Report, beacons: Beacons, size: Size, rate: Rate) -> Result<()> {
    let fleet = Fleet::new(beacons, size).await?;
    let count = beacons.beacons;
    for run in 0..report.runs {
        let tower = fleet.tower().await?;
        let swarm = Swarm::start(count)?;
        tower.fill(&swarm).await?;
        report.note("beacons", count as f64);
        report.note("rate_per_s", rate.rate.into());
        measure(report, &fleet.mesh, &tower, &swarm, (run, rate)).await?;
    }
    Ok(())
}

async fn measure(
    report: &mut Report,
    mesh: &Mesh,
    tower: &WatchedTower,
    swarm: &Swarm,
    (run, rate): (usize, Rate),
) -> Result<()> {
    let (count, process) = (swarm.count, tower.process()?);
    let before = process.resident();
    let figures = async {
        sleep(WARM_UP).await;
        swarm.marks.take();
        let start = Counted::now(process, swarm);
        sleep(Duration::from_secs(rate.seconds.into())).await;
        anyhow::Ok(Counted::now(process, swarm).since(start))
    };
    let total = WARM_UP + Duration::from_secs((rate.seconds + 1).into());
    let (made, measured) = tokio::join!(keep_changing(mesh, swarm, rate, run, total), figures);
    let (span, made) = (measured?, made?);
    tower.settled(mesh).await?;
    swarm.until_equal(count, LIMIT).await?;
    swarm.verify(mesh.resources(), LIMIT).await?;
    let marks = swarm.marks.take();
    let times: Vec<f64> = marks.iter().flat_map(|mark| mark.millis.iter().copied().map(f64::from)).collect();
    ensure!(!times.is_empty(), "no change came anywhere");
    // What came and went while a Beacon was behind is not sent to it.
    report.note("changes_some_were_spared", marks.iter().filter(|mark| mark.seen < count).count() as f64);
    let times = sorted(times);
    report.note("p50_ms", quantile(&times, 0.5));
    report.note("p99_ms", quantile(&times, 0.99));
    report.note("last_ms", quantile(&times, 1.0));
    report.note("made_per_s", made);
    report.note("tower_cores", span.cpu / span.seconds);
    report.note("swarm_cores", span.swarm_cpu / span.seconds);
    report.note("wire_gb_per_s", span.bytes / span.seconds / 1e9);
    report.note("deliveries_per_s_and_beacon", span.messages / span.seconds / count as f64);
    report.note("cpu_us_per_event_and_beacon", span.cpu * 1e6 / span.seconds / made / count as f64);
    report.note("bytes_per_event_and_beacon", span.bytes / span.seconds / made / count as f64);
    report.note("resident_growth_mib", (process.resident() - before) / f64::from(1 << 20));
    Ok(())
}

/// Half of the changes are endpoints that come, and half are those that came a while ago and go. Returns how
/// many there were each second.
///
/// # Errors
/// If ZooKeeper refuses.
pub async fn keep_changing(
    mesh: &Mesh,
    swarm: &Swarm,
    rate: Rate,
    round: usize,
    total: Duration,
) -> Result<f64> {
    let start = clock::monotonic();
    let mut tick = interval(Duration::from_secs(1) / GROUPS);
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut under_way = FuturesUnordered::new();
    let remove =
        |number: usize| async move { mesh.remove(number, &extra(round, number)).await }.boxed_local();
    let (mut added, mut removed, mut ticks) = (0_usize, 0_usize, 0_u32);
    while start.elapsed() < total {
        tick.tick().await;
        ticks += 1;
        let due = |ticks: u32| (rate.rate as usize * ticks as usize) / (2 * GROUPS as usize);
        let (to_add, to_remove) = (due(ticks), due(ticks.saturating_sub(LIFE * GROUPS)));
        for number in added..to_add {
            let address = extra(round, number);
            swarm.marks.set(&address);
            under_way.push(async move { mesh.add(number, &address).await }.boxed_local());
        }
        under_way.extend((removed..to_remove).map(remove));
        (added, removed) = (to_add, to_remove);
        ensure!(under_way.len() < UNDER_WAY, "ZooKeeper cannot take {} changes a second", rate.rate);
        while let Some(done) = under_way.next().now_or_never().flatten() {
            done?;
        }
    }
    while let Some(done) = under_way.next().await {
        done?;
    }
    let made = (added + removed) as f64 / start.elapsed().as_secs_f64();
    under_way.extend((removed..added).map(remove));
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok(made)
}
