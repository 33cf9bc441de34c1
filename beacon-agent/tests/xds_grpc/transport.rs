//! The services of single types, and the Unix socket.

use beacon_agent::xds::{self, Keepalive, ResourceType, Scope};
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tonic::{
    Code,
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

use crate::support::{World, asking, composition, delta, sotw, within};

async fn channel(world: &World) -> Channel {
    Endpoint::from_shared(format!("http://{}", world.address)).unwrap().connect().await.unwrap()
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
