//! In front of the application on its own hosts: a listener and a cluster for each port.

use tower_common::document::model::{Document, Inbound, PatchKind, Port, Protocol, TlsMode};
use tower_proto::{
    envoy::{
        envoy::{
            config::{
                cluster::v3::{
                    Cluster,
                    cluster::{ClusterDiscoveryType, DiscoveryType},
                },
                core::v3::TrafficDirection,
                endpoint::v3::{
                    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
                    lb_endpoint::HostIdentifier,
                },
                listener::v3::{
                    Filter, FilterChain, FilterChainMatch, Listener, ListenerFilter, filter::ConfigType,
                    listener_filter,
                },
            },
            extensions::filters::{
                http::{local_ratelimit::v3::LocalRateLimit, rbac::v3::Rbac, router::v3::Router},
                listener::tls_inspector::v3::TlsInspector,
                network::http_connection_manager::v3::{
                    HttpConnectionManager, HttpFilter, Rds,
                    http_connection_manager::{
                        PathWithEscapedSlashesAction, RouteSpecifier, ServerHeaderTransformation,
                    },
                    http_filter,
                },
            },
        },
        google::protobuf::{BoolValue, Duration},
    },
    v1::{ClusterPart, ListenerPart, Side, VirtualHostPart},
};

use super::{
    Parts, access_log, breaker,
    convert::address,
    limits,
    messages::{any, canonical},
    patches::Patches,
    protocol, rbac, routes, tcp, tls,
};

/// The name of what is at a port: listener, cluster and route configuration.
pub(super) fn name(service: &str, port: &str) -> String {
    format!("inbound/{service}/{port}")
}

/// Adds what the service's hosts get for its ports.
pub(super) fn add(service: &str, document: &Document, patches: &mut Patches<'_>, parts: &mut Parts) {
    let inbound = &document.spec.inbound;
    for port in &inbound.ports {
        let spoken = port.protocol.or(document.spec.callers.protocol);
        let name = name(service, &port.name);
        let cluster = canonical(&application(&name, port, spoken));
        parts.cluster(
            &name,
            &ClusterPart {
                cluster: patches.apply(PatchKind::Cluster, &name, cluster),
                side: Side::Inbound.into(),
                ..Default::default()
            },
        );
        let is_http = spoken.is_none_or(Protocol::is_http);
        if is_http {
            let host = canonical(&routes::application(service, &port.name, inbound));
            parts.virtual_host(
                &name,
                &VirtualHostPart {
                    virtual_host: patches.apply(PatchKind::VirtualHost, &name, host),
                    side: Side::Inbound.into(),
                    route_config: name.clone(),
                    ..Default::default()
                },
            );
        }
        let filters = if is_http { vec![manager(&name, inbound)] } else { bytes(&name, inbound) };
        let listener = canonical(&listener(service, &name, port, inbound, &filters));
        parts.listener(
            &name,
            &ListenerPart {
                listener: patches.apply(PatchKind::Listener, &name, listener),
                side: Side::Inbound.into(),
            },
        );
    }
}

/// The application itself, whose callers have limits, timeouts and health checks of their own.
fn application(name: &str, port: &Port, spoken: Option<Protocol>) -> Cluster {
    let ip = port.app_address.as_deref().unwrap_or("127.0.0.1");
    let endpoint = Endpoint { address: Some(address(ip, port.app_port)), ..Default::default() };
    let endpoint =
        LbEndpoint { host_identifier: Some(HostIdentifier::Endpoint(endpoint)), ..Default::default() };
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Static.into())),
        connect_timeout: Some(Duration { seconds: 1, nanos: 0 }),
        load_assignment: Some(ClusterLoadAssignment {
            cluster_name: name.to_owned(),
            endpoints: vec![LocalityLbEndpoints { lb_endpoints: vec![endpoint], ..Default::default() }],
            ..Default::default()
        }),
        circuit_breakers: Some(breaker::none()),
        typed_extension_protocol_options: protocol::options(spoken),
        ..Default::default()
    }
}

fn listener(service: &str, name: &str, port: &Port, inbound: &Inbound, filters: &[Filter]) -> Listener {
    let plain = || FilterChain { filters: filters.to_vec(), ..Default::default() };
    let mut listener = Listener {
        name: name.to_owned(),
        address: Some(address(port.address.as_deref().unwrap_or("0.0.0.0"), port.port)),
        traffic_direction: TrafficDirection::Inbound.into(),
        ..Default::default()
    };
    let Some(socket) = tls::downstream(service, &inbound.tls) else {
        listener.filter_chains = vec![plain()];
        return listener;
    };
    let secured = FilterChain { transport_socket: Some(socket), ..plain() };
    listener.filter_chains = match inbound.tls.mode.unwrap_or_default() {
        TlsMode::Off | TlsMode::Strict => vec![secured],
        TlsMode::Permissive => {
            let for_protocol = |protocol: &str, chain: FilterChain| FilterChain {
                name: protocol.to_owned(),
                filter_chain_match: Some(FilterChainMatch {
                    transport_protocol: protocol.to_owned(),
                    ..Default::default()
                }),
                ..chain
            };
            listener.listener_filters = vec![ListenerFilter {
                name: "envoy.filters.listener.tls_inspector".to_owned(),
                config_type: Some(listener_filter::ConfigType::TypedConfig(any(&TlsInspector::default()))),
                ..Default::default()
            }];
            vec![for_protocol("tls", secured), for_protocol("raw_buffer", plain())]
        }
    };
    listener
}

/// What stands in front of bytes.
fn bytes(name: &str, inbound: &Inbound) -> Vec<Filter> {
    let prefix = name.replace('/', "_");
    let allowed = inbound.allowed_callers.as_ref().map(|allowed| rbac::tcp(&prefix, allowed));
    let limit = limits::tcp(&prefix, &inbound.rate_limits);
    let proxy = tcp::proxy(&prefix, name, access_log::inbound(&inbound.access_log, false));
    allowed.into_iter().chain(limit).chain([proxy]).collect()
}

/// What stands in front of requests. The filters are always there, and do nothing by themselves: what they
/// are to do comes with the routes, so that changing it drains no listener.
fn manager(name: &str, inbound: &Inbound) -> Filter {
    let prefix = name.replace('/', "_");
    let limit = LocalRateLimit { stat_prefix: prefix.clone(), ..Default::default() };
    let filter = |name: &str, config| HttpFilter {
        name: name.to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(config)),
        ..Default::default()
    };
    let manager = HttpConnectionManager {
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: None,
            route_config_name: name.to_owned(),
        })),
        stat_prefix: prefix,
        http_filters: vec![
            filter("envoy.filters.http.rbac", any(&Rbac::default())),
            filter("envoy.filters.http.local_ratelimit", any(&limit)),
            // CORS, fault injection and global rate limits will stand here.
            filter("envoy.filters.http.router", any(&Router::default())),
        ],
        access_log: access_log::inbound(&inbound.access_log, true),
        // A stream may be quiet for as long as its ends like; Envoy's default cuts it after five minutes.
        stream_idle_timeout: Some(Duration::default()),
        server_header_transformation: ServerHeaderTransformation::PassThrough.into(),
        // A rule for `/public` is none for `/public/../secret`.
        normalize_path: Some(BoolValue { value: true }),
        ..Default::default()
    };
    // Nor for `/public%2F..%2Fsecret`, which some applications take for the same.
    let escaped = if rbac::by_path(inbound.allowed_callers.as_ref()) {
        PathWithEscapedSlashesAction::RejectRequest
    } else {
        PathWithEscapedSlashesAction::ImplementationSpecificDefault
    };
    let manager = HttpConnectionManager { path_with_escaped_slashes_action: escaped.into(), ..manager };
    Filter {
        name: "envoy.filters.network.http_connection_manager".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&manager))),
    }
}

#[cfg(test)]
mod tests;
