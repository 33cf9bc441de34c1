//! What becomes of the routes that a compiler made, before a host serves them: they get their domains, leave
//! out clusters without endpoints, and follow what the host's own services say of their dependencies.

use std::{collections::BTreeSet, sync::Arc};

use prost::{DecodeError, Message};
use tower_proto::{
    envoy::{
        envoy::config::route::v3::{
            RetryPolicy, RouteAction, VirtualHost, route::Action, route_action::ClusterSpecifier,
            weighted_cluster::ClusterWeight,
        },
        google::protobuf::UInt32Value,
    },
    v1,
};

use super::{
    domains::SUFFIX,
    route::default_retry,
    wire::{append, append_number, contents, edit},
};

type Edited = Result<Vec<u8>, DecodeError>;

/// Fields of a VirtualHost, of a Route, and of a RouteAction.
const NAME: u32 = 1;
const DOMAINS: u32 = 2;
const ROUTES: u32 = 3;
const HOST_RETRY: u32 = 16;
const ACTION: u32 = 2;
const WEIGHTED: u32 = 3;
const TIMEOUT: u32 = 8;
const RETRY: u32 = 9;
const MAX_STREAM_DURATION: u32 = 36;

/// The clusters between which traffic is divided by weights.
pub(super) fn weighed(host: &VirtualHost) -> BTreeSet<Arc<str>> {
    let weights = host.routes.iter().filter_map(|route| match &route.action {
        Some(Action::Route(action)) => weights(action),
        Some(_) | None => None,
    });
    weights.flatten().map(|weight| weight.name.as_str().into()).collect()
}

/// A virtual host of this name, which answers to this domain.
pub(super) fn named(body: &[u8], name: &str, domain: &str) -> Vec<u8> {
    let mut named = body.to_vec();
    append(&mut named, NAME, name.as_bytes());
    append(&mut named, DOMAINS, domain.as_bytes());
    append(&mut named, DOMAINS, format!("{domain}{SUFFIX}").as_bytes());
    named
}

/// A virtual host without weight for clusters that are empty, as far as others are left that have some: a
/// tenth for a cluster without endpoints is a tenth of errors.
///
/// # Errors
/// If it cannot be decoded.
pub(super) fn without_empty(body: &[u8], is_empty: impl Fn(&str) -> bool) -> Edited {
    edit(body, ROUTES, |route| {
        edit(route, ACTION, |action| {
            let decoded = RouteAction::decode(action)?;
            let weights = weights(&decoded).unwrap_or_default();
            let left: u64 = weights.iter().filter(|w| !is_empty(&w.name)).map(weight).sum();
            if left == 0 || weights.iter().all(|weight| !is_empty(&weight.name)) {
                return Ok(action.to_vec());
            }
            edit(action, WEIGHTED, |weighted| {
                edit(weighted, 1, |cluster| {
                    let mut cluster = cluster.to_vec();
                    if is_empty(&ClusterWeight::decode(cluster.as_slice())?.name) {
                        append(&mut cluster, 2, &number(0));
                    }
                    Ok(cluster)
                })
            })
        })
    })
}

/// A virtual host as one who calls the service wants it: with other timeouts and retries. `grpc`: it is read
/// by gRPC without a proxy, which has another field for a timeout.
///
/// # Errors
/// If it cannot be decoded.
pub(super) fn overridden(body: &[u8], by: &v1::DependencyPart, grpc: bool) -> Edited {
    let of_host = contents(body, HOST_RETRY)?.last().map(|policy| policy.to_vec());
    edit(body, ROUTES, |route| {
        edit(route, ACTION, |action| {
            let mut action = action.to_vec();
            if let Some(timeout) = by.request_timeout_ms {
                append(&mut action, TIMEOUT, &duration(timeout));
                if grpc {
                    let mut field = Vec::new();
                    append(&mut field, 1, &duration(timeout));
                    append(&mut action, MAX_STREAM_DURATION, &field);
                }
            }
            if by.backend_request_timeout_ms.is_none() && by.retry_attempts.is_none() {
                return Ok(action);
            }
            if contents(&action, RETRY)?.is_empty() {
                let retries = by.retry_attempts.is_some_and(|attempts| attempts > 0);
                let policy = match &of_host {
                    Some(policy) => policy.clone(),
                    None if retries => default_retry().encode_to_vec(),
                    None => RetryPolicy { num_retries: Some(UInt32Value { value: 0 }), ..Default::default() }
                        .encode_to_vec(),
                };
                append(&mut action, RETRY, &policy);
            }
            let mut changes = Vec::new();
            if let Some(attempts) = by.retry_attempts {
                append(&mut changes, 2, &number(attempts));
            }
            if let Some(timeout) = by.backend_request_timeout_ms {
                append(&mut changes, 3, &duration(timeout));
            }
            append(&mut action, RETRY, &changes);
            Ok(action)
        })
    })
}

fn weights(action: &RouteAction) -> Option<Vec<ClusterWeight>> {
    match &action.cluster_specifier {
        Some(ClusterSpecifier::WeightedClusters(weighted)) => Some(weighted.clusters.clone()),
        Some(_) | None => None,
    }
}

fn weight(weight: &ClusterWeight) -> u64 {
    weight.weight.map_or(0, |weight| weight.value.into())
}

/// A serialized UInt32Value that takes the place of another, also if it is zero.
fn number(value: u32) -> Vec<u8> {
    let mut body = Vec::new();
    append_number(&mut body, 1, value.into());
    body
}

/// A serialized Duration that takes the place of another.
fn duration(milliseconds: u32) -> Vec<u8> {
    let mut body = Vec::new();
    append_number(&mut body, 1, (milliseconds / 1000).into());
    append_number(&mut body, 2, (milliseconds % 1000 * 1_000_000).into());
    body
}

#[cfg(test)]
mod tests {
    use tower_proto::envoy::{
        envoy::config::route::v3::{Route, WeightedCluster},
        google::protobuf::Duration,
    };

    use super::*;
    use crate::view::route::default_virtual_host;

    fn split(weights: &[(&str, u32)]) -> Vec<u8> {
        let clusters = weights.iter().map(|(name, weight)| ClusterWeight {
            name: (*name).into(),
            weight: Some(UInt32Value { value: *weight }),
            ..Default::default()
        });
        let weighted = WeightedCluster { clusters: clusters.collect(), ..Default::default() };
        let action = RouteAction {
            cluster_specifier: Some(ClusterSpecifier::WeightedClusters(weighted)),
            timeout: Some(Duration { seconds: 1, nanos: 500_000_000 }),
            ..Default::default()
        };
        let route = Route { action: Some(Action::Route(action)), ..Default::default() };
        VirtualHost { routes: vec![route], ..Default::default() }.encode_to_vec()
    }

    fn action(body: &[u8]) -> RouteAction {
        let host = VirtualHost::decode(body).unwrap();
        let Some(Action::Route(action)) = host.routes[0].action.clone() else { panic!("{host:?}") };
        action
    }

    fn left(weights: &[(&str, u32)], empty: &[&str]) -> Vec<u64> {
        let body = without_empty(&split(weights), |name| empty.contains(&name)).unwrap();
        super::weights(&action(&body)).unwrap().iter().map(weight).collect()
    }

    #[test]
    fn a_cluster_without_endpoints_has_no_weight_unless_all_are() {
        let weights = [("web/stable", 90), ("web/canary", 10)];
        assert_eq!(left(&weights, &[]), [90, 10]);
        assert_eq!(left(&weights, &["web/canary"]), [90, 0]);
        assert_eq!(left(&weights, &["web/stable"]), [0, 10]);
        assert_eq!(left(&weights, &["web/stable", "web/canary"]), [90, 10]);
        assert_eq!(left(&[("a", 100), ("b", 0)], &["a"]), [100, 0], "the sum must not be zero");
        let body = split(&weights);
        assert_eq!(without_empty(&body, |_| false).unwrap(), body);
        let names = weighed(&VirtualHost::decode(body.as_slice()).unwrap());
        assert_eq!(names, ["web/canary".into(), "web/stable".into()].into());
    }

    #[test]
    fn a_host_gets_its_name_and_domains() {
        let host = VirtualHost::decode(named(&split(&[("a", 1)]), "Web", "web").as_slice()).unwrap();
        assert_eq!(
            (host.name.as_str(), host.domains.as_slice()),
            ("Web", &["web".into(), "web.mesh".into()][..])
        );
        assert_eq!(host.routes.len(), 1);
    }

    #[test]
    fn who_calls_can_have_other_timeouts_and_retries() {
        let part = |request, backend, attempts| v1::DependencyPart {
            service: "web".into(),
            request_timeout_ms: request,
            backend_request_timeout_ms: backend,
            retry_attempts: attempts,
        };
        let seconds = |d: Option<Duration>| d.map(|d| (d.seconds, d.nanos));
        let body = split(&[("a", 1)]);
        let timed = action(&overridden(&body, &part(Some(2000), None, None), false).unwrap());
        assert_eq!((seconds(timed.timeout), timed.retry_policy), (Some((2, 0)), None));
        assert_eq!(timed.max_stream_duration, None);
        let tried =
            action(&overridden(&body, &part(None, Some(80), None), false).unwrap()).retry_policy.unwrap();
        assert_eq!(
            (tried.num_retries.unwrap().value, seconds(tried.per_try_timeout)),
            (0, Some((0, 80_000_000)))
        );
        let retried =
            action(&overridden(&body, &part(None, None, Some(3)), false).unwrap()).retry_policy.unwrap();
        assert_eq!((retried.num_retries.unwrap().value, retried.retry_on.as_str()), (3, "connect-failure"));

        let default = default_virtual_host("web", "web").body;
        let none =
            action(&overridden(&default, &part(None, None, Some(0)), false).unwrap()).retry_policy.unwrap();
        assert_eq!(none.num_retries.unwrap().value, 0);
        assert_eq!(none.retry_host_predicate.len(), 1, "the rest is as it was");
        assert_eq!(overridden(&default, &part(None, None, None), false).unwrap(), default);

        let grpc = action(&overridden(&body, &part(Some(80), None, None), true).unwrap());
        assert_eq!(seconds(grpc.max_stream_duration.unwrap().max_stream_duration), Some((0, 80_000_000)));
    }

    #[test]
    fn the_policy_of_the_host_is_what_a_route_without_one_has() {
        let policy = RetryPolicy { retry_on: "5xx".into(), ..Default::default() };
        let mut body = split(&[("a", 1)]);
        body.extend(VirtualHost { retry_policy: Some(policy), ..Default::default() }.encode_to_vec());
        let by = v1::DependencyPart { retry_attempts: Some(2), ..Default::default() };
        let policy = action(&overridden(&body, &by, false).unwrap()).retry_policy.unwrap();
        assert_eq!((policy.retry_on.as_str(), policy.num_retries.unwrap().value), ("5xx", 2));
    }
}
