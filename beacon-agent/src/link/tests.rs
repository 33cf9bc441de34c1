//! The link between Towers that do as they are told: each stream is in the hands of the test.

use std::{net::SocketAddr, pin::Pin, time::Duration};

use bytes::Bytes;
use futures::Stream as Responses;
use prometheus_client::registry::Registry;
use prost::Message;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle, time::timeout};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request as Call, Response, Status, Streaming, transport::Server};
use tower_common::{
    audience::NodeFacts,
    resource::{Origin, Resource, ResourceKey},
    store::{Store, Transaction},
};
use tower_proto::v1::{
    WatchRequest, WatchResponse,
    goodbye::Reason,
    sync_server::{Sync, SyncServer},
};

use super::*;

/// No answer on loopback takes this long.
const LIMIT: Duration = Duration::from_secs(20);

/// A Tower that accepts streams and hands them to the test.
struct FakeTower {
    name: String,
    address: SocketAddr,
    streams: mpsc::Receiver<FakeStream>,
    server: JoinHandle<()>,
}

/// Tower's end of one stream.
struct FakeStream {
    hello: v1::Hello,
    requests: Streaming<WatchRequest>,
    responses: mpsc::Sender<Result<WatchResponse, Status>>,
}

struct Accepting(mpsc::Sender<FakeStream>);

#[tonic::async_trait]
impl Sync for Accepting {
    type WatchStream = Pin<Box<dyn Responses<Item = Result<WatchResponse, Status>> + Send>>;

    async fn watch(
        &self,
        call: Call<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let mut requests = call.into_inner();
        let Some(WatchRequest { request: Some(Request::Hello(hello)) }) = requests.message().await? else {
            return Err(Status::invalid_argument("no hello"));
        };
        let (responses, receiver) = mpsc::channel(16);
        let stream = FakeStream { hello, requests, responses };
        self.0.send(stream).await.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

impl FakeTower {
    async fn start(name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, streams) = mpsc::channel(16);
        let server = Server::builder()
            .add_service(SyncServer::new(Accepting(sender)))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(async move { server.await.unwrap() });
        Self { name: name.to_owned(), address, streams, server }
    }

    /// The next stream, welcomed.
    async fn stream(&mut self) -> FakeStream {
        let stream = timeout(LIMIT, self.streams.recv()).await.expect("a stream in time").unwrap();
        let welcome =
            Some(v1::Welcome { tower: self.name.clone(), silence_limit_ms: 60_000, ..Default::default() });
        stream.say(WatchResponse { welcome, ..Default::default() }).await;
        stream
    }

    /// Nobody can connect any more; streams stay.
    fn stop_listening(&self) {
        self.server.abort();
    }
}

impl FakeStream {
    async fn say(&self, response: WatchResponse) {
        self.responses.send(Ok(response)).await.expect("the stream is up");
    }

    /// From the first delivery of a stream, with everything, to this revision and these services.
    async fn start(&self, revision: u64, index: u64, services: &[&str]) {
        let upserts = services.iter().map(|service| endpoint(service, index).encoded().clone()).collect();
        let begin = Some(v1::Begin { full: true, ..Default::default() });
        let commit = Some(commit(revision, index, services));
        self.say(WatchResponse { begin, upserts, commit, ..Default::default() }).await;
    }

    /// One more service, after which there are these.
    async fn add(&self, revision: u64, index: u64, services: &[&str]) {
        let added = services.last().expect("one was added");
        let upserts = vec![endpoint(added, index).encoded().clone()];
        let begin = Some(v1::Begin { from_revision: revision - 1, ..Default::default() });
        let commit = Some(commit(revision, index, services));
        self.say(WatchResponse { begin, upserts, commit, ..Default::default() }).await;
    }

    async fn goodbye(&self, reason: Reason, retry_after_ms: u32) {
        let goodbye = Some(v1::Goodbye { reason: reason.into(), retry_after_ms });
        self.say(WatchResponse { goodbye, ..Default::default() }).await;
    }

    /// Waits until the Beacon has left the stream.
    async fn left(mut self) {
        let left = async { while let Ok(Some(_)) = self.requests.message().await {} };
        timeout(LIMIT, left).await.expect("the stream is left in time");
    }

    /// Waits for a report of this revision.
    async fn reported(&mut self, revision: u64) {
        let report = async {
            loop {
                let request = self.requests.message().await.unwrap().expect("the stream is up").request;
                if let Some(Request::Report(report)) = request
                    && report.revision == revision
                {
                    break;
                }
            }
        };
        timeout(LIMIT, report).await.expect("a report in time");
    }
}

fn endpoint(service: &str, index: u64) -> Resource {
    let body = v1::Endpoint { address: "10.0.0.1".into(), port: 80, ..Default::default() };
    let key = ResourceKey::new("", v1::Kind::Endpoint, service, "10.0.0.1:80");
    Resource::new(key, Origin { source: "zk".into(), index }, Bytes::from(body.encode_to_vec()))
}

fn status(index: u64) -> v1::SourceStatus {
    let position = v1::Position { source: "zk".into(), incarnation: "1".into(), index };
    let state = v1::SourceState::Live.into();
    v1::SourceStatus { source: "zk".into(), state, position: Some(position), optional: false }
}

fn commit(revision: u64, index: u64, services: &[&str]) -> v1::Commit {
    let mut store = Store::new();
    let upserts = services.iter().map(|service| endpoint(service, index)).collect();
    store.apply(Transaction { upserts, ..Default::default() });
    let digest = Some(store.digest().to_proto());
    v1::Commit { to_revision: revision, sources: vec![status(index)], digest }
}

/// A Beacon's link, ended when this is dropped.
struct Beacon {
    link: Link,
    running: JoinHandle<()>,
}

impl Beacon {
    /// Of these Towers, in this order.
    fn start(towers: &[&FakeTower]) -> Self {
        let mut names: Vec<String> = towers.iter().map(|tower| tower.address.to_string()).collect();
        let node = v1::Node { id: "host".into(), ..Default::default() };
        // Where this node begins.
        let first = Towers::new((0..names.len()).map(|n| n.to_string()).collect(), &node.id);
        let first: usize = first.next().parse().unwrap();
        names.rotate_right(first);
        let mirror = Arc::new(Mutex::new(Mirror::new("", NodeFacts::default())));
        let link = Link {
            towers: names,
            dialer: Dialer::new(None, true),
            scope: String::new(),
            node,
            metrics: Metrics::new(&mut Registry::default(), mirror.clone()),
            mirror,
            changed: Arc::new(Notify::new()),
            clients: Clients::new(),
            state: Arc::default(),
        };
        Self { running: tokio::spawn(run(link.clone())), link }
    }

    fn services(&self) -> Vec<String> {
        let compositions = self.link.mirror.lock().compositions();
        let composition = compositions.borrow();
        composition.clusters.keys().map(|name| name.to_string()).collect()
    }

    async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let wait = async {
            while !is(self) {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("not in time: {what}"));
    }

    async fn serves(&self, services: &[&str]) {
        self.until(&format!("{services:?} are served"), |beacon| beacon.services() == services).await;
    }

    fn connected_to(&self, tower: &FakeTower) -> bool {
        self.link.state.lock().connected.as_deref() == Some(&tower.address.to_string())
    }

    fn hand_overs(&self) -> u64 {
        self.link.metrics.hand_overs.get()
    }
}

impl Drop for Beacon {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// A Beacon that follows the first of two Towers, at revision 1 and position 10.
async fn two() -> (FakeTower, FakeTower, Beacon, FakeStream) {
    let (mut first, second) = (FakeTower::start("first").await, FakeTower::start("second").await);
    let beacon = Beacon::start(&[&first, &second]);
    let stream = first.stream().await;
    stream.start(1, 10, &["a"]).await;
    beacon.serves(&["a"]).await;
    (first, second, beacon, stream)
}

#[tokio::test]
async fn changes_arrive_on_the_old_stream_until_the_new_one_has_begun() {
    let (first, mut second, beacon, old) = two().await;
    old.goodbye(Reason::Draining, 1).await;
    let mut new = second.stream().await;
    assert_eq!(new.hello.positions[0].index, 10);
    // Welcomed, and nothing more.
    old.add(2, 11, &["a", "b"]).await;
    beacon.serves(&["a", "b"]).await;
    assert!(beacon.connected_to(&first));

    new.start(7, 11, &["a", "b"]).await;
    old.left().await;
    assert!(beacon.connected_to(&second));
    assert_eq!(beacon.hand_overs(), 1);
    assert!(beacon.link.mirror.lock().summary().equal_to_tower);
    new.reported(7).await;
    new.add(8, 12, &["a", "b", "c"]).await;
    beacon.serves(&["a", "b", "c"]).await;
}

#[tokio::test]
async fn a_tower_that_is_behind_takes_over_when_it_has_caught_up() {
    let (first, mut second, beacon, old) = two().await;
    old.goodbye(Reason::Age, 0).await;
    let new = second.stream().await;
    old.add(2, 12, &["a", "b"]).await;
    beacon.serves(&["a", "b"]).await;
    new.start(1, 11, &["a"]).await;
    // What it says next takes it further, but not far enough.
    new.add(2, 11, &["a", "x"]).await;
    old.add(3, 13, &["a", "b", "c"]).await;
    beacon.serves(&["a", "b", "c"]).await;
    assert!(beacon.connected_to(&first) && beacon.hand_overs() == 0);

    new.add(3, 14, &["a", "x", "b"]).await;
    old.left().await;
    beacon.serves(&["a", "b", "x"]).await;
    assert!(beacon.link.mirror.lock().summary().equal_to_tower);
}

#[tokio::test]
async fn the_same_tower_takes_over_from_itself_at_its_revision() {
    let mut tower = FakeTower::start("only").await;
    let beacon = Beacon::start(&[&tower]);
    let old = tower.stream().await;
    old.start(5, 10, &["a"]).await;
    beacon.serves(&["a"]).await;
    old.goodbye(Reason::Age, 0).await;
    let new = tower.stream().await;
    assert_eq!((new.hello.tower.as_str(), new.hello.revision), ("only", 5));
    // What was read ahead on the old stream is not taken back by the new one, though the source stands still.
    old.add(6, 10, &["a", "b"]).await;
    beacon.serves(&["a", "b"]).await;
    new.start(5, 10, &["a"]).await;
    new.add(6, 10, &["a", "b"]).await;
    old.left().await;
    assert_eq!(beacon.services(), ["a", "b"]);
    new.add(7, 10, &["a", "b", "c"]).await;
    beacon.serves(&["a", "b", "c"]).await;
}

#[tokio::test]
async fn a_goodbye_is_left_alone_for_as_long_as_it_says() {
    let (_first, mut second, beacon, old) = two().await;
    let start = Instant::now();
    old.goodbye(Reason::Draining, 300).await;
    let new = second.stream().await;
    assert!(start.elapsed() >= Duration::from_millis(300), "after {:?}", start.elapsed());
    new.start(1, 10, &["a"]).await;
    old.left().await;
    assert!(beacon.connected_to(&second));
}

#[tokio::test]
async fn one_that_refuses_is_passed_over_while_the_old_stream_flows() {
    let (mut first, mut second, beacon, old) = two().await;
    old.goodbye(Reason::Age, 0).await;
    second.stream().await.goodbye(Reason::Overloaded, 1).await;
    let back = first.stream().await;
    old.add(2, 11, &["a", "b"]).await;
    beacon.serves(&["a", "b"]).await;
    back.start(2, 11, &["a", "b"]).await;
    old.left().await;
    assert!(beacon.connected_to(&first) && beacon.hand_overs() == 1);
}

#[tokio::test]
async fn a_tower_that_goes_is_let_go_when_no_other_can_be_had() {
    let mut tower = FakeTower::start("only").await;
    let beacon = Beacon::start(&[&tower]);
    let old = tower.stream().await;
    old.start(1, 10, &["a"]).await;
    beacon.serves(&["a"]).await;
    tower.stop_listening();
    beacon.until("nobody listens", |_| tower.server.is_finished()).await;
    old.goodbye(Reason::Draining, 0).await;
    old.left().await;
    beacon.until("it is disconnected", |beacon| beacon.link.state.lock().connected.is_none()).await;
    assert_eq!((beacon.hand_overs(), beacon.services()), (0, vec!["a".to_owned()]));
}

#[tokio::test]
async fn an_old_stream_that_ends_too_early_leaves_what_is_on_its_way() {
    let (_first, mut second, beacon, old) = two().await;
    old.goodbye(Reason::Draining, 0).await;
    let new = second.stream().await;
    drop(old);
    new.start(1, 9, &["a", "b"]).await;
    // Behind as it is, it is what there is, and changes nothing.
    beacon.until("it follows the second Tower", |beacon| beacon.connected_to(&second)).await;
    assert_eq!(beacon.services(), ["a"]);
    new.add(2, 11, &["a", "b", "c"]).await;
    let mut new = new;
    let asked = async {
        loop {
            let request = new.requests.message().await.unwrap().expect("the stream is up").request;
            if let Some(Request::Buckets(_)) = request {
                break;
            }
        }
    };
    timeout(LIMIT, asked).await.expect("it asks for what it did not take");
}
