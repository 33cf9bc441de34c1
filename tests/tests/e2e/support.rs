//! What every test here begins with, and how it asks who answers.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tower_tests::{Beacon, BeaconOptions, Caller, Envoy, Mode, Protocol, Tower, TowerOptions, eventually};

/// What takes longer than this is broken, not slow. What it waits for takes well under a second.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Enough for each of a few upstreams to be chosen, whatever the balancing.
const REQUESTS_PER_UPSTREAM: usize = 10;

/// A Tower and a Beacon.
pub(crate) struct Mesh {
    // Beacon first: it is dropped first, and has no lost Tower to log about.
    pub(crate) beacon: Beacon,
    pub(crate) tower: Tower,
}

impl Mesh {
    /// Both, ready.
    pub(crate) async fn start(discovery: String) -> Result<Self> {
        Self::with(TowerOptions { discovery: vec![discovery], ..TowerOptions::default() }).await
    }

    /// Both, ready, with a Tower of these options.
    pub(crate) async fn with(options: TowerOptions) -> Result<Self> {
        let tower = Tower::start(options).await?;
        tower.wait_ready(SOON).await?;
        let beacon = Beacon::start(BeaconOptions::of(tower.grpc())).await?;
        beacon.wait_ready(SOON).await?;
        Ok(Self { beacon, tower })
    }

    /// An Envoy with an aggregated stream in each variant.
    pub(crate) async fn envoys(&self) -> Result<Vec<Envoy>> {
        self.envoys_in(&Mode::AGGREGATED).await
    }

    /// An Envoy in each of these modes.
    pub(crate) async fn envoys_in(&self, modes: &[Mode]) -> Result<Vec<Envoy>> {
        let mut envoys = Vec::new();
        for mode in modes {
            envoys.push(self.beacon.envoy(*mode).await?);
        }
        Ok(envoys)
    }
}

/// A caller in each protocol through each of these Envoys.
pub(crate) fn callers(envoys: &[Envoy]) -> Vec<Caller<'_>> {
    let each = |envoy| Protocol::ALL.map(|protocol| Envoy::caller(envoy, protocol));
    envoys.iter().flat_map(each).collect()
}

/// Waits until each caller of `host` is answered by all of these upstreams and nobody else.
pub(crate) async fn answered_by(callers: &[Caller<'_>], host: &str, names: &[&str]) {
    for caller in callers {
        let what = format!("{host} is answered over {:?} by {names:?}", caller.protocol());
        eventually(SOON, what, async || still_answered_by(caller, host, names).await).await;
    }
}

/// Whether it is so now. For what must not have changed, where waiting would hide a gap.
pub(crate) async fn still_answered_by(caller: &Caller<'_>, host: &str, names: &[&str]) -> Result<()> {
    let tally = caller.tally(host, names.len() * REQUESTS_PER_UPSTREAM).await?;
    ensure!(tally.is_exactly(names), "expected {names:?}, and got: {tally}");
    Ok(())
}

/// What an Envoy has rejected so far, of all types.
pub(crate) async fn rejections(envoy: &Envoy) -> Result<u64> {
    let stats = envoy.admin_get("/stats?filter=update_rejected").await?.body;
    Ok(stats.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}

/// The seed of `TOWER_SEED`, or a new one; shown when the test fails, to have it fail again.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("TOWER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(rand::random);
    eprintln!("TOWER_SEED={seed}");
    seed
}

/// What Tower says of its only source.
pub(crate) struct SourceStatus {
    pub(crate) state: String,
    /// Path and reason of each.
    pub(crate) problems: Vec<(String, String)>,
}

impl SourceStatus {
    pub(crate) async fn of(tower: &Tower) -> Result<Self> {
        let status = tower.http_get("/api/v1/sources").await?.ok()?.json()?;
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let read = || {
            let source = status.get("sources")?.get(0)?;
            let problem = |problem: &serde_json::Value| {
                Some((text(problem.get("path")?)?, text(problem.get("reason")?)?))
            };
            let problems = source.get("problems")?.as_array()?.iter().map(problem);
            Some(Self { state: text(source.get("state")?)?, problems: problems.collect::<Option<Vec<_>>>()? })
        };
        read().with_context(|| format!("not the documented form: {status}"))
    }

    /// The reason why the object at this path is set aside.
    pub(crate) fn reason(&self, path: &str) -> Result<&str> {
        let problem = self.problems.iter().find(|(at, _)| at == path);
        let (_, reason) =
            problem.with_context(|| format!("{path} is not among the problems: {:?}", self.problems))?;
        Ok(reason)
    }
}
