//! The clusters of a service's callers: one of all endpoints, and one for each subset.

use std::collections::BTreeMap;

use tower_common::document::model::{Callers, PatchKind, Protocol};
use tower_proto::{
    envoy::{
        envoy::config::cluster::v3::{
            Cluster,
            cluster::{ClusterDiscoveryType, CommonLbConfig, DiscoveryType},
        },
        google::protobuf::Duration,
    },
    v1::{ClusterPart, Side, cluster_part::Share},
};

use super::{
    Parts, balancing, breaker,
    convert::{duration, percent},
    health,
    messages::canonical,
    outlier,
    patches::Patches,
    protocol, tls,
};

/// How long connecting may take if nothing else is said, as without a document.
const CONNECT_TIMEOUT: Duration = Duration { seconds: 1, nanos: 0 };

/// The name of a subset's cluster; of the whole service's, if there is no subset.
pub(super) fn name(service: &str, subset: Option<&str>) -> String {
    subset.map_or_else(|| service.to_owned(), |subset| format!("{service}/{subset}"))
}

/// Adds the clusters of a service's callers.
pub(super) fn add(service: &str, callers: &Callers, patches: &mut Patches<'_>, parts: &mut Parts) {
    let all = BTreeMap::new();
    let mut subsets = vec![(None, &all)];
    // TCP is split by the weights of endpoints in one cluster: a connection lives on when weights change.
    if callers.protocol.is_none_or(Protocol::is_http) {
        subsets.extend(callers.subsets.iter().map(|(subset, labels)| (Some(subset.as_str()), labels)));
    }
    for (subset, labels) in subsets {
        let name = name(service, subset);
        let (failover, overprovisioning_percent) = balancing::failover(&callers.locality);
        let cluster = cluster(service, &name, callers);
        let part = ClusterPart {
            cluster: patches.apply(PatchKind::Cluster, &name, canonical(&cluster)),
            endpoints_of: service.to_owned(),
            labels: labels.clone(),
            port_name: String::new(),
            failover: failover.into(),
            side: Side::Callers.into(),
            overprovisioning_percent,
            shares: if subset.is_none() { shares(callers) } else { Vec::new() },
            grpc: for_grpc(&cluster, callers).map(|cluster| canonical(&cluster).into()).unwrap_or_default(),
        };
        parts.cluster(&name, &part);
    }
}

fn cluster(service: &str, name: &str, callers: &Callers) -> Cluster {
    let checks = callers.health_checks.as_deref().unwrap_or_default();
    let (transport_socket, transport_socket_matches) = tls::upstream(service, &callers.tls);
    Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        connect_timeout: Some(callers.connect_timeout.map_or(CONNECT_TIMEOUT, duration)),
        // An endpoint that has left discovery gets no more traffic, whatever its health check says.
        ignore_health_on_host_removal: true,
        common_lb_config: Some(CommonLbConfig {
            // States are registered, not guessed: if all endpoints are draining or down, calling them all
            // the same is no remedy, unless the owner thinks so.
            healthy_panic_threshold: Some(percent(callers.panic_threshold_percent.unwrap_or(0))),
            ..Default::default()
        }),
        load_balancing_policy: balancing::policy(callers),
        circuit_breakers: breaker::breakers(callers),
        outlier_detection: callers.outlier_detection.as_ref().map(outlier::detection),
        health_checks: health::checks(service, checks, callers.protocol),
        typed_extension_protocol_options: protocol::options(callers.protocol),
        transport_socket,
        transport_socket_matches,
        ..Default::default()
    }
}

/// The same for gRPC without a proxy, which rejects a cluster for a policy that it does not know; `None` if it
/// takes what Envoy gets.
fn for_grpc(cluster: &Cluster, callers: &Callers) -> Option<Cluster> {
    let Cluster { load_balancing_policy, transport_socket, transport_socket_matches, health_checks, .. } =
        cluster;
    let plain = load_balancing_policy.is_none()
        && transport_socket.is_none()
        && transport_socket_matches.is_empty()
        && health_checks.is_empty();
    let is_http = callers.protocol.is_none_or(Protocol::is_http);
    (is_http && !plain).then(|| {
        let mut grpc = Cluster {
            load_balancing_policy: None,
            transport_socket: None,
            transport_socket_matches: Vec::new(),
            health_checks: Vec::new(),
            outlier_detection: None,
            ..cluster.clone()
        };
        balancing::for_grpc(callers.load_balancer.as_ref(), &mut grpc);
        grpc
    })
}

/// How connections are split, where there are no requests. What is for the whole service comes last, so that
/// an endpoint counts for its subset first.
fn shares(callers: &Callers) -> Vec<Share> {
    let Some(route) = callers.routes.first().filter(|_| !callers.protocol.is_none_or(Protocol::is_http))
    else {
        return Vec::new();
    };
    let share =
        |(subset, weight): (&str, u32)| Some(Share { labels: callers.subsets.get(subset)?.clone(), weight });
    let weights = route.weights();
    let of_all = weights.get("").map(|weight| Share { labels: BTreeMap::new(), weight: *weight });
    weights.into_iter().filter_map(share).chain(of_all).collect()
}
