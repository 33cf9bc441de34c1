//! Everything above a host fails, one after the other, under traffic: not one request fails that an
//! unchanged, healthy endpoint could have served, and no Beacon ever goes back in time.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::task::JoinHandle;
use tower_common::clock;
use tower_tests::{
    Beacon, BeaconOptions, Fault, Load, Mode, Protocol, Proxy, Registry, Tower, TowerOptions, Upstream,
    ZooKeeper, eventually, http, rounds,
};

use crate::{
    registrar::{Format, payload},
    support::SOON,
};

/// A second of everything that happens in between: enough to fail if it is to fail.
const BREATH: u64 = 300;

struct World {
    zookeeper: ZooKeeper,
    registry: Registry,
    /// Tower's own way to ZooKeeper, and that of the Tower that lags.
    towers: [Tower; 2],
    lagging: Proxy,
    beacon: Beacon,
}

impl World {
    async fn start() -> Result<Self> {
        let zookeeper = ZooKeeper::start().await?;
        let registry = zookeeper.root().await?;
        let lagging = Proxy::start(zookeeper.connect_string().parse()?).await?;
        let direct = registry.discovery(Format::Hostport.name()) + "&id=zk";
        let through = direct.replace(&zookeeper.connect_string(), &lagging.address().to_string());
        let tower = async |discovery: String| {
            let options = TowerOptions { discovery: vec![discovery], ..TowerOptions::default() };
            Tower::start(options).await
        };
        let towers = [tower(direct).await?, tower(through).await?];
        for tower in &towers {
            tower.wait_ready(SOON).await?;
        }
        let tower = towers.iter().map(|tower| tower.grpc().to_string()).collect();
        let beacon = Beacon::start(BeaconOptions { tower, ..BeaconOptions::default() }).await?;
        beacon.wait_ready(SOON).await?;
        Ok(Self { zookeeper, registry, towers, lagging, beacon })
    }

    async fn register(&self, service: &str, upstream: &Upstream) -> Result<()> {
        let data = payload(Format::Hostport, upstream.address());
        self.registry.create(&member(service, upstream), &data).await
    }

    async fn deregister(&self, service: &str, upstream: &Upstream) -> Result<()> {
        self.registry.delete(&member(service, upstream)).await
    }

    /// The number of the Tower that the Beacon is connected to, once it is.
    async fn connected(&self) -> usize {
        eventually(SOON, "the Beacon is connected", async || {
            let status = self.beacon.http_get("/status").await?.ok()?.json()?;
            let connected = status["link"]["connected"].as_str().context("it is not")?.to_owned();
            let number = self.towers.iter().position(|tower| tower.grpc().to_string() == connected);
            number.context("to an unknown Tower")
        })
        .await
    }
}

fn member(service: &str, upstream: &Upstream) -> String {
    format!("discovery/{service}/prod/{}", upstream.name())
}

/// Watches the positions of a Beacon, over its restarts.
struct Watch {
    watching: JoinHandle<Result<()>>,
}

impl Watch {
    fn start(beacon: &Beacon) -> Self {
        let admin = beacon.admin();
        let watching = tokio::spawn(async move {
            let mut highest: BTreeMap<String, u64> = BTreeMap::new();
            loop {
                // While it restarts there is nothing to see.
                let reply = http::get(admin, Protocol::Http1, "beacon", "/status").await;
                let Some(status) = reply.ok().and_then(|reply| reply.json().ok()) else {
                    tokio::task::yield_now().await;
                    continue;
                };
                // What is from disk is not served before Tower, or its absence, is known.
                let complete = status["mirror"]["complete"] == Value::Bool(true);
                for source in
                    status["mirror"]["sources"].as_array().into_iter().flatten().filter(|_| complete)
                {
                    let index = source["index"].as_u64().unwrap_or_default();
                    let known = highest.entry(source["id"].to_string()).or_default();
                    ensure!(index >= *known, "went back from {known} to {index}: {status}");
                    *known = index;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        Self { watching }
    }

    /// Fails if a position has ever gone back.
    async fn stop(self) -> Result<()> {
        if self.watching.is_finished() {
            return self.watching.await?;
        }
        self.watching.abort();
        Ok(())
    }
}

/// Waits until so many more requests have been answered.
async fn breathe(load: &Load) {
    let until = load.good() + BREATH;
    eventually(SOON, "traffic goes on", async || {
        ensure!(load.good() >= until, "{:?}", load.failures().await);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traffic_survives_whatever_fails() -> Result<()> {
    let mut world = World::start().await?;
    let mut stable = Vec::new();
    for number in 0..3 {
        let upstream = Upstream::start(&format!("stable-{number}")).await?;
        world.register("web", &upstream).await?;
        stable.push(upstream);
    }
    let fleet = Upstream::start("fleet").await?;
    let mut guests = Vec::new();
    for number in 0..2 {
        guests.push(Upstream::start(&format!("guest-{number}")).await?);
    }
    // A service whose instances are there only as long as their session.
    let session = world.registry.doomed_session().await?;
    let fleet_data = payload(Format::Hostport, fleet.address());
    session.create_ephemeral(&member("fleet", &fleet), &fleet_data).await?;

    let envoy = world.beacon.envoy(Mode::Delta).await?;
    for host in ["web", "fleet"] {
        eventually(SOON, format!("{host} is there"), async || {
            envoy.caller(Protocol::Http1).get(host).await?.ok().map(drop)
        })
        .await;
    }
    let watch = Watch::start(&world.beacon);
    let per_second = u32::try_from(rounds(300, 1000))?;
    let load = Load::start(envoy.egress(), &["web", "fleet"], per_second);
    breathe(&load).await;

    // Registrations come and go. Guests answer for as long as anybody may still call them.
    for round in 0..rounds(20, 200) {
        let guest = &guests[round % guests.len()];
        world.register("web", guest).await?;
        let before = guest.requests();
        eventually(SOON, "a guest is called", async || {
            ensure!(guest.requests() > before, "{} is not", guest.name());
            Ok(())
        })
        .await;
        world.deregister("web", guest).await?;
    }

    // Tower is killed and comes back.
    let first = world.connected().await;
    world.towers[first].kill();
    breathe(&load).await;
    world.towers[first].restart().await?;
    world.towers[first].wait_ready(SOON).await?;
    breathe(&load).await;

    // The Beacon is killed and comes back.
    world.beacon.kill();
    breathe(&load).await;
    world.beacon.restart().await?;
    world.beacon.wait_ready(SOON).await?;
    breathe(&load).await;

    // ZooKeeper is killed and comes back.
    let away = clock::monotonic() + Duration::from_secs(rounds(3, 60) as u64);
    world.zookeeper.kill();
    while clock::monotonic() < away {
        breathe(&load).await;
    }
    world.zookeeper.restart().await?;
    // Ours may have been away for longer than its session lives.
    world.registry = world.registry.another_session().await?;
    for tower in &world.towers {
        eventually(SOON * 2, "Tower reads ZooKeeper again", async || {
            let sources = tower.http_get("/api/v1/sources").await?.ok()?.json()?;
            ensure!(sources["sources"][0]["state"] == "live", "{sources}");
            Ok(())
        })
        .await;
    }
    breathe(&load).await;

    // All sessions expire at once; the instances are well, and come back.
    drop(session);
    breathe(&load).await;
    let member_of_fleet = member("fleet", &fleet);
    eventually(SOON * 2, "the session has expired", async || {
        ensure!(world.registry.get(&member_of_fleet).await.is_err(), "it is still there");
        Ok(())
    })
    .await;
    breathe(&load).await;
    let session = world.registry.another_session().await?;
    session.create_ephemeral(&member_of_fleet, &fleet_data).await?;
    breathe(&load).await;

    lagging_tower(&mut world, &load, &guests[0]).await?;

    let elapsed = load.elapsed();
    watch.stop().await?;
    let answered = load.stop().await?;
    eprintln!("{answered} requests in {elapsed:?}, none failed");
    Ok(())
}

/// The Beacon moves to a Tower that lags, and back.
async fn lagging_tower(world: &mut World, load: &Load, guest: &Upstream) -> Result<()> {
    const DIRECT: usize = 0;
    const LAGGING: usize = 1;
    // To the Tower that can be ahead.
    world.towers[LAGGING].kill();
    while world.connected().await != DIRECT {}
    world.towers[LAGGING].restart().await?;
    world.towers[LAGGING].wait_ready(SOON).await?;
    world.lagging.set(Fault::Frozen);
    world.register("web", guest).await?;
    let called = async |what: &str| {
        let before = guest.requests();
        eventually(SOON, what, async || {
            ensure!(guest.requests() > before, "it is not");
            Ok(())
        })
        .await;
    };
    called("what the lagging Tower does not know is called").await;

    world.towers[DIRECT].kill();
    while world.connected().await != LAGGING {}
    breathe(load).await;
    called("it still is, although the Tower that is followed now does not know it").await;
    let status = world.beacon.http_get("/status").await?.ok()?.json()?;
    ensure!(status["mirror"]["equal_to_tower"] == Value::Bool(false), "{status}");

    // It catches up, and its Beacon follows it from there.
    world.lagging.set(Fault::None);
    eventually(SOON * 2, "the Beacon is where its Tower is", async || {
        let status = world.beacon.http_get("/status").await?.ok()?.json()?;
        ensure!(status["mirror"]["equal_to_tower"] == Value::Bool(true), "{status}");
        Ok(())
    })
    .await;
    world.deregister("web", guest).await?;
    world.towers[DIRECT].restart().await?;
    world.towers[LAGGING].kill();
    while world.connected().await != DIRECT {}
    breathe(load).await;
    Ok(())
}
