//! The gRPC service: the two aggregated methods.

use std::{net::SocketAddr, sync::Arc};

use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming, codegen::BoxStream};
use tower_common::view::Composition;
use tower_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
    aggregated_discovery_service_server::{AggregatedDiscoveryService, AggregatedDiscoveryServiceServer},
};

use super::{clients::Clients, delta::Delta, driver::responses, metrics::Metrics, sotw::Sotw};

/// What a request has at most. A request that names as many resources as a stream may have, with their
/// versions, is smaller.
const REQUEST_BYTES: usize = 4 << 20;

/// The service, as a server takes it.
pub type Service = AggregatedDiscoveryServiceServer<Ads>;

/// What the service is made of.
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

/// The two aggregated methods.
#[derive(Debug)]
pub struct Ads {
    options: Arc<Options>,
}

/// Makes the service.
pub fn service(options: Options) -> Service {
    let ads = Ads { options: Arc::new(options) };
    AggregatedDiscoveryServiceServer::new(ads).max_decoding_message_size(REQUEST_BYTES)
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Ads {
    type StreamAggregatedResourcesStream = BoxStream<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = BoxStream<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let peer = request.remote_addr();
        let responses = responses::<Sotw>(self.options.clone(), request.into_inner(), peer);
        Ok(Response::new(Box::pin(responses)))
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        let peer = request.remote_addr();
        let responses = responses::<Delta>(self.options.clone(), request.into_inner(), peer);
        Ok(Response::new(Box::pin(responses)))
    }
}
