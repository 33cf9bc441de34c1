//! Many services with documents: what a log of them takes on disk, how long Tower needs to begin with it, from
//! its first entry and from a checkpoint, its memory, and how long people wait who ask about services.

mod documents;
mod fill;

use std::{fs, io, path::Path, path::PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower_common::clock;
use tower_tests::{
    Beacon, BeaconOptions, EndpointFiles, Mode, Protocol, Tower, TowerOptions, Upstream, ZooKeeper,
};

use self::documents::name;
use crate::{
    activation::{SERVICE, Subject, note},
    figures::{Report, millis},
    mesh::{self, until},
};

/// Questions of each kind.
const QUESTIONS: usize = 200;

/// Activations with all these services configured.
const ACTIVATIONS: usize = 50;

/// How many services there are, and where.
#[derive(Debug, Clone, Args)]
pub struct Size {
    /// Services
    #[arg(long, default_value_t = 10_000)]
    pub services: usize,
    /// Versions of each, all of which were activated one after the other
    #[arg(long, default_value_t = 3)]
    pub versions: usize,
    /// Endpoints of each
    #[arg(long, default_value_t = 3)]
    pub endpoints: usize,
    /// A folder in which the log is made once and kept for further runs; a temporary one if not given
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

/// Measures all of it in each run.
pub async fn run(report: &mut Report, size: &Size) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let filled = size.keep.clone().unwrap_or_else(|| folder.path().to_owned());
    let start = clock::monotonic();
    fill::fill(&filled, size.clone()).await?;
    report.note("registry_fill_s", start.elapsed().as_secs_f64());
    let zookeeper = ZooKeeper::start().await?;
    let mesh = mesh::Size { services: size.services, endpoints: size.endpoints };
    let registered = mesh::register(&zookeeper, mesh).await?;
    let upstream = Upstream::start("bench").await?;
    registered.create(&format!("discovery/{SERVICE}"), b"").await?;
    registered.create(&format!("discovery/{SERVICE}/prod"), b"").await?;
    registered.create(&format!("discovery/{SERVICE}/prod/{}", upstream.address()), b"").await?;
    let nothing = EndpointFiles::new()?;
    for _ in 0..report.runs {
        let data = TempDir::new()?;
        copy(&filled, data.path()).context("the log cannot be copied")?;
        let of = |discovery| TowerOptions {
            data_dir: Some(data.path().to_owned()),
            discovery: vec![discovery],
            ..Default::default()
        };
        let mut tower = begin(report, "registry_from_log", of(nothing.discovery())).await?;
        let checkpoints = data.path().join("log/checkpoints");
        until("there is a checkpoint", async || Ok(bytes(&checkpoints)? > 0)).await?;
        report.note("registry_checkpoint_mib", mib(bytes(&checkpoints)?));
        ensure!(tower.terminate().await?.success(), "Tower did not end in good order");
        report.note("registry_log_mib", mib(bytes(&data.path().join("log"))?));
        let mut tower = begin(report, "registry_from_checkpoint", of(nothing.discovery())).await?;
        ensure!(tower.terminate().await?.success(), "Tower did not end in good order");

        let tower = begin(report, "registry_with_sources", of(registered.discovery("hostport"))).await?;
        ask(report, &tower, size).await?;
        activate(report, &tower).await?;
    }
    Ok(())
}

/// Starts a Tower, and returns when all that the log comes to has been published.
async fn begin(report: &mut Report, name: &str, options: TowerOptions) -> Result<Tower> {
    let start = clock::monotonic();
    let tower = Tower::start(options).await?;
    until("Tower is ready", async || Ok(tower.http_get("/readyz").await?.status == 200)).await?;
    report.note(&format!("{name}_exec_to_ready_ms"), millis(start.elapsed()));
    let rss = tower.metric("process_resident_memory_bytes").await?.unwrap_or_default();
    report.note(&format!("{name}_rss_mib"), rss / f64::from(1 << 20));
    Ok(tower)
}

/// Asks what people and tools ask.
async fn ask(report: &mut Report, tower: &Tower, size: &Size) -> Result<()> {
    let mut pages = Vec::new();
    let mut next = String::new();
    for _ in 0..QUESTIONS {
        let path = format!("/api/v1/services?limit=100{next}");
        let told = timed(&mut pages, tower, &path, None).await?;
        let cursor = told["next"].as_str().map(|cursor| format!("&cursor={cursor}"));
        next = cursor.unwrap_or_default();
    }
    note(report, "registry_list_page", pages)?;
    let (mut found, mut described, mut planned) = (Vec::new(), Vec::new(), Vec::new());
    for question in 0..QUESTIONS {
        let number = question * 7919 % size.services;
        let service = name(number);
        let path = format!("/api/v1/services?search=e-{:04}&sort=changed", number / 10);
        let told = timed(&mut found, tower, &path, None).await?;
        ensure!(told["services"].as_array().is_some_and(|found| !found.is_empty()), "{told}");
        timed(&mut described, tower, &format!("/api/v1/services/{service}"), None).await?;
        let path = format!("/api/v1/services/{service}/plan");
        let told = timed(&mut planned, tower, &path, Some(&json!({ "version": 1 }))).await?;
        ensure!(told["release"].is_string(), "{told}");
    }
    note(report, "registry_list_search", found)?;
    note(report, "registry_describe", described)?;
    note(report, "registry_plan", planned)
}

/// Activates, with a Beacon and an Envoy that have all services.
async fn activate(report: &mut Report, tower: &Tower) -> Result<()> {
    let start = clock::monotonic();
    let beacon = Beacon::start(BeaconOptions::of(tower.grpc())).await?;
    until("the Beacon is ready", async || Ok(beacon.http_get("/ready").await?.status == 200)).await?;
    report.note("registry_beacon_exec_to_ready_ms", millis(start.elapsed()));
    let rss = beacon.metric("process_resident_memory_bytes").await?.unwrap_or_default();
    report.note("registry_beacon_rss_mib", rss / f64::from(1 << 20));
    let start = clock::monotonic();
    let envoy = beacon.envoy(Mode::Delta).await?;
    report.note("registry_envoy_exec_to_live_ms", millis(start.elapsed()));
    let mut subject = Subject { tower, caller: envoy.caller(Protocol::Http1), next: 0 };
    let at_once = json!({ "at_once": true, "reason": "a benchmark" });
    subject.measure(report, "registry_activation", &at_once, ACTIVATIONS).await
}

/// Asks, and notes how long the answer took, in milliseconds.
async fn timed(took: &mut Vec<f64>, tower: &Tower, path: &str, body: Option<&Value>) -> Result<Value> {
    let start = clock::monotonic();
    let reply = match body {
        Some(body) => tower.http_post(path, body).await?,
        None => tower.http_get(path).await?,
    };
    took.push(millis(start.elapsed()));
    ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.body);
    reply.json()
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The sizes of all files in a folder; nothing, if it is not there.
fn bytes(folder: &Path) -> io::Result<u64> {
    let mut sum = 0;
    if folder.exists() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let data = entry.metadata()?;
            sum += if data.is_dir() { bytes(&entry.path())? } else { data.len() };
        }
    }
    Ok(sum)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.metadata()?.is_dir() {
            fs::create_dir(&to)?;
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
