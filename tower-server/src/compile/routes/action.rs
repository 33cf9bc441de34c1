//! Where requests go, and how long that may take.

use tower_common::document::model::{BackendRef, Duration, HashPolicy, Mirror, PathMatch, Percent, Route};
use tower_proto::envoy::envoy::config::{
    core::v3::RuntimeFractionalPercent,
    route::v3::{
        RouteAction, WeightedCluster,
        route_action::{
            ClusterSpecifier, HashPolicy as EnvoyHash, RequestMirrorPolicy,
            hash_policy::{ConnectionProperties, Cookie, Header, PolicySpecifier, QueryParameter},
        },
        weighted_cluster::ClusterWeight,
    },
};

use super::{Place, retry, rewrite};
use crate::compile::{
    cluster,
    convert::{duration, fraction, number},
};

/// Envoy's action for a route, for requests with this path.
pub(super) fn one(
    place: Place<'_>,
    of: &Route,
    matched: Option<&PathMatch>,
    hashes: &[HashPolicy],
) -> RouteAction {
    let hashes = if of.hash_policy.is_empty() { hashes } else { &of.hash_policy };
    let mut action = RouteAction {
        cluster_specifier: Some(destination(place, of)),
        // Envoy's own default would be 15 s.
        timeout: Some(duration(of.timeouts.request.unwrap_or(Duration::from_millis(0)))),
        idle_timeout: of.timeouts.idle.map(duration),
        retry_policy: retry::policy(place, of.retry.as_ref(), &of.timeouts),
        request_mirror_policies: of.mirror.iter().map(|mirror| copy(place, mirror)).collect(),
        hash_policy: hashes.iter().map(hash).collect(),
        ..Default::default()
    };
    if let Some(rewrite) = &of.rewrite {
        rewrite::apply(rewrite, matched, &mut action);
    }
    action
}

fn destination(place: Place<'_>, of: &Route) -> ClusterSpecifier {
    match of.backend_refs.as_slice() {
        [] => ClusterSpecifier::Cluster(place.cluster(None)),
        [backend] => ClusterSpecifier::Cluster(place.cluster(place.backend(backend))),
        several => {
            let weight = |backend: &BackendRef| ClusterWeight {
                name: place.cluster(place.backend(backend)),
                weight: number(backend.weight()),
                ..Default::default()
            };
            ClusterSpecifier::WeightedClusters(WeightedCluster {
                clusters: several.iter().map(weight).collect(),
                ..Default::default()
            })
        }
    }
}

fn copy(place: Place<'_>, of: &Mirror) -> RequestMirrorPolicy {
    let service = of.service.as_deref().unwrap_or(place.service());
    RequestMirrorPolicy {
        cluster: cluster::name(service, of.subset.as_deref()),
        runtime_fraction: Some(RuntimeFractionalPercent {
            default_value: Some(fraction(of.percent.unwrap_or(Percent::ALL))),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn hash(of: &HashPolicy) -> EnvoyHash {
    let specifier = if let Some(name) = &of.header {
        PolicySpecifier::Header(Header { header_name: name.clone(), ..Default::default() })
    } else if let Some(cookie) = &of.cookie {
        PolicySpecifier::Cookie(Cookie {
            name: cookie.name.clone(),
            ttl: cookie.ttl.map(duration),
            path: cookie.path.clone().unwrap_or_default(),
            ..Default::default()
        })
    } else if let Some(name) = &of.query_param {
        PolicySpecifier::QueryParameter(QueryParameter { name: name.clone() })
    } else {
        PolicySpecifier::ConnectionProperties(ConnectionProperties { source_ip: of.source_ip })
    };
    EnvoyHash { terminal: of.terminal, policy_specifier: Some(specifier) }
}
