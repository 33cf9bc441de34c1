//! Benchmarks: each scenario is a sub-command, prints what it measured, and with `--json` ends in one
//! JSON object.
//!
//! Everything is real: the processes as a user runs them, ZooKeeper, Envoy, traffic. Absolute figures
//! move from machine to machine; compare runs on the same one.

mod activation;
mod beacon;
mod endtoend;
mod figures;
mod load;
mod log;
mod mesh;
mod registry;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};

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
    /// A registration in ZooKeeper until traffic through Envoy follows
    Endtoend {
        /// Registrations in each run
        #[arg(long, default_value_t = 200)]
        changes: usize,
    },
    /// An activation until traffic through Envoy follows
    Activation {
        /// Activations at once in each run
        #[arg(long, default_value_t = 100)]
        activations: usize,
    },
    /// A Beacon's memory, CPU and start, with many services
    Beacon(mesh::Size),
    /// Tower's start and memory, with many services
    Load(mesh::Size),
    /// Appending to the event log, embedded and in ZooKeeper, and reading it
    Log {
        /// Entries in each run
        #[arg(long, default_value_t = 10_000)]
        entries: u64,
    },
    /// Tower's start, memory and answers, with many services that have documents
    Registry(registry::Size),
    /// All of them, with their defaults
    All,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.runs > 0, "--runs must be at least 1");
    let size = mesh::Size::default();
    let mut report = figures::Report::new(options.runs);
    match &options.scenario {
        Scenario::Endtoend { changes } => endtoend::run(&mut report, *changes).await?,
        Scenario::Activation { activations } => activation::run(&mut report, *activations).await?,
        Scenario::Beacon(size) => beacon::run(&mut report, *size).await?,
        Scenario::Load(size) => load::run(&mut report, *size).await?,
        Scenario::Log { entries } => log::run(&mut report, *entries).await?,
        Scenario::Registry(size) => registry::run(&mut report, size).await?,
        Scenario::All => {
            endtoend::run(&mut report, 200).await?;
            activation::run(&mut report, 100).await?;
            load::run(&mut report, size).await?;
            beacon::run(&mut report, size).await?;
            log::run(&mut report, 10_000).await?;
        }
    }
    report.print(options.json);
    Ok(())
}
