//! The clusters of a service's callers: one of all endpoints, and one for each subset.

use std::collections::BTreeMap;

use prost::Message;
use tower_common::{
    document::model::{Callers, PatchKind, Protocol},
    view::cluster::default_cluster,
};
use tower_proto::{
    envoy::envoy::config::cluster::v3::Cluster,
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

/// What a service without a document has, and what the document says otherwise.
fn cluster(service: &str, name: &str, callers: &Callers) -> Cluster {
    let mut cluster = Cluster::decode(default_cluster(name).body).expect("a cluster of our own");
    cluster.eds_cluster_config = None;
    cluster.typed_extension_protocol_options = protocol::options(callers.protocol);
    cluster.load_balancing_policy = balancing::policy(callers);
    cluster.circuit_breakers = breaker::breakers(callers);
    let checks = callers.health_checks.as_deref().unwrap_or_default();
    cluster.health_checks = health::checks(service, checks, callers.protocol);
    (cluster.transport_socket, cluster.transport_socket_matches) = tls::upstream(service, &callers.tls);
    if let Some(timeout) = callers.connect_timeout {
        cluster.connect_timeout = Some(duration(timeout));
    }
    if let Some(detection) = &callers.outlier_detection {
        cluster.outlier_detection = Some(outlier::detection(detection));
    }
    if let (Some(threshold), Some(common)) = (callers.panic_threshold_percent, &mut cluster.common_lb_config)
    {
        common.healthy_panic_threshold = Some(percent(threshold));
    }
    cluster
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
