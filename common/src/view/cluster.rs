//! The Envoy cluster of a service that has no document.

use std::collections::HashMap;

use tower_proto::envoy::{
    envoy::{
        config::{
            cluster::v3::{
                Cluster,
                cluster::{ClusterDiscoveryType, CommonLbConfig, DiscoveryType, EdsClusterConfig},
            },
            core::v3::{Http1ProtocolOptions, Http2ProtocolOptions},
        },
        extensions::upstreams::http::v3::{
            HttpProtocolOptions,
            http_protocol_options::{UpstreamProtocolOptions, UseDownstreamHttpConfig},
        },
        r#type::v3::Percent,
    },
    google::protobuf::Duration,
};

use super::{XdsResource, any, listener::ads};

/// The cluster of a service, whose endpoints come by EDS under the same name.
pub fn default_cluster(service: &str) -> XdsResource {
    // The upstream is spoken to as the caller speaks: a registration does not tell its protocol, and gRPC
    // fails over HTTP/1.1.
    let protocol = HttpProtocolOptions {
        upstream_protocol_options: Some(UpstreamProtocolOptions::UseDownstreamProtocolConfig(
            UseDownstreamHttpConfig {
                http_protocol_options: Some(Http1ProtocolOptions::default()),
                http2_protocol_options: Some(Http2ProtocolOptions::default()),
                http3_protocol_options: None,
            },
        )),
        ..Default::default()
    };
    let cluster = Cluster {
        name: service.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig { eds_config: Some(ads()), ..Default::default() }),
        connect_timeout: Some(Duration { seconds: 1, nanos: 0 }),
        // An endpoint that has left discovery gets no more traffic, whatever its health check says.
        ignore_health_on_host_removal: true,
        common_lb_config: Some(CommonLbConfig {
            // States are registered, not guessed: if all endpoints are draining or down, calling them
            // all the same is no remedy.
            healthy_panic_threshold: Some(Percent { value: 0.0 }),
            ..Default::default()
        }),
        typed_extension_protocol_options: HashMap::from([(
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions".to_owned(),
            any(&protocol),
        )]),
        ..Default::default()
    };
    XdsResource::new(service, &cluster)
}
