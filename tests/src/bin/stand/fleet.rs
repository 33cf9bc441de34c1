//! What runs.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tower_tests::{
    Beacon, BeaconOptions, Endpoint, EndpointFiles, Envoy, Mode, Protocol, Proxy, Tower, TowerOptions,
    Upstream,
};

use crate::Registered;

/// What takes longer than this is broken, not slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The upstreams, which answer with their names.
const UPSTREAMS: [&str; 2] = ["alpha", "beta"];

pub(crate) struct Fleet {
    envoys: Vec<Envoy>,
    // Kept running: they end with the fleet, before their Tower.
    _beacons: Vec<Beacon>,
    /// Between the page and Tower.
    pub(crate) proxy: Proxy,
    pub(crate) tower: Tower,
    upstreams: Vec<Upstream>,
    files: EndpointFiles,
}

impl Fleet {
    /// All of it, ready.
    pub(crate) async fn start(hosts: usize) -> Result<Self> {
        let files = EndpointFiles::new()?;
        let mut upstreams = Vec::new();
        for name in UPSTREAMS {
            upstreams.push(Upstream::start(name).await?);
        }
        let tower = Tower::start(TowerOptions {
            discovery: vec![files.discovery()],
            // Tests release what is held; it must not go by itself before.
            flags: vec!["--guard-hold=1h".to_owned()],
            ..TowerOptions::default()
        })
        .await?;
        tower.wait_ready(PATIENCE).await?;
        let proxy = Proxy::start(tower.http()).await?;
        let (mut beacons, mut envoys) = (Vec::new(), Vec::new());
        for number in 1..=hosts {
            let beacon = Beacon::start(BeaconOptions {
                node_id: format!("host-{number}"),
                zone: Some(["zone-a", "zone-b"][number % 2].to_owned()),
                ..BeaconOptions::of(tower.grpc())
            })
            .await?;
            beacon.wait_ready(PATIENCE).await?;
            envoys.push(beacon.envoy(Mode::Delta).await?);
            beacons.push(beacon);
        }
        Ok(Self { envoys, _beacons: beacons, proxy, tower, upstreams, files })
    }

    /// Where it is, and how to get in.
    pub(crate) fn describe(&self) -> Result<Value> {
        let token = self.tower.admin_token().context("Tower has made no token")?;
        Ok(json!({
            "page": format!("http://{}", self.proxy.address()),
            "tower": format!("http://{}", self.tower.http()),
            "admin": token,
        }))
    }

    pub(crate) fn register(&self, service: &str, endpoints: &[Registered]) -> Result<()> {
        let endpoint = |registered: &Registered| {
            let upstream = registered.upstream.as_deref();
            let upstream = upstream.and_then(|name| self.upstreams.iter().find(|each| each.name() == name));
            let address = upstream.map(Upstream::address).or(registered.address);
            let address =
                address.with_context(|| format!("no such upstream, and no address: {registered:?}"))?;
            Ok(Endpoint { labels: registered.labels.clone(), ..Endpoint::from(address) })
        };
        let endpoints: Vec<Endpoint> = endpoints.iter().map(endpoint).collect::<Result<_>>()?;
        self.files.write(service, &endpoints)
    }

    pub(crate) async fn call(&self, host: &str, requests: usize) -> Result<Value> {
        let envoy = self.envoys.first().context("there is no Envoy")?;
        let tally = envoy.caller(Protocol::Http1).tally(host, requests).await?;
        Ok(json!({ "answers": tally.answers, "failures": tally.failures }))
    }
}
