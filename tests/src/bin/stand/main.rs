//! A small fleet for the tests of the page: a Tower behind a proxy that can fail, Beacons with an Envoy each, and
//! upstreams. What is to happen is read from standard input, a JSON object on a line; the answer is a line on
//! standard output. Everything ends with standard input, so that nothing outlives the tests.

#![expect(clippy::print_stdout, reason = "what this program prints is for the tests that started it")]

mod fleet;

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_tests::Fault;

use crate::fleet::Fleet;

/// Runs a small fleet, and does with it what standard input says.
#[derive(Parser)]
struct Options {
    /// Beacons, each on a host of its own with an Envoy
    #[arg(long, default_value_t = 3)]
    hosts: usize,
}

/// What is to happen.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Order {
    /// The page's connections to Tower pass, hang, or are cut, and so are new ones.
    Proxy { fault: Word },
    /// Tower is killed, as by a power cut.
    KillTower,
    /// It is started again, on its ports and data.
    StartTower,
    /// These are the endpoints of a service from now on.
    Register { service: String, endpoints: Vec<Registered> },
    /// Who answers requests to this host name, through the first Envoy.
    Call { host: String, requests: usize },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Pass,
    Freeze,
    Cut,
}

/// An endpoint: an upstream of the stand by its name, or an address where nobody answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Registered {
    upstream: Option<String>,
    address: Option<std::net::SocketAddr>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stand: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<()> {
    let mut orders = lines_of_standard_input();
    let mut fleet = tokio::select! {
        fleet = Fleet::start(options.hosts) => fleet?,
        // Whoever has started this is gone already, or cannot wait.
        early = orders.recv() => return early.map_or(Ok(()), |line| bail!("too early: {line}")),
    };
    println!("{}", fleet.describe()?);
    while let Some(line) = orders.recv().await {
        let answer = match carry_out(&mut fleet, &line).await {
            Ok(answer) => answer,
            Err(error) => json!({ "error": format!("{error:#}") }),
        };
        println!("{answer}");
    }
    Ok(())
}

/// The lines of standard input, read by a thread of their own: it waits for the next one, and nobody for it.
fn lines_of_standard_input() -> mpsc::UnboundedReceiver<String> {
    let (send, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

async fn carry_out(fleet: &mut Fleet, line: &str) -> Result<Value> {
    let order: Order = serde_json::from_str(line).with_context(|| format!("not an order: {line}"))?;
    match order {
        Order::Proxy { fault } => fleet.proxy.set(match fault {
            Word::Pass => Fault::None,
            Word::Freeze => Fault::Frozen,
            Word::Cut => Fault::Cut,
        }),
        Order::KillTower => fleet.tower.kill(),
        Order::StartTower => fleet.tower.restart().await?,
        Order::Register { service, endpoints } => fleet.register(&service, &endpoints)?,
        Order::Call { host, requests } => return fleet.call(&host, requests).await,
    }
    Ok(json!({}))
}
