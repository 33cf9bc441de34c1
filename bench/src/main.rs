//! Benchmarks: each scenario is a sub-command, prints what it measured, and with `--json` ends in one
//! JSON object.
//!
//! Everything is real: the processes as a user runs them, ZooKeeper, Envoy, traffic; only Beacons by the
//! thousand are simulated. Absolute figures move from machine to machine; compare runs on the same one.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use tower_bench::{
    activation, all, beacon,
    churn::{self, Rate},
    cilium, endtoend, fanout,
    figures::Report,
    fleet::Beacons,
    floor, load, log,
    mesh::Size,
    peers, registry, slow, soak,
    storm::{self, Storms},
};

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
        #[command(flatten)]
        mesh: SmallMesh,
        /// Changes in each run
        #[arg(long, default_value_t = 15)]
        changes: usize,
    },
    /// Endpoints come and go all the time, at a rate
    Churn {
        #[command(flatten)]
        beacons: Beacons,
        #[command(flatten)]
        mesh: SmallMesh,
        #[command(flatten)]
        rate: Rate,
    },
    /// All Beacons come back at once
    Storm {
        #[command(flatten)]
        beacons: Beacons,
        #[command(flatten)]
        mesh: Size,
    },
    /// Some Beacons stop reading while much changes
    Slow {
        #[command(flatten)]
        beacons: Beacons,
        #[command(flatten)]
        mesh: SmallMesh,
        /// How many stop
        #[arg(long, default_value_t = 500)]
        stopped: usize,
        #[command(flatten)]
        rate: Rate,
    },
    /// The fan-out, and the storm beside bare handshakes, with mutual TLS
    Tls {
        /// Beacons
        #[arg(long, default_value_t = 1000)]
        beacons: usize,
    },
    /// A steady life for a while: memory is flat
    Soak {
        #[command(flatten)]
        beacons: Beacons,
        #[command(flatten)]
        mesh: SmallMesh,
        /// Endpoints that come or go, each second
        #[arg(long, default_value_t = 100)]
        rate: u32,
        /// How long, in each run
        #[arg(long, default_value_t = 3600)]
        seconds: u32,
    },
    /// A registration in ZooKeeper until all Beacons have it, and traffic through Envoy follows
    Endtoend {
        /// Registrations in each run
        #[arg(long, default_value_t = 200)]
        changes: usize,
        /// Simulated Beacons beside the one with the Envoy
        #[arg(long, default_value_t = 1000)]
        beacons: usize,
    },
    /// An activation until traffic through Envoy follows
    Activation {
        /// Activations at once in each run
        #[arg(long, default_value_t = 100)]
        activations: usize,
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
    /// Tower's start, memory and answers, with many services that have documents
    Registry(registry::Size),
    /// The fan-out beside go-control-plane, nats-server and etcd; needs Go
    Peers {
        #[command(flatten)]
        options: peers::Options,
        /// Write the tables to this file
        #[arg(long)]
        document: Option<PathBuf>,
    },
    /// A stream for each pod against a Beacon for each node, in clusters of 500 and 5,000 nodes
    Cilium {
        /// How long, in each run
        #[arg(long, default_value_t = 10)]
        seconds: u32,
        /// Write the table to this file
        #[arg(long)]
        document: Option<PathBuf>,
    },
    /// A short form of all of them
    All {
        /// Write tables and curves to this file, and the curves beside it
        #[arg(long)]
        document: Option<PathBuf>,
        /// Beacons, at most
        #[arg(long, default_value_t = 16_000)]
        beacons: usize,
    },
    /// What scenarios compare with; started by them
    #[command(hide = true)]
    Floor(floor::Options),
}

/// A mesh whose size is not what is measured.
#[derive(Debug, Clone, Copy, clap::Args)]
struct SmallMesh {
    /// Services
    #[arg(long, default_value_t = 100)]
    services: usize,
    /// Endpoints of each
    #[arg(long, default_value_t = 10)]
    endpoints: usize,
}

impl SmallMesh {
    fn size(self) -> Size {
        Size { services: self.services, endpoints: self.endpoints }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.runs > 0, "--runs must be at least 1");
    let mut report = Report::new("", options.runs);
    match options.scenario {
        Scenario::Fanout { beacons, mesh, changes } => {
            report.name("fanout");
            fanout::run(&mut report, beacons, mesh.size(), changes).await?;
        }
        Scenario::Churn { beacons, mesh, rate } => {
            report.name("churn");
            churn::run(&mut report, beacons, mesh.size(), rate).await?;
        }
        Scenario::Storm { beacons, mesh } => {
            report.name("storm");
            storm::run(&mut report, beacons, mesh, Storms::All).await?;
        }
        Scenario::Slow { beacons, mesh, stopped, rate } => {
            report.name("slow");
            slow::run(&mut report, beacons, mesh.size(), stopped, rate).await?;
        }
        Scenario::Tls { beacons } => {
            report.name("tls");
            let beacons = Beacons { beacons, tls: true };
            fanout::run(&mut report, beacons, fanout::USUAL, fanout::CHANGES).await?;
            storm::run(&mut report, beacons, Size::default(), Storms::All).await?;
        }
        Scenario::Soak { beacons, mesh, rate, seconds } => {
            report.name("soak");
            soak::run(&mut report, beacons, mesh.size(), Rate { rate, seconds }).await?;
        }
        Scenario::Endtoend { changes, beacons } => {
            report.name("endtoend");
            endtoend::run(&mut report, changes, beacons).await?;
        }
        Scenario::Beacon(size) => {
            report.name("beacon");
            beacon::run(&mut report, size).await?;
        }
        Scenario::Load(size) => {
            report.name("load");
            load::run(&mut report, size).await?;
        }
        Scenario::Log { entries } => {
            report.name("log");
            log::run(&mut report, entries).await?;
        }
        Scenario::Activation { activations } => {
            report.name("activation");
            activation::run(&mut report, activations).await?;
        }
        Scenario::Registry(size) => {
            report.name("registry");
            registry::run(&mut report, &size).await?;
        }
        Scenario::All { document, beacons } => {
            return all::run(options.runs, beacons, options.json, document.as_deref()).await;
        }
        Scenario::Peers { options: wanted, document } => {
            let cases = peers::run(&wanted, options.runs).await?;
            return tell(
                options.json,
                document,
                &peers::table::render(&cases),
                &peers::table::object(&cases),
            );
        }
        Scenario::Cilium { seconds, document } => {
            let rows = cilium::run(options.runs, seconds).await?;
            return tell(options.json, document, &cilium::render(&rows), &cilium::object(&rows));
        }
        Scenario::Floor(options) => return floor::run(&options).await,
    }
    report.print(options.json);
    Ok(())
}

/// Prints tables, writes them to a file if there is one, and ends with an object if that is wanted.
#[allow(clippy::print_stdout, reason = "figures are the program's output")]
fn tell(json: bool, document: Option<PathBuf>, page: &str, object: &serde_json::Value) -> Result<()> {
    if let Some(path) = document {
        std::fs::write(&path, page).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    println!("{page}");
    if json {
        println!("{object}");
    }
    Ok(())
}
