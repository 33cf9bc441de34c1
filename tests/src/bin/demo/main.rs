//! `make demo`: the whole pipeline on one machine, from a registration to an answer through Envoy.

#![expect(clippy::print_stdout, reason = "what this program prints is for people")]

mod source;

use std::{
    net::{SocketAddr, TcpListener},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tower_tests::{
    Beacon, BeaconOptions, BootstrapOptions, Caller, Envoy, Mode, Protocol, Tally, Tower, TowerOptions,
    Upstream, poll, ports::free_address,
};

use crate::source::Source;

/// What the upstreams register as.
const SERVICE: &str = "hello";

/// What a caller asks for.
const HOST: &str = "hello.mesh";

/// How many requests show who answers.
const REQUESTS: usize = 20;

/// What takes longer than this is broken, not slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Shows Tower at work on this machine: two upstreams register, Envoy finds them, one goes.
#[derive(Parser)]
struct Options {
    /// Register in a real ZooKeeper, instead of a folder of files
    #[arg(long)]
    zookeeper: bool,
    /// End after the show, instead of waiting for Ctrl-C
    #[arg(long)]
    once: bool,
    /// Where to listen: on the documented ports, or on any that are free
    #[arg(long, value_enum, default_value_t = Ports::Documented)]
    ports: Ports,
}

#[derive(Clone, Copy, ValueEnum)]
enum Ports {
    Documented,
    Ephemeral,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    // Whichever ends first: all that runs is owned by the show, and ends with it.
    let outcome = tokio::select! {
        outcome = show(&options) => outcome,
        outcome = interrupted() => outcome,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn interrupted() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.context("cannot wait for Ctrl-C")?,
        _ = terminate.recv() => {}
    }
    println!("\nEnding all of it.");
    Ok(())
}

async fn show(options: &Options) -> Result<()> {
    let addresses = Addresses::choose(options.ports)?;
    let zookeeper = if options.zookeeper { "ZooKeeper, " } else { "" };
    println!("Starting {zookeeper}Tower, a Beacon and an Envoy …");
    let mut source = Source::start(options.zookeeper).await?;
    let tower = Tower::start(TowerOptions {
        discovery: vec![source.discovery()],
        grpc_listen: Some(addresses.grpc),
        http_listen: Some(addresses.http),
        ..TowerOptions::default()
    })
    .await?;
    let beacon = Beacon::start(BeaconOptions {
        node_id: "demo".to_owned(),
        xds_listen: Some(addresses.xds),
        admin_listen: Some(addresses.admin),
        egress_listen: Some(addresses.egress),
        ..BeaconOptions::of(tower.grpc())
    })
    .await?;
    let envoy = start_envoy(&beacon, addresses.egress).await?;
    let caller = envoy.caller(Protocol::Http1);

    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    println!("\nalpha ({}) and beta ({}) register as {SERVICE}", alpha.address(), beta.address());
    let start = Instant::now();
    source.add(&alpha).await?;
    source.add(&beta).await?;
    tell(start, "both are served", &answers(&caller, &["alpha", "beta"]).await?);

    println!("\nbeta deregisters, and keeps running");
    let start = Instant::now();
    source.remove(&beta).await?;
    tell(start, "the traffic has moved", &answers(&caller, &["alpha"]).await?);

    if options.once {
        return Ok(());
    }
    source.add(&beta).await?;
    answers(&caller, &["alpha", "beta"]).await?;
    println!("\nbeta is back: alpha is stable, beta is canary. In another terminal:");
    println!(
        "  export PCLOUD_TOKEN_FILE={} PATH=$PWD/target/debug:$PATH",
        tower.data().join("admin.token").display()
    );
    println!("  export PCLOUD_TOWER=http://{}", tower.http());
    println!("  pcloud lint -f docs/examples/hello.yaml");
    println!("  pcloud version upload -f docs/examples/hello.yaml");
    println!("  pcloud activate {SERVICE}@1 --wait");
    println!("  pcloud traffic set {SERVICE} stable=90 canary=10 --reason 'a try' --wait");
    println!("  pcloud rollback {SERVICE} --reason 'seen enough' --wait");
    println!("\nLook around:");
    println!("  Tower's page     http://{}/  (sign in with what is in that admin.token)", tower.http());
    println!("  Tower's sources  http://{}/api/v1/sources", tower.http());
    println!("  Tower's metrics  http://{}/metrics", tower.http());
    println!("  Beacon's admin   http://{}/", beacon.admin());
    println!("  Envoy's admin    http://{}/", envoy.admin());
    println!("  a request        curl -H 'Host: {HOST}' http://{}/", addresses.egress);
    println!("  registrations    {}", source.whereabouts());
    println!("\nCtrl-C ends all of it.");
    std::future::pending().await
}

async fn start_envoy(beacon: &Beacon, egress: SocketAddr) -> Result<Envoy> {
    let options = BootstrapOptions {
        mode: Mode::Delta,
        socket: None,
        node_id: "demo-envoy".to_owned(),
        // The Beacon's --egress-listen decides.
        egress_port: None,
    };
    let bootstrap = beacon.bootstrap(&options).await?;
    let envoy = Envoy::start(&options.node_id, &bootstrap, Some(egress.port())).await?;
    envoy.wait_ready(PATIENCE).await?;
    Ok(envoy)
}

/// Sends requests until exactly these upstreams answer.
async fn answers(caller: &Caller<'_>, names: &[&str]) -> Result<Tally> {
    poll::until(PATIENCE, format!("{} answer", names.join(" and ")), async || {
        let tally = caller.tally(HOST, REQUESTS).await?;
        ensure!(tally.is_exactly(names), "of {REQUESTS} requests: {tally}");
        Ok(tally)
    })
    .await
}

fn tell(start: Instant, what: &str, tally: &Tally) {
    let elapsed = start.elapsed().as_millis();
    println!("  {elapsed} ms later {what}; {REQUESTS} requests to {HOST}: {tally}");
}

/// Where everything listens.
struct Addresses {
    grpc: SocketAddr,
    http: SocketAddr,
    xds: SocketAddr,
    admin: SocketAddr,
    egress: SocketAddr,
}

impl Addresses {
    fn choose(ports: Ports) -> Result<Self> {
        let address = |what, port| match ports {
            Ports::Documented => available(what, port),
            Ports::Ephemeral => Ok(free_address()),
        };
        Ok(Self {
            grpc: address("Tower's gRPC", 5870)?,
            http: address("Tower's HTTP", 5871)?,
            xds: address("Beacon's xDS", 5872)?,
            admin: address("Beacon's admin", 5873)?,
            egress: address("Envoy's egress", 5875)?,
        })
    }
}

/// Asked before anything starts: that a server could not bind its socket would be the same news, but
/// later and from the depth of a log.
fn available(what: &str, port: u16) -> Result<SocketAddr> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpListener::bind(address).with_context(|| {
        format!(
            "cannot use {address} for {what}: stop what listens there (another demo?), \
             or run the demo with --ports ephemeral"
        )
    })?;
    Ok(address)
}
