//! What gRPC sees that speaks xDS itself, without a proxy (gRFC A27, A28, A31, A44).
//!
//! A client asks for a listener by the name that stands in its target, `xds:///<name>`. It gets one, and
//! a route configuration of the same name with the routes of that one service: gRPC rejects a whole
//! configuration for a single route that it does not know, and should not do so for another's.

use std::sync::Arc;

use prost::Message;
use tower_proto::envoy::envoy::{
    config::{
        listener::v3::{ApiListener, Listener},
        route::v3::{
            Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
            route::Action,
            route_action::{ClusterSpecifier, MaxStreamDuration},
            route_match::PathSpecifier,
        },
    },
    extensions::filters::{
        http::router::v3::Router,
        network::http_connection_manager::v3::{
            HttpConnectionManager, HttpFilter, Rds, http_connection_manager::RouteSpecifier, http_filter,
        },
    },
};

use super::{Composition, ConfigSource, XdsResource, any, domains::SUFFIX, listener::config_source};

/// What gRPC retries on (gRFC A44); it knows no other conditions, and no predicates.
const RETRIED: [&str; 5] =
    ["cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"];

/// The service that a target stands for: its name or domain, with or without a port, in any case.
pub fn service_of<'a>(composition: &'a Composition, target: &str) -> Option<&'a Arc<str>> {
    let host = match target.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => host,
        _ => target,
    };
    let host = host.to_ascii_lowercase();
    composition.domains.get(host.strip_suffix(SUFFIX).unwrap_or(&host))
}

/// The listener of a target, whose routes come by RDS under the same name.
pub fn listener(target: &str) -> XdsResource {
    let router = HttpFilter {
        name: "envoy.filters.http.router".to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(any(&Router::default()))),
        ..Default::default()
    };
    let manager = HttpConnectionManager {
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: Some(config_source(ConfigSource::Aggregated)),
            route_config_name: target.to_owned(),
        })),
        http_filters: vec![router],
        ..Default::default()
    };
    let listener = Listener {
        name: target.to_owned(),
        api_listener: Some(ApiListener { api_listener: Some(any(&manager)) }),
        ..Default::default()
    };
    XdsResource::new(target, &listener)
}

/// The routes of a target, from the piece of its service. `None` if the piece cannot be read.
pub fn routes(target: &str, piece: &XdsResource) -> Option<XdsResource> {
    let host = VirtualHost::decode(piece.body.clone()).ok()?;
    let configuration = RouteConfiguration {
        name: target.to_owned(),
        virtual_hosts: vec![virtual_host(host)],
        ..Default::default()
    };
    Some(XdsResource::new(target, &configuration))
}

/// A virtual host as gRPC can take it.
pub fn virtual_host(host: VirtualHost) -> VirtualHost {
    VirtualHost {
        name: host.name,
        // It is matched with the target, of which there is only this one.
        domains: vec!["*".to_owned()],
        routes: host.routes.into_iter().flat_map(route).collect(),
        ..Default::default()
    }
}

/// A route as gRPC can take it: one, or two where Envoy has one.
fn route(route: Route) -> Vec<Route> {
    let Route { name, r#match, action, .. } = route;
    let action = match action {
        Some(Action::Route(action)) => Some(Action::Route(route_action(action))),
        // It fails the call, which is the best that can be made of a redirect or a direct answer.
        other @ (Some(
            Action::Redirect(_)
            | Action::DirectResponse(_)
            | Action::FilterAction(_)
            | Action::NonForwardingAction(_),
        )
        | None) => other,
    };
    let matches = r#match.map_or_else(Vec::new, route_matches);
    let route = |matched| Route {
        name: name.clone(),
        r#match: Some(matched),
        action: action.clone(),
        ..Default::default()
    };
    matches.into_iter().map(route).collect()
}

/// gRPC does not know a prefix that ends at a slash, and rejects everything for it.
fn route_matches(matched: RouteMatch) -> Vec<RouteMatch> {
    let Some(PathSpecifier::PathSeparatedPrefix(prefix)) = &matched.path_specifier else {
        return vec![matched];
    };
    let beneath = PathSpecifier::Prefix(format!("{prefix}/"));
    let itself = PathSpecifier::Path(prefix.clone());
    [itself, beneath].map(|path| RouteMatch { path_specifier: Some(path), ..matched.clone() }).into()
}

fn route_action(action: RouteAction) -> RouteAction {
    let timeout = action.timeout.filter(|timeout| timeout.seconds > 0 || timeout.nanos > 0);
    // It ignores `timeout`, and takes the other for one.
    let max_stream_duration = action.max_stream_duration.or_else(|| {
        timeout.map(|timeout| MaxStreamDuration { max_stream_duration: Some(timeout), ..Default::default() })
    });
    let retry_policy = action.retry_policy.and_then(|mut policy| {
        let known = policy.retry_on.split(',').map(str::trim).filter(|on| RETRIED.contains(on));
        policy.retry_on = known.collect::<Vec<_>>().join(",");
        policy.retry_host_predicate.clear();
        policy.retry_priority = None;
        policy.host_selection_retry_max_attempts = 0;
        (!policy.retry_on.is_empty()).then_some(policy)
    });
    let mut cluster_specifier = action.cluster_specifier;
    if let Some(ClusterSpecifier::WeightedClusters(weighted)) = &mut cluster_specifier {
        // It rejects filters that it does not know, and these are an Envoy's.
        weighted.clusters.iter_mut().for_each(|cluster| cluster.typed_per_filter_config.clear());
    }
    RouteAction {
        cluster_specifier,
        hash_policy: action.hash_policy,
        max_stream_duration,
        retry_policy,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use tower_proto::envoy::{envoy::config::route::v3::RetryPolicy, google::protobuf::Duration};

    use super::*;
    use crate::view::route::default_virtual_host;

    #[test]
    fn a_target_is_a_name_or_a_domain_with_or_without_a_port() {
        let domains = [("web".into(), "Web".into()), ("a.b".into(), "a.b".into())].into();
        let composition = Composition { domains: Arc::new(domains), ..Composition::default() };
        let service = |target| service_of(&composition, target).map(|service| &**service);
        for target in ["web", "Web", "web.mesh", "WEB.MESH:5875", "web:80"] {
            assert_eq!(service(target), Some("Web"), "{target}");
        }
        assert_eq!(service("a.b.mesh"), Some("a.b"));
        for target in ["", ":80", ".mesh", "web:", "web:http", "web.mesh.mesh", "other"] {
            assert_eq!(service(target), None, "{target}");
        }
    }

    #[test]
    fn a_default_service_has_one_plain_route() {
        let routes = routes("web.mesh:80", &default_virtual_host("web", "web")).unwrap();
        let mut routes = RouteConfiguration::decode(routes.body).unwrap();
        assert_eq!((routes.name.as_str(), routes.virtual_hosts.len()), ("web.mesh:80", 1));
        let host = routes.virtual_hosts.remove(0);
        assert_eq!(host.domains, ["*"]);
        let Some(Action::Route(action)) = &host.routes[0].action else { panic!("{host:?}") };
        assert_eq!(action.cluster_specifier, Some(ClusterSpecifier::Cluster("web".to_owned())));
        assert_eq!((&action.retry_policy, &action.max_stream_duration), (&None, &None));
    }

    #[test]
    fn what_grpc_does_not_know_is_put_in_its_words() {
        let action = RouteAction {
            timeout: Some(Duration { seconds: 0, nanos: 200_000_000 }),
            retry_policy: Some(RetryPolicy {
                retry_on: "connect-failure, unavailable,5xx".to_owned(),
                host_selection_retry_max_attempts: 5,
                ..Default::default()
            }),
            ..Default::default()
        };
        let segment = PathSpecifier::PathSeparatedPrefix("/rank".to_owned());
        let envoys = Route {
            r#match: Some(RouteMatch { path_specifier: Some(segment), ..Default::default() }),
            action: Some(Action::Route(action)),
            ..Default::default()
        };
        let routes = route(envoys);
        let paths: Vec<_> =
            routes.iter().map(|r| r.r#match.clone().unwrap().path_specifier.unwrap()).collect();
        assert_eq!(paths, [PathSpecifier::Path("/rank".into()), PathSpecifier::Prefix("/rank/".into())]);
        for route in routes {
            let Some(Action::Route(action)) = route.action else { panic!("no action") };
            let duration = action.max_stream_duration.unwrap().max_stream_duration.unwrap();
            assert_eq!((duration.nanos, action.timeout), (200_000_000, None));
            assert_eq!(action.retry_policy.unwrap().retry_on, "unavailable");
        }
    }
}
