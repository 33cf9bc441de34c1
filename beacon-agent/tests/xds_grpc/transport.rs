//! The services of single types, the Unix socket, and peers that die.

use std::time::Duration;

use beacon_agent::xds::{self, Keepalive, ResourceType, Scope};
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};
use tokio_util::sync::CancellationToken;
use tonic::{
    Code, Request,
    transport::{Channel, Endpoint},
};
use tower_proto::envoy::envoy::{
    config::cluster::v3::Cluster,
    service::{
        cluster::v3::cluster_discovery_service_client::ClusterDiscoveryServiceClient,
        discovery::v3::{
            DeltaDiscoveryRequest, DiscoveryRequest,
            aggregated_discovery_service_client::AggregatedDiscoveryServiceClient,
        },
        endpoint::v3::endpoint_discovery_service_client::EndpointDiscoveryServiceClient,
        listener::v3::listener_discovery_service_client::ListenerDiscoveryServiceClient,
        route::v3::route_discovery_service_client::RouteDiscoveryServiceClient,
    },
};

use crate::support::{World, composition, delta, sotw, within};

async fn channel(world: &World) -> Channel {
    Endpoint::from_shared(format!("http://{}", world.address)).unwrap().connect().await.unwrap()
}

/// A stream with this one request, which then stays open.
fn asking<T: Send + 'static>(request: T) -> Request<impl futures::Stream<Item = T> + Send + 'static> {
    Request::new(futures::StreamExt::chain(
        futures::stream::once(std::future::ready(request)),
        futures::stream::pending(),
    ))
}

/// Opens a stream of one type in each variant, without naming the type.
macro_rules! check_single {
    ($world:expr, $kind:ident, $client:ident, $sotw:ident, $delta:ident, $names:expr) => {
        let mut client = $client::new(channel($world).await);
        let request = DiscoveryRequest { type_url: String::new(), ..sotw(ResourceType::$kind, $names) };
        let mut stream = client.$sotw(asking(request)).await.unwrap().into_inner();
        let response = within(stream.message()).await.unwrap().unwrap();
        assert_eq!(response.type_url, ResourceType::$kind.url());
        assert_eq!(response.resources.len(), 1, "{response:?}");
        let request = DeltaDiscoveryRequest { type_url: String::new(), ..delta(ResourceType::$kind, $names) };
        let mut stream = client.$delta(asking(request)).await.unwrap().into_inner();
        let response = within(stream.message()).await.unwrap().unwrap();
        assert_eq!(response.type_url, ResourceType::$kind.url());
        assert_eq!(response.resources.len(), 1, "{response:?}");
    };
}

#[tokio::test]
async fn each_type_has_a_service_on_which_it_need_not_be_named() {
    let world = World::new(composition(&[("a", 0)])).await;
    check_single!(&world, Cluster, ClusterDiscoveryServiceClient, stream_clusters, delta_clusters, &[]);
    check_single!(
        &world,
        Endpoint,
        EndpointDiscoveryServiceClient,
        stream_endpoints,
        delta_endpoints,
        &["a"]
    );
    check_single!(&world, Listener, ListenerDiscoveryServiceClient, stream_listeners, delta_listeners, &[]);
    check_single!(&world, Route, RouteDiscoveryServiceClient, stream_routes, delta_routes, &["egress"]);
}

#[tokio::test]
async fn another_type_ends_the_stream_of_a_single_one() {
    let world = World::new(composition(&[("a", 0)])).await;
    let mut client = ClusterDiscoveryServiceClient::new(channel(&world).await);
    let request = sotw(ResourceType::Endpoint, &["a"]);
    let mut stream = client.stream_clusters(asking(request)).await.unwrap().into_inner();
    let status = within(stream.message()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("this stream serves cds, and "), "{status:?}");
}

#[tokio::test]
async fn a_cluster_says_where_its_endpoints_are_asked_for() {
    let world = World::new(composition(&[("a", 0)])).await;
    let source = |cluster: &[u8]| format!("{:?}", Cluster::decode(cluster).unwrap().eds_cluster_config);
    let mut client = ClusterDiscoveryServiceClient::new(channel(&world).await);
    let request = sotw(ResourceType::Cluster, &[]);
    let mut stream = client.stream_clusters(asking(request)).await.unwrap().into_inner();
    let single = within(stream.message()).await.unwrap().unwrap();
    assert!(source(&single.resources[0].value).contains("ApiConfigSource"));
    let mut stream = world.sotw().await;
    stream.send(sotw(ResourceType::Cluster, &[])).await;
    let aggregated = stream.next().await;
    assert!(!source(&aggregated.resources[0].value).contains("ApiConfigSource"));
    world.clients_are(|clients| clients.len() == 2).await;
    let scopes: Vec<Scope> = world.clients.snapshot().iter().map(|client| client.scope).collect();
    assert_eq!(scopes, [Scope::Single(ResourceType::Cluster), Scope::Aggregated]);
}

#[tokio::test]
async fn the_socket_serves_as_the_port_does_and_knows_its_peer() {
    let world = World::new(composition(&[("a", 0)])).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("xds.sock");
    let (incoming, file) = xds::socket::bind(&path).unwrap();
    let stopping = CancellationToken::new();
    let served = xds::serve(incoming, world.services.clone(), Keepalive::default(), stopping.clone());
    let served = tokio::spawn(served);
    let endpoint = Endpoint::from_static("http://beacon");
    let channel = endpoint.connect_with_connector(connector(path.clone())).await.unwrap();
    let mut client = AggregatedDiscoveryServiceClient::new(channel);
    let request = delta(ResourceType::Cluster, &[]);
    let mut stream = client.delta_aggregated_resources(asking(request)).await.unwrap().into_inner();
    assert_eq!(within(stream.message()).await.unwrap().unwrap().resources[0].name, "a");
    let peer = world.clients.snapshot()[0].peer;
    assert_eq!(peer.to_string(), format!("unix:pid={},uid={}", std::process::id(), uid()));
    stopping.cancel();
    drop(world.compositions);
    assert_eq!(within(stream.message()).await.unwrap_err().code(), Code::Unavailable);
    within(served).await.unwrap().unwrap();
    drop(file);
    assert!(!path.exists());
}

fn uid() -> u32 {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap())
}

fn connector(
    path: std::path::PathBuf,
) -> impl tower::Service<
    tonic::transport::Uri,
    Response = TokioIo<UnixStream>,
    Error = std::io::Error,
    Future = impl Send,
> + Send {
    tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    })
}

/// Speaks HTTP/2 by hand: opens a connection, and never answers a ping.
#[tokio::test]
async fn b20_a_dead_peer_is_noticed_and_freed() {
    let keepalive = Keepalive { interval: Duration::from_millis(200), timeout: Duration::from_millis(200) };
    let world = World::with_keepalive(composition(&[("a", 0)]), keepalive).await;
    let mut alive = world.delta().await;
    alive.send(delta(ResourceType::Cluster, &[])).await;
    alive.next().await;

    let mut dead = TcpStream::connect(world.address).await.unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    dead.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    dead.write_all(&settings).await.unwrap();
    let mut sink = Vec::new();
    within(dead.read_to_end(&mut sink)).await.ok();

    // Whoever answers stays, however quiet, and gets the next change.
    tokio::time::sleep(keepalive.interval * 5).await;
    world.compositions.send(composition(&[("b", 0)])).unwrap();
    assert_eq!(alive.next().await.resources[0].name, "b");
}

/// envoyproxy/go-control-plane#449: a client's pings are nobody's offence.
#[tokio::test]
async fn b20_a_client_may_ping_as_often_as_it_likes() {
    let world = World::new(composition(&[("a", 0)])).await;
    let channel = Endpoint::from_shared(format!("http://{}", world.address))
        .unwrap()
        .http2_keep_alive_interval(Duration::from_millis(5))
        .keep_alive_while_idle(true)
        .connect()
        .await
        .unwrap();
    let mut client = AggregatedDiscoveryServiceClient::new(channel);
    let request = delta(ResourceType::Cluster, &[]);
    let mut stream = client.delta_aggregated_resources(asking(request)).await.unwrap().into_inner();
    within(stream.message()).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.compositions.send(composition(&[("a", 0), ("b", 0)])).unwrap();
    // 400 pings later: the first response was never answered, and clusters are held back for 0.5 s.
    assert_eq!(within(stream.message()).await.unwrap().unwrap().resources[0].name, "b");
}
