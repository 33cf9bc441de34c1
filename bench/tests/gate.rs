//! What a change costs, counted and not timed, so that it can be checked on any machine: memory that is
//! allocated for each delivery, by the real server over real sockets, and bytes on the wire. Limits are a
//! little above what is needed now. Who goes beyond one has made all deliveries dearer.

use std::{net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use tower_bench::swarm::{
    beacon::Beacon,
    http2::{self, Frames, Heard},
    state::State,
};
use tower_common::{
    clock,
    resource::{Origin, Resource, ResourceKey},
    store::Transaction,
};
use tower_proto::v1;
use tower_server::{
    fanout::{
        admission::Admission,
        beacons::Beacons,
        body::FetchStart,
        encoding::{Encoding, packed},
        log::{Cursor, FrameLog, Limits},
        service::{Options, Starts, SyncService},
        start::{Start, StartFrom},
    },
    grpc,
    store_actor::{Ask, StoreCore},
};

const STREAMS: usize = 100;
const ROUNDS: usize = 20;

/// Allocations for each delivery of a small change to a stream, over all layers, and what is allocated.
const ALLOCATIONS: f64 = 4.0;
const ALLOCATED_BYTES: f64 = 600.0;

/// Bytes of one endpoint that comes, on the wire, and of each of a thousand that come together.
const BYTES_OF_ONE: usize = 320;
const BYTES_OF_EACH: f64 = 40.0;

/// A store that all streams start from, and the log that they follow.
struct Tower {
    core: Mutex<StoreCore>,
    log: Arc<FrameLog>,
    changes: Mutex<u64>,
}

impl Tower {
    fn new() -> Arc<Self> {
        let log = FrameLog::new(Limits::default());
        let tower = Self { core: Mutex::new(StoreCore::new("")), log, changes: Mutex::default() };
        tower.append(&endpoints(0..100));
        Arc::new(tower)
    }

    /// These endpoints come. Returns what is sent.
    fn frames(&self, upserts: &[Resource]) -> Vec<Bytes> {
        let mut changes = self.changes.lock();
        *changes += 1;
        let position = v1::Position { source: "zk".into(), incarnation: "1".into(), index: *changes };
        let mut status =
            v1::SourceStatus { source: "zk".into(), position: Some(position), ..Default::default() };
        status.set_state(v1::SourceState::Live);
        let transaction =
            Transaction { upserts: upserts.to_vec(), sources: vec![status], ..Transaction::default() };
        self.core.lock().apply(transaction, clock::monotonic()).expect("a change")
    }

    fn append(&self, upserts: &[Resource]) -> usize {
        let frames = self.frames(upserts);
        let bytes = frames.iter().map(|frame| packed(frame).len()).sum();
        self.log.append(frames, self.core.lock().revision());
        bytes
    }
}

impl Starts for Tower {
    fn start(&self, _: Ask) -> FetchStart {
        let core = self.core.lock();
        let next = Cursor { place: self.log.end(), revision: core.revision() };
        let start = Arc::new(Start::new(core.delivery_from(&StartFrom::Nothing), Some(next)));
        Box::pin(async move { Some(start) })
    }

    fn buckets(&self, _: v1::Buckets, _: u64) -> FetchStart {
        Box::pin(async { None })
    }
}

/// Endpoints as they are registered, of services with ten each.
fn endpoints(numbers: std::ops::Range<usize>) -> Vec<Resource> {
    let endpoint = |number: usize| {
        let (service, port) = (format!("service-{:05}", number / 10), 8000 + number as u32 % 10);
        let address = format!("10.1.{}.{}", number / 250, number % 250);
        let key = ResourceKey::new("", v1::Kind::Endpoint, &service, &format!("{address}:{port}@zk"));
        let body = v1::Endpoint { address, port, ..Default::default() };
        let origin = Origin { source: "zk".into(), index: number as u64 };
        Resource::new(key, origin, prost::Message::encode_to_vec(&body).into())
    };
    numbers.map(endpoint).collect()
}

async fn serve(tower: &Arc<Tower>) -> SocketAddr {
    let beacons = Arc::new(Beacons::default());
    let stopping = CancellationToken::new();
    let service = SyncService::new(Options {
        scope: String::new(),
        welcome: v1::Welcome { tower: "run".into(), ..Default::default() },
        log: tower.log.clone(),
        starts: tower.clone(),
        admission: Admission::new(64 << 20),
        beacons: beacons.clone(),
        stream_age: Duration::from_secs(3600),
        hand_over: Duration::from_secs(4),
        stopping: stopping.clone(),
    });
    let listener = grpc::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(grpc::serve(listener, None, beacons, service, stopping));
    address
}

/// The other end of a stream, which allocates nothing.
struct Client {
    socket: TcpStream,
    frames: Frames,
    data: usize,
}

impl Client {
    async fn connect(address: SocketAddr, number: usize) -> Self {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let mut out = Vec::new();
        http2::open(&mut out, 1 << 20);
        http2::call(&mut out, "tower", "/tower.v1.Sync/Watch");
        http2::data(&mut out, &Beacon::new(number, &Rc::clone(&State::empty())).hello());
        http2::settings_ack(&mut out);
        socket.write_all(&out).await.unwrap();
        Self { socket, frames: Frames::default(), data: 0 }
    }

    /// Reads until so many bytes of the stream are there.
    async fn read(&mut self, bytes: usize) {
        let mut buffer = [0; 4096];
        while self.data < bytes {
            let read = self.socket.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the stream has ended");
            let data = &mut self.data;
            let heard = self.frames.take(&buffer[..read], |heard| {
                if let Heard::Data(part) = heard {
                    *data += part.len();
                }
                Ok(())
            });
            heard.unwrap();
        }
        assert_eq!(self.data, bytes);
        self.data = 0;
    }
}

#[test]
fn a_delivery_allocates_little() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tower = Tower::new();
    let mut clients = runtime.block_on(async {
        let address = serve(&tower).await;
        let mut clients = Vec::new();
        for number in 0..STREAMS {
            clients.push(Client::connect(address, number).await);
        }
        clients
    });
    let all = |clients: &mut Vec<Client>, bytes: usize| {
        runtime.block_on(async {
            for client in clients {
                client.read(bytes).await;
            }
        });
    };
    let welcome = v1::Welcome { tower: "run".into(), ..Default::default() };
    let welcome = tower_server::fanout::frame::framed(&v1::WatchResponse {
        welcome: Some(welcome),
        ..Default::default()
    });
    let start = Start::new(tower.core.lock().delivery_from(&StartFrom::Nothing), None);
    let start: usize = start.frames(Encoding::Zstd).iter().map(Bytes::len).sum();
    all(&mut clients, welcome.len() + start);
    let mut number = 1000;
    let mut deliver = |rounds: usize| {
        for _ in 0..rounds {
            number += 1;
            let bytes = tower.append(&endpoints(number..number + 1));
            all(&mut clients, bytes);
        }
    };
    // Until buffers have their size.
    deliver(ROUNDS);
    let counted = allocation_counter::measure(|| deliver(ROUNDS));
    let deliveries = (STREAMS * ROUNDS) as f64;
    let (count, bytes) = (counted.count_total as f64 / deliveries, counted.bytes_total as f64 / deliveries);
    println!("{count:.2} allocations and {bytes:.0} bytes for each delivery");
    assert!(count < ALLOCATIONS, "{count:.2} allocations for each delivery, not below {ALLOCATIONS}");
    assert!(bytes < ALLOCATED_BYTES, "{bytes:.0} bytes for each delivery, not below {ALLOCATED_BYTES}");
    assert!(counted.bytes_current < 64 << 10, "{} bytes stay allocated", counted.bytes_current);
}

#[test]
fn a_change_is_few_bytes_whatever_the_size_of_the_store() {
    let bytes = |held: usize, coming: usize| {
        let tower = Tower::new();
        tower.append(&endpoints(10_000..10_000 + held));
        let frames = tower.frames(&endpoints(1000..1000 + coming));
        frames.iter().map(|frame| packed(frame).len()).sum::<usize>()
    };
    let (small, large) = (bytes(1, 1), bytes(20_000, 1));
    println!("{small} bytes of one endpoint, {large} in a large store");
    assert!(large < BYTES_OF_ONE, "{large} bytes, not below {BYTES_OF_ONE}");
    // Numbers have more digits there.
    assert!(large <= small + 8, "{small} bytes in a small store, and {large} in a large one");
    let each = bytes(1000, 1000) as f64 / 1000.0;
    println!("{each:.1} bytes of each of many");
    assert!(each < BYTES_OF_EACH, "{each:.1} bytes of each of many, not below {BYTES_OF_EACH}");
}
