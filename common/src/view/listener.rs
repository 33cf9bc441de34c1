//! The egress listener.

use tower_proto::envoy::{
    envoy::{
        config::{
            core::{
                self,
                v3::{
                    Address, AggregatedConfigSource, ApiConfigSource, ApiVersion, GrpcService, SocketAddress,
                    address,
                    api_config_source::ApiType,
                    config_source::ConfigSourceSpecifier,
                    grpc_service::{EnvoyGrpc, TargetSpecifier},
                    socket_address::PortSpecifier,
                },
            },
            listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
        },
        extensions::filters::{
            http::{local_ratelimit::v3::LocalRateLimit, router::v3::Router},
            network::http_connection_manager::v3::{
                HttpConnectionManager, HttpFilter, Rds,
                http_connection_manager::{RouteSpecifier, ServerHeaderTransformation},
                http_filter,
            },
        },
    },
    google::protobuf::{Any, Duration},
};

use super::{BEACON, ConfigSource, EGRESS, NodeView, XdsResource, any};

/// The listener for calls that leave the host. It speaks HTTP/1.1 and HTTP/2, and takes its routes by RDS.
pub fn egress(node: &NodeView) -> XdsResource {
    // Without a limit of its own it does nothing, until a route has one. It is there always, because a filter
    // that is added later changes the listener, and that cuts connections. So will be those for cors, fault
    // and ratelimit, once routes can have such settings.
    let limit = LocalRateLimit { stat_prefix: EGRESS.to_owned(), ..Default::default() };
    let filters = [
        ("envoy.filters.http.local_ratelimit", any(&limit)),
        ("envoy.filters.http.router", any(&Router::default())),
    ];
    let filter = |(name, config): (&str, Any)| HttpFilter {
        name: name.to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(config)),
        ..Default::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: EGRESS.to_owned(),
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: Some(config_source(node.source)),
            route_config_name: EGRESS.to_owned(),
        })),
        http_filters: filters.map(filter).into(),
        // A stream may be quiet for as long as its ends like; Envoy's default cuts it after five minutes.
        stream_idle_timeout: Some(Duration::default()),
        // The caller sees the headers of the service that it called.
        server_header_transformation: ServerHeaderTransformation::PassThrough.into(),
        ..Default::default()
    };
    let address = SocketAddress {
        address: node.egress.ip().to_string(),
        port_specifier: Some(PortSpecifier::PortValue(node.egress.port().into())),
        ..Default::default()
    };
    let listener = Listener {
        name: EGRESS.to_owned(),
        address: Some(Address { address: Some(address::Address::SocketAddress(address)) }),
        filter_chains: vec![FilterChain {
            filters: vec![Filter {
                name: "envoy.filters.network.http_connection_manager".to_owned(),
                config_type: Some(ConfigType::TypedConfig(any(&manager))),
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    XdsResource::new(EGRESS, &listener)
}

/// How an Envoy is told where to ask.
pub(super) fn config_source(source: ConfigSource) -> core::v3::ConfigSource {
    let specifier = match source {
        ConfigSource::Aggregated => ConfigSourceSpecifier::Ads(AggregatedConfigSource {}),
        ConfigSource::Sotw => ConfigSourceSpecifier::ApiConfigSource(beacon(ApiType::Grpc)),
        ConfigSource::Delta => ConfigSourceSpecifier::ApiConfigSource(beacon(ApiType::DeltaGrpc)),
    };
    core::v3::ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(specifier),
        ..Default::default()
    }
}

fn beacon(api_type: ApiType) -> ApiConfigSource {
    let envoy_grpc = EnvoyGrpc { cluster_name: BEACON.to_owned(), ..Default::default() };
    ApiConfigSource {
        api_type: api_type.into(),
        transport_api_version: ApiVersion::V3.into(),
        grpc_services: vec![GrpcService {
            target_specifier: Some(TargetSpecifier::EnvoyGrpc(envoy_grpc)),
            ..Default::default()
        }],
        set_node_on_first_message_only: true,
        ..Default::default()
    }
}
