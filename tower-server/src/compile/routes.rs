//! Virtual hosts: a service's routes for its callers, and for its own application.
//!
//! - [`matching`]: which requests
//! - [`action`]: where to, and how patiently; [`retry`], [`rewrite`]
//! - [`headers`]: what is changed of them

mod action;
mod headers;
pub(super) mod matching;
mod retry;
mod rewrite;

use tower_common::{
    document::model::{
        BackendRef, Callers, HashPolicy, HeaderChanges, Inbound, LoadBalancerType, RateLimits, Route,
        RouteMatch, Timeouts,
    },
    view::grpc::virtual_host,
};
use tower_proto::envoy::envoy::config::route::v3::{self, VirtualHost, route::Action};

use super::{
    access_log, cluster,
    convert::inline,
    inbound, limits,
    metadata::{self, LIMIT},
    rbac,
};

/// Where a side's requests go.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    /// To the service.
    Callers { service: &'a str },
    /// To the application, behind this port.
    Inbound { service: &'a str, port: &'a str },
}

/// The routes of a service's callers, without domains, which the view gives out.
pub(super) fn callers(service: &str, of: &Callers) -> VirtualHost {
    let hashes = of.load_balancer.as_ref().filter(|balancer| match balancer.kind {
        LoadBalancerType::RingHash | LoadBalancerType::Maglev => true,
        LoadBalancerType::RoundRobin | LoadBalancerType::LeastRequest | LoadBalancerType::Random => false,
    });
    let side = Side {
        place: Place::Callers { service },
        limits: &of.rate_limits,
        hashes: hashes.map(|balancer| balancer.hash_policy.as_slice()).unwrap_or_default(),
        log: access_log::fields(&of.access_log),
    };
    VirtualHost {
        name: service.to_owned(),
        routes: side.routes(&of.routes),
        typed_per_filter_config: limits::http(service, &of.rate_limits, &of.routes).into_iter().collect(),
        ..Default::default()
    }
}

/// The routes of the listener at a port, to the application.
pub(super) fn application(service: &str, port: &str, of: &Inbound) -> VirtualHost {
    let name = inbound::name(service, port);
    let side =
        Side { place: Place::Inbound { service, port }, limits: &of.rate_limits, hashes: &[], log: None };
    let limits = limits::http(&name.replace('/', "_"), &of.rate_limits, &of.routes);
    let allowed = of.allowed_callers.as_ref().map(rbac::http);
    VirtualHost {
        domains: vec!["*".to_owned()],
        routes: side.routes(&of.routes),
        typed_per_filter_config: limits.into_iter().chain(allowed).collect(),
        name,
        ..Default::default()
    }
}

/// The routes of callers as gRPC without a proxy can take them, which knows neither filters nor queries.
pub(super) fn for_grpc(host: &VirtualHost) -> VirtualHost {
    let is_known =
        |route: &&v3::Route| route.r#match.as_ref().is_none_or(|matched| matched.query_parameters.is_empty());
    let routes = host.routes.iter().filter(is_known).cloned().collect();
    let grpc = virtual_host(VirtualHost { routes, ..host.clone() });
    VirtualHost { domains: Vec::new(), ..grpc }
}

/// What all routes of a side have in common.
struct Side<'a> {
    place: Place<'a>,
    limits: &'a RateLimits,
    hashes: &'a [HashPolicy],
    log: Option<[(&'static str, String); 2]>,
}

impl Side<'_> {
    fn routes(&self, of: &[Route]) -> Vec<v3::Route> {
        if of.is_empty() {
            self.route(&Route::default())
        } else {
            of.iter().flat_map(|route| self.route(route)).collect()
        }
    }

    /// A route of the document: one of Envoy's for each of its matches.
    fn route(&self, of: &Route) -> Vec<v3::Route> {
        let any = [RouteMatch::default()];
        let matches = if of.matches.is_empty() { &any[..] } else { &of.matches };
        let none = HeaderChanges::default();
        let request = of.request_headers.as_ref().unwrap_or(&none);
        let response = of.response_headers.as_ref().unwrap_or(&none);
        let log = self.log.iter().flatten().map(|(key, value)| (*key, value.as_str()));
        let limit = limits::of(of, self.limits).map(|name| (LIMIT, name));
        let texts: Vec<_> = log.chain(limit).collect();
        let one = |matched: &RouteMatch| v3::Route {
            name: of.name.clone(),
            r#match: Some(matching::one(matched)),
            action: Some(self.action(of, matched)),
            metadata: metadata::of(&texts),
            request_headers_to_add: headers::added(request),
            request_headers_to_remove: request.remove.clone(),
            response_headers_to_add: headers::added(response),
            response_headers_to_remove: response.remove.clone(),
            ..Default::default()
        };
        matches.iter().map(one).collect()
    }

    fn action(&self, of: &Route, matched: &RouteMatch) -> Action {
        let path = matched.path.as_ref();
        if let Some(redirect) = &of.redirect {
            Action::Redirect(rewrite::redirect(redirect, path))
        } else if let Some(direct) = &of.direct_response {
            Action::DirectResponse(v3::DirectResponseAction {
                status: direct.status.into(),
                body: direct.body.as_deref().map(inline),
                ..Default::default()
            })
        } else {
            Action::Route(action::one(self.place, of, path, self.hashes))
        }
    }
}

impl<'a> Place<'a> {
    fn service(self) -> &'a str {
        match self {
            Self::Callers { service } | Self::Inbound { service, port: _ } => service,
        }
    }

    /// What of the service, or of its host, a backend names.
    fn backend(self, of: &BackendRef) -> Option<&str> {
        match self {
            Self::Callers { .. } => of.subset.as_deref(),
            Self::Inbound { .. } => of.port.as_deref(),
        }
    }

    /// The cluster of a backend; of all there is, if there is none named.
    fn cluster(self, backend: Option<&str>) -> String {
        match self {
            Self::Callers { service } => cluster::name(service, backend),
            Self::Inbound { service, port } => inbound::name(service, backend.unwrap_or(port)),
        }
    }
}

#[cfg(test)]
mod tests;
