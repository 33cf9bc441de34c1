//! A client that reads nothing, beside many that do.

use std::{sync::Arc, time::Duration};

use beacon_agent::xds::ResourceType;
use bytes::Bytes;
use futures::future::join_all;
use tokio::time::{Instant, sleep_until};
use tower_common::view::XdsResource;
use tower_proto::envoy::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use tower_tests::rounds;

use crate::{
    ALONE, resident_kib,
    support::{Stream, World, composition, delta},
};

/// 20 MB of endpoints.
const SERVICES: usize = 2000;
const BYTES: usize = 10_000;

/// Clients that read, and the services that each of them wants.
const OTHERS: usize = 200;
const WANTED: usize = 10;

/// How much longer a change may take because of the one that does not read: twice as long, and what a busy
/// machine adds to that.
const NOISE: Duration = Duration::from_millis(100);

type Delta = Stream<DeltaDiscoveryRequest, DeltaDiscoveryResponse>;

struct Crowd {
    world: World,
    names: Vec<String>,
    others: Vec<Delta>,
    changes: usize,
}

impl Crowd {
    async fn new() -> Self {
        let names: Vec<String> = (0..SERVICES).map(|number| format!("service-{number:04}")).collect();
        let sized: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), BYTES)).collect();
        let world = World::new(composition(&sized)).await;
        let mut crowd = Self { world, names, others: Vec::new(), changes: 0 };
        for _ in 0..OTHERS {
            let mut stream = crowd.subscribe(WANTED).await;
            let response = stream.next().await;
            assert_eq!(response.resources.len(), WANTED);
            acknowledge(&stream, response).await;
            crowd.others.push(stream);
        }
        crowd
    }

    /// A new client that wants the endpoints of so many services.
    async fn subscribe(&self, services: usize) -> Delta {
        let stream = self.world.delta().await;
        let names: Vec<&str> = self.names[..services].iter().map(String::as_str).collect();
        stream.send(delta(ResourceType::Endpoint, &names)).await;
        stream
    }

    /// Changes the endpoints of a service that everybody wants, and returns their version.
    fn change(&mut self) -> String {
        self.changes += 1;
        let name = &self.names[self.changes % WANTED];
        let changed =
            XdsResource::from_body(name.as_str().into(), Bytes::from(vec![0; BYTES + self.changes]));
        let version = changed.version.to_string();
        self.world.compositions.send_modify(|composition| {
            Arc::make_mut(&mut composition.assignments).insert(changed.name.clone(), changed);
        });
        version
    }

    /// Makes changes, one after the other, and returns how long each took at each client, sorted.
    async fn delays(&mut self, changes: usize, pace: Duration) -> Vec<Duration> {
        let mut delays = Vec::new();
        for _ in 0..changes {
            let start = Instant::now();
            let newest = self.change();
            delays.extend(join_all(self.others.iter_mut().map(|other| has(other, &newest, start))).await);
            sleep_until(start + pace).await;
        }
        delays.sort();
        delays
    }
}

/// Reads until this version is there. Returns how long that took.
async fn has(stream: &mut Delta, version: &str, start: Instant) -> Duration {
    loop {
        let response = stream.next().await;
        let there = response.resources.iter().any(|resource| resource.version == version);
        acknowledge(stream, response).await;
        if there {
            return start.elapsed();
        }
    }
}

async fn acknowledge(stream: &Delta, response: DeltaDiscoveryResponse) {
    let response_nonce = response.nonce;
    stream.send(DeltaDiscoveryRequest { response_nonce, ..delta(ResourceType::Endpoint, &[]) }).await;
}

fn p99(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() * 99 / 100]
}

/// istio/istio#28957, #31943; envoyproxy/go-control-plane#1298
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b24_a_slow_reader_blocks_nobody_and_ends_at_the_newest() {
    let _alone = ALONE.lock().await;
    let changes = rounds(25, 300);
    let pace = Duration::from_millis(rounds(0, 100) as u64);
    let mut crowd = Crowd::new().await;
    let before = p99(&crowd.delays(changes, pace).await);

    let memory = resident_kib();
    let mut slow = crowd.subscribe(SERVICES).await;
    let delays = crowd.delays(changes, pace).await;
    // It asks again, and still reads nothing.
    let names: Vec<&str> = crowd.names.iter().map(String::as_str).collect();
    slow.send(delta(ResourceType::Endpoint, &names)).await;
    let newest = crowd.change();
    let grown = resident_kib().saturating_sub(memory);
    eprintln!("p99 {before:?} alone, {:?} beside one that does not read, {grown} KiB more", p99(&delays));
    assert!(p99(&delays) < before * 2 + NOISE, "{:?}, and {before:?} before", p99(&delays));
    assert!(grown < 100 << 10, "{grown} KiB more");

    let clients = crowd.world.clients.snapshot().len();
    assert_eq!(clients, OTHERS + 1, "nobody was dropped");
    has(&mut slow, &newest, Instant::now()).await;
}
