//! The service as an ordinary tonic client sees it, over TCP.

use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code,
    transport::{Server, server::TcpIncoming},
};
use tower_common::{
    delivery::{Event, Staging},
    resource::{Origin, Resource, ResourceKey},
    store::{Store, Transaction},
};
use tower_proto::v1::{sync_client::SyncClient, watch_request::Request as R};

use super::*;
use crate::{
    fanout::{
        full::{FullCache, FullState},
        log::Limits,
    },
    store_actor::StoreCore,
};

/// No answer on loopback takes this long.
const LIMIT: Duration = Duration::from_secs(20);

struct Tower {
    core: Arc<Mutex<StoreCore>>,
    log: Arc<FrameLog>,
    beacons: Arc<Beacons>,
    address: SocketAddr,
}

struct Beacon {
    requests: mpsc::Sender<v1::WatchRequest>,
    responses: Streaming<v1::WatchResponse>,
    staging: Staging,
    store: Store,
}

impl Tower {
    async fn start(limits: Limits) -> Self {
        let log = FrameLog::new(limits);
        let core = Arc::new(Mutex::new(StoreCore::new("")));
        let fulls = Arc::new(FullCache::new(log.clone()));
        let beacons = Arc::new(Beacons::default());
        let full: FullSource = {
            let (core, log) = (core.clone(), log.clone());
            Arc::new(move || {
                let core = core.lock();
                let full = fulls.put(FullState { frames: core.full(), place: log.end() });
                Box::pin(async move { Some(full) })
            })
        };
        let welcome = v1::Welcome { tower: "t".into(), ..Default::default() };
        let service = SyncService::new("", welcome, log.clone(), full, beacons.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        Self { core, log, beacons, address }
    }

    fn publish(&self, name: &str, bytes: usize) {
        let key = ResourceKey::new("", v1::Kind::Endpoint, "web", name);
        let origin = Origin { source: "zk".into(), index: 1 };
        let resource = Resource::new(key, origin, vec![7; bytes].into());
        let mut core = self.core.lock();
        let transaction = Transaction { upserts: vec![resource], ..Default::default() };
        self.log.append(core.apply(transaction).unwrap());
    }

    async fn watch(&self, first: v1::WatchRequest) -> Result<Beacon, Status> {
        let mut client = SyncClient::connect(format!("http://{}", self.address)).await.unwrap();
        let (requests, receiver) = mpsc::channel(4);
        requests.send(first).await.unwrap();
        let responses = client.watch(ReceiverStream::new(receiver)).await?.into_inner();
        Ok(Beacon { requests, responses, staging: Staging::new(), store: Store::new() })
    }

    async fn until(&self, what: impl Fn(&Self) -> bool) {
        let wait = async {
            while !what(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, wait).await.expect("it happens in time");
    }
}

impl Beacon {
    /// Applies responses until the store holds so many resources.
    async fn until(&mut self, resources: usize) {
        while self.store.len() < resources {
            let next = tokio::time::timeout(LIMIT, self.responses.message()).await;
            let response = next.expect("in time").unwrap().expect("the stream goes on");
            for event in self.staging.accept(response).unwrap() {
                if let Event::Delivery(delivery) = event {
                    delivery.apply(&mut self.store);
                }
            }
        }
    }
}

fn hello(change: impl FnOnce(&mut v1::Hello)) -> v1::WatchRequest {
    let node = Some(v1::Node { id: "host".into(), ..Default::default() });
    let mut hello = v1::Hello { node, feature_level: FEATURE_LEVEL, ..Default::default() };
    change(&mut hello);
    v1::WatchRequest { request: Some(R::Hello(hello)) }
}

#[tokio::test]
async fn a_stream_is_a_full_state_and_then_every_change() {
    let tower = Tower::start(Limits::default()).await;
    tower.publish("before", 10);
    let mut beacon = tower.watch(hello(|_| ())).await.unwrap();
    beacon.until(1).await;
    tower.publish("after", 10);
    tower.publish("later", 10);
    beacon.until(3).await;
    assert_eq!(beacon.store.digest().to_proto().resources, 3);

    let report = v1::Report { revision: 3, ..Default::default() };
    beacon.requests.send(v1::WatchRequest { request: Some(R::Report(report)) }).await.unwrap();
    tower.until(|tower| tower.beacons.list()[0].revision == 3).await;
}

#[tokio::test]
async fn a_stream_that_ends_leaves_nothing() {
    let tower = Tower::start(Limits::default()).await;
    let half_closed = tower.watch(hello(|_| ())).await.unwrap();
    let reset = tower.watch(hello(|_| ())).await.unwrap();
    tower.until(|tower| tower.beacons.len() == 2 && tower.log.readers() == 2).await;
    drop(reset);
    let Beacon { requests, mut responses, .. } = half_closed;
    drop(requests);
    while responses.message().await.unwrap().is_some() {}
    tower.until(|tower| tower.beacons.is_empty() && tower.log.readers() == 0).await;
}

#[tokio::test]
async fn a_beacon_that_fell_behind_starts_over_and_ends_at_the_newest_state() {
    let tower = Tower::start(Limits { bytes: 1 << 20, entries: 1000 }).await;
    let mut beacon = tower.watch(hello(|_| ())).await.unwrap();
    tower.until(|tower| tower.log.readers() == 1).await;
    // Far more than the windows of HTTP/2 and the buffers of sockets hold.
    for number in 0..400 {
        tower.publish(&number.to_string(), 100_000);
    }
    beacon.until(400).await;
    assert_eq!(beacon.store.len(), 400);
}

#[tokio::test]
async fn a_bad_hello_is_refused_with_its_fault() {
    let tower = Tower::start(Limits::default()).await;
    let check = async |first: v1::WatchRequest, code: Code, message: &str| {
        let status = tower.watch(first).await.err().expect("it is refused");
        assert_eq!(status.code(), code);
        assert!(status.message().contains(message), "{status}");
    };
    let report = v1::WatchRequest { request: Some(R::Report(v1::Report::default())) };
    check(report, Code::InvalidArgument, "must be a hello").await;
    check(hello(|h| h.node = None), Code::InvalidArgument, "hello.node.id is empty").await;
    check(hello(|h| h.scope = "eu".into()), Code::FailedPrecondition, "\"eu\"").await;
    check(hello(|h| h.feature_level = 0), Code::FailedPrecondition, "update the Beacon").await;
    assert!(tower.beacons.is_empty());
}

#[tokio::test]
async fn a_closed_log_ends_streams_in_good_order() {
    let tower = Tower::start(Limits::default()).await;
    let mut beacon = tower.watch(hello(|_| ())).await.unwrap();
    tower.until(|tower| tower.log.readers() == 1).await;
    tower.log.close();
    while beacon.responses.message().await.unwrap().is_some() {}
}
