//! Benchmarks: each scenario is a sub-command, prints what it measured, and with `--json` ends in one
//! JSON object.
//!
//! Everything is real: the processes as a user runs them, ZooKeeper, Envoy, traffic; only Beacons by the
//! thousand are simulated. Absolute figures move from machine to machine; compare runs on the same one.

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use tower_bench::{beacon, endtoend, fanout, figures::Report, fleet::Beacons, floor, load, log, mesh::Size};

/// Benchmarks of Tower and Beacon.
#[derive(Debug, Parser)]
struct Options {
    /// End with one line of JSON
    #[arg(long, global = true)]
    json: bool,
    /// How often each measurement is made; medians are printed
    #[arg(long, global = true, default_value_t = 3)]
    runs: usize,
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// One endpoint comes: until each of many Beacons has it, and what that costs Tower
    Fanout {
        #[command(flatten)]
        beacons: Beacons,
        /// Services
        #[arg(long, default_value_t = 100)]
        services: usize,
        /// Endpoints of each
        #[arg(long, default_value_t = 10)]
        endpoints: usize,
        /// Changes in each run
        #[arg(long, default_value_t = 15)]
        changes: usize,
    },
    /// A registration in ZooKeeper until traffic through Envoy follows
    Endtoend {
        /// Registrations in each run
        #[arg(long, default_value_t = 200)]
        changes: usize,
    },
    /// A Beacon's memory, CPU and start, with many services
    Beacon(Size),
    /// Tower's start and memory, with many services
    Load(Size),
    /// Appending to the event log, embedded and in ZooKeeper, and reading it
    Log {
        /// Entries in each run
        #[arg(long, default_value_t = 10_000)]
        entries: u64,
    },
    /// All of them, with their defaults
    All,
    /// What scenarios compare with; started by them
    #[command(hide = true)]
    Floor(floor::Options),
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.runs > 0, "--runs must be at least 1");
    let size = Size::default();
    let new = |scenario: &str| Report::new(scenario, options.runs);
    let mut reports = Vec::new();
    match &options.scenario {
        Scenario::Fanout { beacons, services, endpoints, changes } => {
            let mut report = new("fanout");
            let size = Size { services: *services, endpoints: *endpoints };
            fanout::run(&mut report, *beacons, size, *changes).await?;
            reports.push(report);
        }
        Scenario::Endtoend { changes } => {
            let mut report = new("endtoend");
            endtoend::run(&mut report, *changes).await?;
            reports.push(report);
        }
        Scenario::Beacon(size) => {
            let mut report = new("beacon");
            beacon::run(&mut report, *size).await?;
            reports.push(report);
        }
        Scenario::Load(size) => {
            let mut report = new("load");
            load::run(&mut report, *size).await?;
            reports.push(report);
        }
        Scenario::Log { entries } => {
            let mut report = new("log");
            log::run(&mut report, *entries).await?;
            reports.push(report);
        }
        Scenario::All => {
            let mut report = new("all");
            endtoend::run(&mut report, 200).await?;
            load::run(&mut report, size).await?;
            beacon::run(&mut report, size).await?;
            log::run(&mut report, 10_000).await?;
            reports.push(report);
        }
        Scenario::Floor(options) => floor::run(options).await?,
    }
    for report in reports {
        report.print(options.json);
    }
    Ok(())
}
