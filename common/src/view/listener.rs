//! The egress listener.

use tower_proto::envoy::{
    envoy::{
        config::{
            core::v3::{
                Address, AggregatedConfigSource, ApiVersion, ConfigSource, SocketAddress, address,
                config_source::ConfigSourceSpecifier, socket_address::PortSpecifier,
            },
            listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
        },
        extensions::filters::{
            http::router::v3::Router,
            network::http_connection_manager::v3::{
                HttpConnectionManager, HttpFilter, Rds,
                http_connection_manager::{RouteSpecifier, ServerHeaderTransformation},
                http_filter,
            },
        },
    },
    google::protobuf::Duration,
};

use super::{EGRESS, NodeView, XdsResource, any};

/// The listener for calls that leave the host. It speaks HTTP/1.1 and HTTP/2, and takes its routes by RDS.
pub fn egress(node: NodeView) -> XdsResource {
    let router = HttpFilter {
        name: "envoy.filters.http.router".to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(any(&Router::default()))),
        ..Default::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: EGRESS.to_owned(),
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: Some(ads()),
            route_config_name: EGRESS.to_owned(),
        })),
        http_filters: vec![router],
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

/// "From the aggregated stream on which this came."
pub(super) fn ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..Default::default()
    }
}
