//! Registrations change at random while the connection between Tower and ZooKeeper is cut and frozen at
//! random. In the end nobody's view differs: not ZooKeeper's, not Tower's, not the Beacon's.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::Value;
use tower_tests::{
    Beacon, BeaconOptions, Fault, Proxy, Registry, Tower, TowerOptions, ZooKeeper, eventually, rounds,
};

use crate::support::{SOON, seed};

const SERVICES: usize = 5;

/// Instances of a service, at most.
const MEMBERS: u16 = 8;

/// Changes between two faults.
const CHANGES: usize = 20;

/// By service, what its znodes say.
type Registered = BTreeMap<String, BTreeSet<String>>;

fn service(number: usize) -> String {
    format!("service-{number}")
}

/// One random change, made in ZooKeeper and noted.
async fn change(
    registry: &Registry,
    random: &mut StdRng,
    registered: &mut BTreeMap<String, String>,
) -> Result<()> {
    let (number, member) = (random.random_range(0..SERVICES), random.random_range(0..MEMBERS));
    let path = format!("discovery/{}/prod/member-{member}", service(number));
    let address = format!("127.0.0.1:{}", 1000 + random.random_range(0..50_000));
    match (registered.contains_key(&path), random.random()) {
        (false, _) => {
            registry.create(&path, address.as_bytes()).await?;
            registered.insert(path, address);
        }
        (true, true) => {
            registry.set(&path, address.as_bytes()).await?;
            registered.insert(path, address);
        }
        (true, false) => {
            registry.delete(&path).await?;
            registered.remove(&path);
        }
    }
    Ok(())
}

async fn in_zookeeper(registry: &Registry) -> Result<Registered> {
    let mut all = Registered::new();
    for number in 0..SERVICES {
        let folder = format!("discovery/{}/prod", service(number));
        let mut addresses = BTreeSet::new();
        for member in registry.children(&folder).await.unwrap_or_default() {
            let data = registry.get(&format!("{folder}/{member}")).await?;
            addresses.insert(String::from_utf8(data)?);
        }
        all.insert(service(number), addresses);
    }
    Ok(all)
}

async fn in_tower(tower: &Tower) -> Result<Registered> {
    let mut all = Registered::new();
    for number in 0..SERVICES {
        let path = format!("/api/v1/services/{}/endpoints", service(number));
        let answer = tower.http_get(&path).await?.ok()?.json()?;
        let endpoints = answer["endpoints"].as_array().context("no endpoints")?;
        let address = |endpoint: &Value| {
            format!("{}:{}", endpoint["address"].as_str().unwrap_or_default(), endpoint["port"])
        };
        all.insert(service(number), endpoints.iter().map(address).collect());
    }
    Ok(all)
}

#[tokio::test]
async fn nothing_differs_in_the_end() -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed());
    let zookeeper = ZooKeeper::start().await?;
    let registry = zookeeper.root().await?;
    let proxy = Proxy::start(zookeeper.connect_string().parse()?).await?;
    let discovery = registry.discovery("hostport") + "&session_timeout=4s";
    let discovery = discovery.replace(&zookeeper.connect_string(), &proxy.address().to_string());
    let flags = vec!["--guard-hold=0s".to_owned()];
    let tower =
        Tower::start(TowerOptions { discovery: vec![discovery], flags, ..Default::default() }).await?;
    tower.wait_ready(SOON).await?;
    let beacon = Beacon::start(BeaconOptions::of(tower.grpc())).await?;
    beacon.wait_ready(SOON).await?;

    let mut registered = BTreeMap::new();
    let mut faults = 0;
    for _ in 0..rounds(6, 100) {
        let fault = [Fault::Cut, Fault::Frozen].choose(&mut random).copied().unwrap_or(Fault::Cut);
        // From a moment to longer than the session lives.
        let longest = if random.random_ratio(1, 4) { 7000 } else { 800 };
        let lasts = Duration::from_millis(random.random_range(10..longest));
        let end = tokio::time::Instant::now() + lasts;
        for step in 0.. {
            change(&registry, &mut random, &mut registered).await?;
            if step == CHANGES / 2 {
                proxy.set(fault);
                faults += 1;
            }
            if step > CHANGES && tokio::time::Instant::now() > end {
                break;
            }
        }
        proxy.set(Fault::None);
    }

    let expected = in_zookeeper(&registry).await?;
    let noted: BTreeSet<&String> = registered.values().collect();
    ensure!(noted == expected.values().flatten().collect(), "the test itself has lost count");
    eventually(SOON * 2, format!("Tower knows what ZooKeeper does, after {faults} faults"), async || {
        let found = in_tower(&tower).await?;
        ensure!(found == expected, "Tower has {found:?}, ZooKeeper {expected:?}");
        Ok(())
    })
    .await;
    eventually(SOON, "the Beacon knows what Tower does", async || {
        let status = beacon.http_get("/status").await?.ok()?.json()?;
        let resources = tower.metric("tower_store_resources").await?;
        ensure!(status["mirror"]["equal_to_tower"] == Value::Bool(true), "{status}");
        ensure!(status["mirror"]["resources"].as_f64() == resources, "{resources:?} at Tower: {status}");
        Ok(())
    })
    .await;
    Ok(())
}
