//! The xDS service over gRPC: what the protocol's logic, tested by itself, does not show.

use std::{collections::HashMap, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use beacon_agent::xds::{self, Clients, Metrics, Mode, Options, ResourceType};
use bytes::Bytes;
use futures::StreamExt;
use prometheus_client::registry::Registry;
use prost::Message;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Status, Streaming,
    transport::{Channel, Server, server::TcpIncoming},
};
use tower_common::view::{Composition, Layer, XdsResource};
use tower_proto::envoy::{
    envoy::{
        config::{core::v3::Node, endpoint::v3::ClusterLoadAssignment, listener::v3::Listener},
        service::discovery::v3::{
            DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
            aggregated_discovery_service_client::AggregatedDiscoveryServiceClient,
        },
    },
    google::{
        protobuf::{Struct, Value, value::Kind},
        rpc,
    },
};

const DEADLINE: Duration = Duration::from_secs(20);

/// A server, and what a test has in its hands.
struct World {
    compositions: watch::Sender<Composition>,
    clients: Clients,
    registry: Registry,
    address: SocketAddr,
}

/// One stream: requests in, responses out.
struct Stream<Request, Response> {
    requests: mpsc::Sender<Request>,
    responses: Streaming<Response>,
}

impl World {
    async fn new(composition: Composition) -> Self {
        let (compositions, receiver) = watch::channel(composition);
        let clients = Clients::new();
        let mut registry = Registry::default();
        let service = xds::service(Options {
            identifier: "beacon/test".to_owned(),
            egress: "127.0.0.1:5875".parse().unwrap(),
            compositions: receiver,
            clients: clients.clone(),
            metrics: Metrics::new(&mut registry),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let incoming = TcpIncoming::from(listener);
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        Self { compositions, clients, registry, address }
    }

    async fn connect(&self) -> AggregatedDiscoveryServiceClient<Channel> {
        let url = format!("http://{}", self.address);
        AggregatedDiscoveryServiceClient::connect(url).await.unwrap()
    }

    async fn sotw(&self) -> Stream<DiscoveryRequest, DiscoveryResponse> {
        let (requests, receiver) = mpsc::channel(16);
        let requested = ReceiverStream::new(receiver);
        let responses = self.connect().await.stream_aggregated_resources(requested).await.unwrap();
        Stream { requests, responses: responses.into_inner() }
    }

    async fn delta(&self) -> Stream<DeltaDiscoveryRequest, DeltaDiscoveryResponse> {
        let (requests, receiver) = mpsc::channel(16);
        let requested = ReceiverStream::new(receiver);
        let responses = self.connect().await.delta_aggregated_resources(requested).await.unwrap();
        Stream { requests, responses: responses.into_inner() }
    }

    /// Waits until the list of clients is as it should be.
    async fn clients_are(&self, expected: impl Fn(&[xds::clients::Client]) -> bool) {
        let mut changes = self.clients.changes();
        let seen = async {
            while !expected(&self.clients.snapshot()) {
                changes.changed().await.unwrap();
            }
        };
        if timeout(DEADLINE, seen).await.is_err() {
            panic!("the clients are {:?}", self.clients.snapshot());
        }
    }

    fn metric(&self, name: &str) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let line = text.lines().find(|line| line.starts_with(name));
        line.map(|line| line[name.len()..].trim().to_owned()).unwrap_or_default()
    }
}

impl<Request, Response> Stream<Request, Response> {
    async fn send(&self, request: Request) {
        self.requests.send(request).await.map_err(|_| ()).expect("the stream is open");
    }

    async fn next(&mut self) -> Response {
        within(self.responses.next()).await.expect("a response").expect("no error")
    }

    async fn error(&mut self) -> Status {
        loop {
            match within(self.responses.next()).await {
                Some(Ok(_)) => {}
                Some(Err(status)) => return status,
                None => panic!("the stream ended without an error"),
            }
        }
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.expect("within the deadline")
}

/// Services, with so many bytes of content.
fn composition(services: &[(&str, usize)]) -> Composition {
    let layer = services.iter().map(|(name, size)| {
        let named = ClusterLoadAssignment { cluster_name: (*name).to_owned(), ..Default::default() };
        let mut body = named.encode_to_vec();
        body.resize(body.len() + size, 0);
        let resource = XdsResource::from_body((*name).into(), Bytes::from(body));
        (resource.name.clone(), resource)
    });
    let layer: Layer = Arc::new(layer.collect());
    Composition { complete: true, clusters: layer.clone(), assignments: layer.clone(), virtual_hosts: layer }
}

fn node(agent: &str, port: Option<Kind>) -> Option<Node> {
    let entry = |kind| ("tower.egress_port".to_owned(), Value { kind: Some(kind) });
    let fields: HashMap<String, Value> = port.map(entry).into_iter().collect();
    Some(Node {
        id: "node-1".to_owned(),
        cluster: "edge".to_owned(),
        user_agent_name: agent.to_owned(),
        metadata: Some(Struct { fields }),
        ..Default::default()
    })
}

fn sotw(kind: ResourceType, names: &[&str]) -> DiscoveryRequest {
    DiscoveryRequest {
        node: node("envoy", None),
        type_url: kind.url().to_owned(),
        resource_names: names.iter().map(|&name| name.to_owned()).collect(),
        ..Default::default()
    }
}

fn delta(kind: ResourceType, names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: node("envoy", None),
        type_url: kind.url().to_owned(),
        resource_names_subscribe: names.iter().map(|&name| name.to_owned()).collect(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_client_gets_what_it_asks_for_and_then_what_changes() {
    let world = World::new(composition(&[("a", 0), ("b", 0)])).await;
    let mut stream = world.sotw().await;
    stream.send(sotw(ResourceType::Cluster, &[])).await;
    let first = stream.next().await;
    assert_eq!((first.resources.len(), first.nonce.as_str()), (2, "1"));
    assert_eq!(first.control_plane.unwrap().identifier, "beacon/test");
    // The node is named once.
    let ack = DiscoveryRequest { response_nonce: first.nonce, ..sotw(ResourceType::Cluster, &[]) };
    stream.send(DiscoveryRequest { node: None, ..ack }).await;
    world.compositions.send(composition(&[("a", 0)])).unwrap();
    assert_eq!(stream.next().await.resources.len(), 1);

    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Endpoint, &["a", "x"])).await;
    let first = stream.next().await;
    assert_eq!((first.resources.len(), first.removed_resources), (1, vec!["x".to_owned()]));
    let ack = DeltaDiscoveryRequest { response_nonce: first.nonce, ..delta(ResourceType::Endpoint, &[]) };
    stream.send(DeltaDiscoveryRequest { node: None, ..ack }).await;
    world.compositions.send(composition(&[("a", 0), ("x", 0)])).unwrap();
    assert_eq!(stream.next().await.resources[0].name, "x");
}

#[tokio::test]
async fn a_rejection_is_seen_and_a_stream_that_ends_is_gone() {
    let world = World::new(composition(&[("a", 0)])).await;
    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Cluster, &[])).await;
    let response = stream.next().await;
    let error = rpc::Status { code: 13, message: "no such filter".to_owned(), ..Default::default() };
    let nack = DeltaDiscoveryRequest {
        response_nonce: response.nonce.clone(),
        error_detail: Some(error),
        ..delta(ResourceType::Cluster, &[])
    };
    stream.send(nack).await;
    world
        .clients_are(|clients| {
            let client = clients.first();
            let rejected = client.and_then(|c| c.types.get(&ResourceType::Cluster)?.rejected.as_ref());
            rejected.is_some_and(|rejected| {
                rejected.message == "no such filter"
                    && rejected.response.version == response.system_version_info
            })
        })
        .await;
    let client = world.clients.snapshot().remove(0);
    assert_eq!((client.node_id.as_str(), client.mode, client.peer.is_some()), ("node-1", Mode::Delta, true));
    assert_eq!(world.metric("xds_nacks_total{type=\"cds\",reason=\"content\"}"), "1");
    assert_eq!(world.metric("xds_streams{mode=\"delta\"}"), "1");
    drop(stream);
    world.clients_are(<[_]>::is_empty).await;
}

#[tokio::test]
async fn bad_first_requests_are_refused_by_name() {
    let world = World::new(composition(&[])).await;
    let mut stream = world.sotw().await;
    stream.send(DiscoveryRequest { node: None, ..sotw(ResourceType::Cluster, &[]) }).await;
    let status = stream.error().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("node is missing"), "{status:?}");

    let mut stream = world.delta().await;
    let untyped = DeltaDiscoveryRequest { type_url: String::new(), ..delta(ResourceType::Cluster, &[]) };
    stream.send(untyped).await;
    let status = stream.error().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("type_url is missing"), "{status:?}");
    world.clients_are(<[_]>::is_empty).await;
}

#[tokio::test]
async fn until_everything_is_loaded_envoy_waits_and_grpc_is_sent_elsewhere() {
    let world = World::new(Composition::default()).await;
    let mut envoy = world.sotw().await;
    envoy.send(sotw(ResourceType::Cluster, &[])).await;
    let mut grpc = world.sotw().await;
    let target = sotw(ResourceType::Listener, &["x"]);
    grpc.send(DiscoveryRequest { node: node("gRPC Go", None), ..target }).await;
    assert_eq!(grpc.error().await.code(), Code::Unavailable);
    world.clients_are(|clients| clients.len() == 1 && clients[0].types.len() == 1).await;
    world.compositions.send(composition(&[("a", 0)])).unwrap();
    assert_eq!(envoy.next().await.resources.len(), 1);
}

#[tokio::test]
async fn an_envoy_says_where_it_listens() {
    let world = World::new(composition(&[])).await;
    let cases = [
        (Kind::NumberValue(7001.0), "PortValue(7001)"),
        (Kind::StringValue("7002".to_owned()), "PortValue(7002)"),
        (Kind::StringValue("none".to_owned()), "PortValue(5875)"),
    ];
    for (port, expected) in cases {
        let mut stream = world.sotw().await;
        let node = node("envoy", Some(port));
        stream.send(DiscoveryRequest { node, ..sotw(ResourceType::Listener, &[]) }).await;
        let any = stream.next().await.resources.remove(0);
        let address = format!("{:?}", Listener::decode(any.value.as_slice()).unwrap().address);
        assert!(address.contains(expected), "{address}");
    }
}

#[tokio::test]
async fn a_reader_that_stops_costs_little_and_then_gets_the_newest() {
    let large = |round: usize| composition(&[("a", (1 << 20) + round)]);
    let world = World::new(large(0)).await;
    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Cluster, &[])).await;
    world.clients_are(|clients| clients.first().is_some_and(|client| !client.types.is_empty())).await;
    // It asks for all again and again, which is never held back, and reads nothing.
    for round in 1..=300 {
        stream.send(delta(ResourceType::Cluster, &["*"])).await;
        world.compositions.send(large(round)).unwrap();
    }
    let requests = |clients: &[xds::clients::Client]| clients[0].types[&ResourceType::Cluster].requests;
    world.clients_are(|clients| requests(clients) > 0).await;
    let newest = large(300).clusters["a"].version.to_string();
    let mut read = 0;
    loop {
        let response = stream.next().await;
        read += 1;
        if response.resources[0].version == newest {
            break;
        }
        let ack =
            DeltaDiscoveryRequest { response_nonce: response.nonce, ..delta(ResourceType::Cluster, &[]) };
        stream.send(ack).await;
    }
    assert!(read <= 20, "{read} responses were waiting");
}

#[tokio::test]
async fn streams_that_end_in_any_way_leave_nothing_behind() {
    let world = World::new(composition(&[("a", 0)])).await;
    for round in 0..60 {
        let mut stream = world.sotw().await;
        match round % 3 {
            0 => {
                stream.send(sotw(ResourceType::Cluster, &[])).await;
                stream.next().await;
                let Stream { requests, mut responses } = stream;
                drop(requests);
                assert!(within(responses.next()).await.is_none(), "a half-closed stream is closed");
            }
            1 => stream.send(sotw(ResourceType::Cluster, &[])).await,
            _ => {
                stream.send(DiscoveryRequest::default()).await;
                stream.error().await;
            }
        }
    }
    world.clients_are(<[_]>::is_empty).await;
    assert_eq!(world.metric("xds_streams_refused_total"), "20");
}

#[tokio::test]
async fn when_the_beacon_stops_streams_end_with_a_reason() {
    let world = World::new(composition(&[("a", 0)])).await;
    let mut stream = world.delta().await;
    stream.send(delta(ResourceType::Cluster, &[])).await;
    stream.next().await;
    drop(world.compositions);
    assert_eq!(stream.error().await.code(), Code::Unavailable);
}
