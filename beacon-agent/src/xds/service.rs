//! The gRPC services: the aggregated one, and one for each type.

use std::{net::SocketAddr, sync::Arc};

use tokio::sync::watch;
use tonic::{
    Request, Response, Status, Streaming,
    codegen::BoxStream,
    service::{Routes, RoutesBuilder},
};
use tower_common::view::Composition;
use tower_proto::envoy::envoy::service::{
    self as api,
    discovery::v3::{
        DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
        aggregated_discovery_service_server::{AggregatedDiscoveryService, AggregatedDiscoveryServiceServer},
    },
};

use super::{
    clients::Clients,
    delta::Delta,
    driver::responses,
    kind::{ResourceType, Scope},
    metrics::Metrics,
    peer::Peer,
    protocol::Protocol,
    sotw::Sotw,
};

/// What a request has at most. A request that names as many resources as a stream may have, with their
/// versions, is smaller.
const REQUEST_BYTES: usize = 4 << 20;

/// What the services are made of.
#[derive(Debug)]
pub struct Options {
    /// How the server calls itself, so that a client can tell whom it is connected to.
    pub identifier: String,
    /// Where an Envoy listens for calls that leave the host, if it does not say otherwise.
    pub egress: SocketAddr,
    /// What is served. Streams end when the sender is gone.
    pub compositions: watch::Receiver<Composition>,
    /// Where clients are listed.
    pub clients: Clients,
    /// Where things are counted.
    pub metrics: Metrics,
}

/// The methods of all services.
#[derive(Debug, Clone)]
struct Discovery {
    options: Arc<Options>,
}

/// Makes the services.
pub fn services(options: Options) -> Routes {
    let discovery = Discovery { options: Arc::new(options) };
    let aggregated = AggregatedDiscoveryServiceServer::new(discovery.clone());
    let mut routes = RoutesBuilder::default();
    routes.add_service(aggregated.max_decoding_message_size(REQUEST_BYTES));
    add_singles(&mut routes, &discovery);
    routes.routes().prepare()
}

impl Discovery {
    fn open<P: Protocol>(&self, scope: Scope, request: Request<Streaming<P::Request>>) -> Opened<P> {
        let peer = Peer::of(&request);
        let responses = responses::<P>(self.options.clone(), scope, request.into_inner(), peer);
        Ok(Response::new(Box::pin(responses)))
    }
}

type Opened<P> = Result<Response<BoxStream<<P as Protocol>::Response>>, Status>;

#[tonic::async_trait]
impl AggregatedDiscoveryService for Discovery {
    type StreamAggregatedResourcesStream = BoxStream<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = BoxStream<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Opened<Sotw> {
        self.open::<Sotw>(Scope::Aggregated, request)
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Opened<Delta> {
        self.open::<Delta>(Scope::Aggregated, request)
    }
}

/// Implements the services of single types, `StreamX` and `DeltaX`, and their registration. `FetchX` is
/// REST, which is deprecated.
macro_rules! singles {
    ($($kind:ident: $package:ident::$module:ident::{$service:ident, $server:ident},
       $stream:ident -> $streams:ident, $delta:ident -> $deltas:ident, $fetch:ident;)*) => {
        fn add_singles(routes: &mut RoutesBuilder, discovery: &Discovery) {
            $(
                let server = api::$package::v3::$module::$server::new(discovery.clone());
                routes.add_service(server.max_decoding_message_size(REQUEST_BYTES));
            )*
        }

        $(
            #[tonic::async_trait]
            impl api::$package::v3::$module::$service for Discovery {
                type $streams = BoxStream<DiscoveryResponse>;
                type $deltas = BoxStream<DeltaDiscoveryResponse>;

                async fn $stream(&self, request: Request<Streaming<DiscoveryRequest>>) -> Opened<Sotw> {
                    self.open::<Sotw>(Scope::Single(ResourceType::$kind), request)
                }

                async fn $delta(&self, request: Request<Streaming<DeltaDiscoveryRequest>>) -> Opened<Delta> {
                    self.open::<Delta>(Scope::Single(ResourceType::$kind), request)
                }

                async fn $fetch(
                    &self,
                    _: Request<DiscoveryRequest>,
                ) -> Result<Response<DiscoveryResponse>, Status> {
                    Err(Status::unimplemented("there is no fetching; open a stream instead"))
                }
            }
        )*
    };
}

singles! {
    Secret: secret::secret_discovery_service_server::{SecretDiscoveryService, SecretDiscoveryServiceServer},
        stream_secrets -> StreamSecretsStream, delta_secrets -> DeltaSecretsStream, fetch_secrets;
    Runtime: runtime::runtime_discovery_service_server::{
        RuntimeDiscoveryService, RuntimeDiscoveryServiceServer
    },
        stream_runtime -> StreamRuntimeStream, delta_runtime -> DeltaRuntimeStream, fetch_runtime;
    Cluster: cluster::cluster_discovery_service_server::{
        ClusterDiscoveryService, ClusterDiscoveryServiceServer
    },
        stream_clusters -> StreamClustersStream, delta_clusters -> DeltaClustersStream, fetch_clusters;
    Endpoint: endpoint::endpoint_discovery_service_server::{
        EndpointDiscoveryService, EndpointDiscoveryServiceServer
    },
        stream_endpoints -> StreamEndpointsStream, delta_endpoints -> DeltaEndpointsStream, fetch_endpoints;
    Extension: extension::extension_config_discovery_service_server::{
        ExtensionConfigDiscoveryService, ExtensionConfigDiscoveryServiceServer
    },
        stream_extension_configs -> StreamExtensionConfigsStream,
        delta_extension_configs -> DeltaExtensionConfigsStream, fetch_extension_configs;
    Listener: listener::listener_discovery_service_server::{
        ListenerDiscoveryService, ListenerDiscoveryServiceServer
    },
        stream_listeners -> StreamListenersStream, delta_listeners -> DeltaListenersStream, fetch_listeners;
    ScopedRoute: route::scoped_routes_discovery_service_server::{
        ScopedRoutesDiscoveryService, ScopedRoutesDiscoveryServiceServer
    },
        stream_scoped_routes -> StreamScopedRoutesStream,
        delta_scoped_routes -> DeltaScopedRoutesStream, fetch_scoped_routes;
    Route: route::route_discovery_service_server::{RouteDiscoveryService, RouteDiscoveryServiceServer},
        stream_routes -> StreamRoutesStream, delta_routes -> DeltaRoutesStream, fetch_routes;
}
