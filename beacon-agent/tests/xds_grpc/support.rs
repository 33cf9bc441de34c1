//! A server, and clients of it.

use std::{collections::HashMap, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use beacon_agent::xds::{self, Clients, Keepalive, Memories, Metrics, Options, ResourceType};
use bytes::Bytes;
use futures::StreamExt;
use prometheus_client::registry::Registry;
use prost::Message;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Status, Streaming,
    service::Routes,
    transport::{self, Channel, server::TcpIncoming},
};
use tower_common::view::{Composition, Layer, XdsResource};
use tower_proto::envoy::{
    envoy::{
        config::{core::v3::Node, endpoint::v3::ClusterLoadAssignment},
        service::discovery::v3::{
            DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
            aggregated_discovery_service_client::AggregatedDiscoveryServiceClient,
        },
    },
    google::protobuf::{Struct, Value, value::Kind},
};

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A server, and what a test has in its hands.
pub(crate) struct World {
    pub(crate) compositions: watch::Sender<Composition>,
    pub(crate) clients: Clients,
    pub(crate) registry: Registry,
    pub(crate) address: SocketAddr,
    pub(crate) services: Routes,
    stopping: CancellationToken,
    server: JoinHandle<Result<(), transport::Error>>,
}

/// One stream: requests in, responses out.
pub(crate) struct Stream<Q, R> {
    pub(crate) requests: mpsc::Sender<Q>,
    pub(crate) responses: Streaming<R>,
}

impl World {
    pub(crate) async fn new(composition: Composition) -> Self {
        Self::with_keepalive(composition, Keepalive::default()).await
    }

    pub(crate) async fn with_keepalive(composition: Composition, keepalive: Keepalive) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::at(listener, composition, keepalive, Memories::default())
    }

    /// A server that has taken the place of this one, and knows of clients what was written to a file.
    pub(crate) async fn restarted(self) -> Self {
        const SCOPE: &str = "";
        let composition = self.compositions.borrow().clone();
        // Its streams end with what is served.
        drop(self.compositions);
        self.stopping.cancel();
        within(self.server).await.unwrap().unwrap();
        let file = self.clients.memories().encode(SCOPE);
        let memories = Memories::decode(&file, SCOPE).unwrap();
        let listener = TcpListener::bind(self.address).await.unwrap();
        Self::at(listener, composition, Keepalive::default(), memories)
    }

    fn at(listener: TcpListener, composition: Composition, keepalive: Keepalive, memories: Memories) -> Self {
        let (compositions, receiver) = watch::channel(composition);
        let clients = Clients::remembering(memories);
        let mut registry = Registry::default();
        let services = xds::services(Options {
            identifier: "beacon/test".to_owned(),
            egress: "127.0.0.1:5875".parse().unwrap(),
            compositions: receiver,
            clients: clients.clone(),
            metrics: Metrics::new(&mut registry),
        });
        let address = listener.local_addr().unwrap();
        let incoming = TcpIncoming::from(listener);
        let stopping = CancellationToken::new();
        let server = tokio::spawn(xds::serve(incoming, services.clone(), keepalive, stopping.clone()));
        Self { compositions, clients, registry, address, services, stopping, server }
    }

    pub(crate) async fn connect(&self) -> AggregatedDiscoveryServiceClient<Channel> {
        let url = format!("http://{}", self.address);
        AggregatedDiscoveryServiceClient::connect(url).await.unwrap()
    }

    pub(crate) async fn sotw(&self) -> Stream<DiscoveryRequest, DiscoveryResponse> {
        let (requests, receiver) = mpsc::channel(16);
        let requested = ReceiverStream::new(receiver);
        let responses = self.connect().await.stream_aggregated_resources(requested).await.unwrap();
        Stream { requests, responses: responses.into_inner() }
    }

    pub(crate) async fn delta(&self) -> Stream<DeltaDiscoveryRequest, DeltaDiscoveryResponse> {
        let (requests, receiver) = mpsc::channel(16);
        let requested = ReceiverStream::new(receiver);
        let responses = self.connect().await.delta_aggregated_resources(requested).await.unwrap();
        Stream { requests, responses: responses.into_inner() }
    }

    /// Waits until the list of clients is as it should be.
    pub(crate) async fn clients_are(&self, expected: impl Fn(&[xds::clients::Client]) -> bool) {
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

    pub(crate) fn metric(&self, name: &str) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let line = text.lines().find(|line| line.starts_with(name));
        line.map(|line| line[name.len()..].trim().to_owned()).unwrap_or_default()
    }
}

impl<Q, R> Stream<Q, R> {
    pub(crate) async fn send(&self, request: Q) {
        self.requests.send(request).await.map_err(|_| ()).expect("the stream is open");
    }

    pub(crate) async fn next(&mut self) -> R {
        within(self.responses.next()).await.expect("a response").expect("no error")
    }

    pub(crate) async fn error(&mut self) -> Status {
        loop {
            match within(self.responses.next()).await {
                Some(Ok(_)) => {}
                Some(Err(status)) => return status,
                None => panic!("the stream ended without an error"),
            }
        }
    }
}

/// A stream with this one request, which then stays open.
pub(crate) fn asking<T: Send + 'static>(
    request: T,
) -> Request<impl futures::Stream<Item = T> + Send + 'static> {
    Request::new(futures::stream::once(std::future::ready(request)).chain(futures::stream::pending()))
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.expect("within the deadline")
}

/// Services, with so many bytes of content.
pub(crate) fn composition(services: &[(&str, usize)]) -> Composition {
    let layer = services.iter().map(|(name, size)| {
        let named = ClusterLoadAssignment { cluster_name: (*name).to_owned(), ..Default::default() };
        let mut body = named.encode_to_vec();
        body.resize(body.len() + size, 0);
        let resource = XdsResource::from_body((*name).into(), Bytes::from(body));
        (resource.name.clone(), resource)
    });
    let layer: Layer = Arc::new(layer.collect());
    Composition {
        complete: true,
        clusters: layer.clone(),
        assignments: layer.clone(),
        virtual_hosts: layer,
        ..Composition::default()
    }
}

pub(crate) fn node(agent: &str, port: Option<Kind>) -> Option<Node> {
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

pub(crate) fn sotw(kind: ResourceType, names: &[&str]) -> DiscoveryRequest {
    DiscoveryRequest {
        node: node("envoy", None),
        type_url: kind.url().to_owned(),
        resource_names: names.iter().map(|&name| name.to_owned()).collect(),
        ..Default::default()
    }
}

pub(crate) fn delta(kind: ResourceType, names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: node("envoy", None),
        type_url: kind.url().to_owned(),
        resource_names_subscribe: names.iter().map(|&name| name.to_owned()).collect(),
        ..Default::default()
    }
}
