//! The service as an ordinary tonic client sees it, over TCP.

use std::net::SocketAddr;

use parking_lot::Mutex;
use prost::Message;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code,
    transport::{Server, server::TcpIncoming},
};
use tower_common::{
    clock,
    delivery::{Event, Staging},
    resource::{Origin, Resource, ResourceKey},
    standing::Standing,
    store::{Store, Transaction},
};
use tower_proto::v1::{sync_client::SyncClient, watch_request::Request as R};

use super::*;
use crate::{
    fanout::{
        log::{Cursor, Limits},
        start::{Start, StartFrom},
    },
    store_actor::StoreCore,
};

/// No answer on loopback takes this long.
const LIMIT: Duration = Duration::from_secs(20);

/// Longer than any test waits for anything.
const HAND_OVER: Duration = Duration::from_secs(60);

/// The run of Tower.
const RUN: &str = "run";

/// Bytes of starts that Tower lets in at a time.
const ROOM: u64 = 64 << 20;

struct Tower {
    store: Arc<TowerStore>,
    log: Arc<FrameLog>,
    beacons: Arc<Beacons>,
    admission: Arc<Admission>,
    stopping: CancellationToken,
    address: SocketAddr,
}

/// The store without its actor. A Beacon whose hello has positions is asked for its buckets.
struct TowerStore {
    core: Mutex<StoreCore>,
    log: Arc<FrameLog>,
}

impl TowerStore {
    fn from(&self, from: &StartFrom) -> FetchStart {
        let core = self.core.lock();
        let next = Some(Cursor { place: self.log.end(), revision: core.revision() });
        let start = Arc::new(Start::new(core.delivery_from(from), next));
        Box::pin(async move { Some(start) })
    }
}

impl Starts for TowerStore {
    fn start(&self, ask: Ask) -> FetchStart {
        match ask.revision {
            Some(revision) => self.from(&StartFrom::Revision(revision)),
            None if ask.positions.is_empty() => self.from(&StartFrom::Nothing),
            None => {
                let ask_buckets = Some(v1::AskBuckets { count: 64 });
                let ask = v1::WatchResponse { ask_buckets, ..Default::default() };
                let start = Arc::new(Start::new(vec![frame::framed(&ask)], None));
                Box::pin(async move { Some(start) })
            }
        }
    }

    fn buckets(&self, buckets: v1::Buckets, _: u64) -> FetchStart {
        self.from(&StartFrom::Buckets(buckets.sums))
    }
}

struct Beacon {
    requests: mpsc::Sender<v1::WatchRequest>,
    responses: Streaming<v1::WatchResponse>,
    staging: Staging,
    store: Store,
    goodbye: Option<v1::goodbye::Reason>,
    retry_after_ms: u32,
    asked: Option<u32>,
    bytes: usize,
}

impl Tower {
    async fn start(limits: Limits) -> Self {
        Self::with(limits, Duration::from_secs(3600), HAND_OVER).await
    }

    async fn with(limits: Limits, stream_age: Duration, hand_over: Duration) -> Self {
        let stopping = CancellationToken::new();
        let log = FrameLog::new(limits);
        let store = Arc::new(TowerStore { core: Mutex::new(StoreCore::new("")), log: log.clone() });
        let beacons = Arc::new(Beacons::default());
        let admission = Admission::new(ROOM);
        let service = SyncService::new(Options {
            scope: String::new(),
            welcome: v1::Welcome { tower: RUN.into(), ..Default::default() },
            log: log.clone(),
            starts: store.clone(),
            admission: admission.clone(),
            beacons: beacons.clone(),
            stream_age,
            hand_over,
            stopping: stopping.clone(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        Self { store, log, beacons, admission, stopping, address }
    }

    fn publish(&self, name: &str, bytes: usize) {
        let key = ResourceKey::new("", v1::Kind::Endpoint, "web", name);
        let origin = Origin { source: "zk".into(), index: 1 };
        let resource = Resource::new(key, origin, vec![7; bytes].into());
        let mut core = self.store.core.lock();
        let transaction = Transaction { upserts: vec![resource], ..Default::default() };
        let frames = core.apply(transaction, clock::monotonic()).unwrap();
        self.log.append(frames, core.revision());
    }

    fn digest(&self) -> tower_common::digest::Digest {
        let mut store = Store::new();
        let upserts =
            self.store.core.lock().delivery_from(&StartFrom::Nothing).into_iter().flat_map(|frame| {
                let message = v1::WatchResponse::decode(frame.slice(5..)).unwrap();
                message.upserts.into_iter().map(|encoded| Resource::decode(&encoded).unwrap())
            });
        store.apply(Transaction { upserts: upserts.collect(), ..Default::default() });
        store.digest()
    }

    async fn watch(&self, first: v1::WatchRequest) -> Result<Beacon, Status> {
        let mut client = SyncClient::connect(format!("http://{}", self.address)).await.unwrap();
        let (requests, receiver) = mpsc::channel(4);
        requests.send(first).await.unwrap();
        let responses = client.watch(ReceiverStream::new(receiver)).await?.into_inner();
        Ok(Beacon {
            requests,
            responses,
            staging: Staging::new(),
            store: Store::new(),
            goodbye: None,
            retry_after_ms: 0,
            asked: None,
            bytes: 0,
        })
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
    /// Takes one response; false at the end of the stream.
    async fn next(&mut self) -> bool {
        let next = tokio::time::timeout(LIMIT, self.responses.message()).await;
        let Some(response) = next.expect("in time").unwrap() else { return false };
        self.bytes += response.encoded_len();
        for event in self.staging.accept(response).unwrap() {
            match event {
                Event::Delivery(delivery) => {
                    delivery.apply(&mut self.store, |_| Standing::Follow);
                }
                Event::Goodbye(goodbye) => {
                    self.goodbye = Some(goodbye.reason());
                    self.retry_after_ms = goodbye.retry_after_ms;
                }
                Event::AskBuckets(count) => self.asked = Some(count),
                Event::Welcome(_) | Event::Heartbeat(_) => {}
            }
        }
        true
    }

    /// Applies responses until the store holds so many resources.
    async fn until(&mut self, resources: usize) {
        while self.store.len() < resources {
            assert!(self.next().await, "the stream ended");
        }
    }

    async fn send(&self, request: R) {
        self.requests.send(v1::WatchRequest { request: Some(request) }).await.unwrap();
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
    beacon.send(R::Report(report)).await;
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
    assert_eq!(beacon.store.digest(), tower.digest());
    tower.until(|tower| tower.admission.under_way() == 0).await;
}

#[tokio::test]
async fn a_beacon_that_comes_back_gets_only_what_it_missed() {
    let tower = Tower::start(Limits::default()).await;
    for number in 0..100 {
        tower.publish(&number.to_string(), 1000);
    }
    let mut beacon = tower.watch(hello(|_| ())).await.unwrap();
    beacon.until(100).await;
    let (store, revision) = (beacon.store.clone(), tower.store.core.lock().revision());
    drop(beacon);
    tower.publish("missed", 10);
    let hello = hello(|hello| {
        hello.tower = RUN.into();
        hello.revision = revision;
    });
    let mut beacon = tower.watch(hello).await.unwrap();
    beacon.store = store;
    beacon.until(101).await;
    assert!(beacon.bytes < 500, "{} bytes", beacon.bytes);
    assert_eq!(beacon.store.digest(), tower.digest());
}

#[tokio::test]
async fn a_beacon_that_is_asked_for_its_buckets_gets_what_differs() {
    let tower = Tower::start(Limits::default()).await;
    for number in 0..100 {
        tower.publish(&number.to_string(), 1000);
    }
    let mut first = tower.watch(hello(|_| ())).await.unwrap();
    first.until(100).await;
    tower.publish("missed", 10);
    let position = v1::Position { source: "zk".into(), ..Default::default() };
    let mut beacon = tower.watch(hello(|hello| hello.positions = vec![position])).await.unwrap();
    beacon.store = first.store.clone();
    while beacon.asked.is_none() {
        assert!(beacon.next().await);
    }
    // What happens before the answer must not reach a Beacon that cannot apply it yet.
    tower.publish("meanwhile", 10);
    beacon.send(R::Buckets(Buckets::of(beacon.store.iter(), 64).to_proto())).await;
    beacon.until(102).await;
    assert!(beacon.bytes < 10_000, "{} bytes", beacon.bytes);
    assert_eq!(beacon.store.digest(), tower.digest());
}

#[tokio::test]
async fn a_beacon_may_compare_buckets_at_any_time() {
    let tower = Tower::start(Limits::default()).await;
    tower.publish("a", 10);
    tower.publish("b", 10);
    let mut beacon = tower.watch(hello(|_| ())).await.unwrap();
    beacon.until(2).await;
    // Something got lost.
    beacon.store = Store::new();
    beacon.send(R::Buckets(Buckets::of(beacon.store.iter(), 4).to_proto())).await;
    beacon.until(2).await;
    tower.publish("c", 10);
    beacon.until(3).await;
    assert_eq!(beacon.store.digest(), tower.digest());
    beacon.send(R::Buckets(v1::Buckets { sums: vec![0; 17].into() })).await;
    let status = loop {
        match beacon.responses.message().await {
            Ok(response) => assert!(response.is_some(), "it ends with a status"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("17 bytes"), "{status}");
}

#[tokio::test]
async fn a_beacon_that_finds_no_room_is_told_when_to_come_back() {
    let tower = Tower::start(Limits::default()).await;
    tower.publish("a", 10);
    let _room = tower.admission.admit(ROOM).unwrap();
    let mut beacon = tower.watch(hello(|_| ())).await.unwrap();
    while beacon.next().await {}
    assert_eq!(beacon.goodbye, Some(v1::goodbye::Reason::Overloaded));
    assert!(beacon.store.is_empty());
}

#[tokio::test]
async fn a_stream_that_has_grown_old_is_followed_until_its_time_is_up() {
    let hand_over = Duration::from_secs(2);
    let tower = Tower::with(Limits::default(), Duration::from_millis(50), hand_over).await;
    tower.publish("before", 10);
    let mut beacon = tower.watch(hello(|_| ())).await.unwrap();
    while beacon.goodbye.is_none() {
        assert!(beacon.next().await);
    }
    assert_eq!(beacon.goodbye, Some(v1::goodbye::Reason::Age));
    tower.publish("after", 10);
    beacon.until(2).await;
    while beacon.next().await {}
    tower.until(|tower| tower.beacons.is_empty()).await;
}

#[tokio::test]
async fn a_tower_that_is_about_to_go_says_so_and_goes_on_until_its_beacons_have_left() {
    let tower = Tower::start(Limits::default()).await;
    tower.publish("before", 10);
    let mut beacons = Vec::new();
    for _ in 0..3 {
        beacons.push(tower.watch(hello(|_| ())).await.unwrap());
    }
    for beacon in &mut beacons {
        beacon.until(1).await;
    }
    tower.stopping.cancel();
    for beacon in &mut beacons {
        while beacon.goodbye.is_none() {
            assert!(beacon.next().await);
        }
        assert_eq!(beacon.goodbye, Some(v1::goodbye::Reason::Draining));
        assert!(beacon.retry_after_ms < 2, "{} ms for three Beacons", beacon.retry_after_ms);
    }
    tower.publish("after", 10);
    for beacon in &mut beacons {
        beacon.until(2).await;
    }
    drop(beacons);
    tower.until(|tower| tower.beacons.is_empty() && tower.log.readers() == 0).await;
    // Who comes now is told so, too.
    let mut late = tower.watch(hello(|_| ())).await.unwrap();
    while late.goodbye.is_none() {
        assert!(late.next().await);
    }
    assert_eq!(late.goodbye, Some(v1::goodbye::Reason::Draining));
}

#[tokio::test]
async fn a_beacon_whose_comparison_finds_no_room_goes_on_following() {
    let tower = Tower::start(Limits::default()).await;
    tower.publish("a", 10);
    let mut beacon = tower.watch(hello(|_| ())).await.unwrap();
    beacon.until(1).await;
    tower.until(|tower| tower.admission.under_way() == 0).await;
    let _room = tower.admission.admit(ROOM).unwrap();
    for _ in 0..2 {
        beacon.send(R::Buckets(v1::Buckets { sums: vec![7; 64].into() })).await;
    }
    while beacon.goodbye.is_none() {
        assert!(beacon.next().await);
    }
    assert_eq!(beacon.goodbye, Some(v1::goodbye::Reason::Overloaded));
    tower.publish("b", 10);
    beacon.until(2).await;
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
