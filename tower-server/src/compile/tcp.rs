//! Bytes: passing them on, and the local ports of dependencies.

use tower_common::document::model::{Outbound, PatchKind};
use tower_proto::{
    envoy::{
        envoy::{
            config::{
                accesslog::v3::AccessLog,
                core::v3::TrafficDirection,
                listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
            },
            extensions::filters::network::tcp_proxy::v3::{TcpProxy, tcp_proxy::ClusterSpecifier},
        },
        google::protobuf::Duration,
    },
    v1::{ListenerPart, Side},
};

use super::{
    Parts,
    convert::{address, number},
    messages::{any, canonical},
    patches::Patches,
};

/// How often connecting is tried, each time to another endpoint if there is one: as often as with requests.
const ATTEMPTS: u32 = 2;

/// Passes everything on to a cluster.
pub(super) fn proxy(stat_prefix: &str, cluster: &str, access_log: Vec<AccessLog>) -> Filter {
    let proxy = TcpProxy {
        stat_prefix: stat_prefix.to_owned(),
        cluster_specifier: Some(ClusterSpecifier::Cluster(cluster.to_owned())),
        max_connect_attempts: number(ATTEMPTS),
        // A connection may be quiet for as long as its ends like; Envoy's default is an hour.
        idle_timeout: Some(Duration::default()),
        access_log,
        ..Default::default()
    };
    Filter {
        name: "envoy.filters.network.tcp_proxy".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&proxy))),
    }
}

/// Adds the local ports of what the service calls.
pub(super) fn add(service: &str, outbound: &Outbound, patches: &mut Patches<'_>, parts: &mut Parts) {
    for dependency in &outbound.dependencies {
        let Some(port) = dependency.listen else { continue };
        let name = format!("outbound/{service}/{}", dependency.service);
        let listener = Listener {
            name: name.clone(),
            address: Some(address("127.0.0.1", port)),
            filter_chains: vec![FilterChain {
                filters: vec![proxy(&name.replace('/', "_"), &dependency.service, Vec::new())],
                ..Default::default()
            }],
            traffic_direction: TrafficDirection::Outbound.into(),
            ..Default::default()
        };
        parts.listener(
            &name,
            &ListenerPart {
                listener: patches.apply(PatchKind::Listener, &name, canonical(&listener)),
                side: Side::Outbound.into(),
            },
        );
    }
}
