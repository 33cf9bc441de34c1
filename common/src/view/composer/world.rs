//! A store and a composer, for tests; and releases as a compiler makes them.

use prost::Message;
use tower_proto::{
    envoy::envoy::{
        config::{
            cluster::v3::{
                Cluster,
                cluster::{ClusterDiscoveryType, DiscoveryType},
            },
            core::v3::{DataSource, data_source::Specifier},
            endpoint::v3::ClusterLoadAssignment,
            listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
            route::v3::{
                Route, RouteAction, RouteMatch, VirtualHost, WeightedCluster, route::Action,
                route_action::ClusterSpecifier, route_match::PathSpecifier, weighted_cluster::ClusterWeight,
            },
        },
        extensions::{
            filters::network::{
                http_connection_manager::v3::{
                    HttpConnectionManager, Rds, http_connection_manager::RouteSpecifier,
                },
                tcp_proxy::v3::{TcpProxy, tcp_proxy},
            },
            transport_sockets::tls::v3::{Secret, TlsCertificate, secret},
        },
    },
    v1,
};

use super::Composer;
use crate::{
    audience::{AudienceSpec, NodeFacts, Workload},
    resource::{Origin, Resource, ResourceKey},
    store::{Store, Transaction},
    view::{Composition, Held, any},
};

/// A store, and what a host makes of it.
pub(super) struct World {
    pub(super) store: Store,
    pub(super) composer: Composer,
}

impl World {
    pub(super) fn new() -> Self {
        Self::of(NodeFacts::default())
    }

    pub(super) fn of(node: NodeFacts) -> Self {
        Self { store: Store::new(), composer: Composer::new("", node) }
    }

    pub(super) fn apply(&mut self, transaction: Transaction) -> bool {
        let changes = self.store.apply(transaction);
        self.composer.update(&self.store, &changes)
    }

    pub(super) fn add(&mut self, resource: Resource) -> bool {
        self.add_all([resource])
    }

    pub(super) fn add_all(&mut self, resources: impl IntoIterator<Item = Resource>) -> bool {
        self.apply(Transaction { upserts: resources.into_iter().collect(), ..Default::default() })
    }

    pub(super) fn remove(&mut self, resource: &Resource) -> bool {
        self.remove_all(std::slice::from_ref(resource))
    }

    pub(super) fn remove_all(&mut self, resources: &[Resource]) -> bool {
        let gone = Origin { source: "zk".into(), index: 99 };
        let removals = resources.iter().map(|resource| (resource.key().clone(), gone.clone())).collect();
        self.apply(Transaction { removals, ..Default::default() })
    }

    pub(super) fn composition(&self) -> &Composition {
        self.composer.composition()
    }

    pub(super) fn hosts(&self) -> Vec<&str> {
        self.composition().virtual_hosts.keys().map(|name| &**name).collect()
    }

    pub(super) fn clusters(&self) -> Vec<&str> {
        self.composition().clusters.keys().map(|name| &**name).collect()
    }

    /// How many endpoints a cluster has, if it is one whose endpoints are discovered.
    pub(super) fn members(&self, cluster: &str) -> Option<usize> {
        let held = self.composition().assignments.get(cluster)?;
        let assignment = ClusterLoadAssignment::decode(held.body.clone()).unwrap();
        Some(assignment.endpoints.iter().map(|locality| locality.lb_endpoints.len()).sum())
    }

    pub(super) fn held(&self, service: &str) -> &Held {
        &self.composition().held[service]
    }

    /// The routes to a service.
    pub(super) fn host(&self, service: &str) -> VirtualHost {
        VirtualHost::decode(self.composition().virtual_hosts[service].body.clone()).unwrap()
    }

    /// The action of the only route to a service.
    pub(super) fn action(&self, service: &str) -> RouteAction {
        let Some(Action::Route(action)) = self.host(service).routes.remove(0).action else { panic!() };
        action
    }
}

pub(super) fn node(id: &str, workloads: &[&str]) -> NodeFacts {
    let workload = |name: &&str| Workload { service: (*name).into(), cluster: String::new() };
    NodeFacts {
        id: id.into(),
        zone: "a".into(),
        workloads: workloads.iter().map(workload).collect(),
        ..NodeFacts::default()
    }
}

fn resource(kind: v1::Kind, service: &str, name: &str, source: &str, body: Vec<u8>) -> Resource {
    let key = ResourceKey::new("", kind, service, name);
    Resource::new(key, Origin { source: source.into(), index: 5 }, body.into())
}

pub(super) fn endpoint(service: &str, address: &str) -> Resource {
    labelled(service, address, &[])
}

pub(super) fn labelled(service: &str, address: &str, labels: &[(&str, &str)]) -> Resource {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let body = v1::Endpoint { address: address.into(), port: 80, labels, ..Default::default() };
    resource(v1::Kind::Endpoint, service, address, "zk", body.encode_to_vec())
}

pub(super) fn service(name: &str, since: u64) -> Resource {
    resource(v1::Kind::Service, name, "zk", "zk", v1::Service { since }.encode_to_vec())
}

/// An assignment: rules of (audience, release), and the default.
pub(super) fn assignment(service: &str, rules: &[(&str, &str)], default: &str) -> Resource {
    let rule = |(audience, release): &(&str, &str)| v1::assignment::Rule {
        audience: Some(match *audience {
            "?" => v1::Audience { terms: vec![v1::audience::Term { term: None }] },
            text => text.parse::<AudienceSpec>().unwrap().resolve("", |_| None).unwrap(),
        }),
        release: (*release).into(),
        activation: String::new(),
    };
    let rules = rules.iter().map(rule).collect();
    let body = v1::Assignment { rules, default_release: default.into() };
    resource(v1::Kind::Assignment, service, "", "log", body.encode_to_vec())
}

/// A part of a release.
pub(super) fn part(kind: v1::Kind, service: &str, name: &str, body: &impl Message) -> Resource {
    resource(kind, service, name, "log", body.encode_to_vec())
}

/// A part with a cluster that has the endpoints of its service with these labels.
pub(super) fn cluster(release: &str, service: &str, name: &str, labels: &[(&str, &str)]) -> Resource {
    let cluster = Cluster {
        name: name.into(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        alt_stat_name: release.into(),
        ..Default::default()
    };
    let body = v1::ClusterPart {
        cluster: cluster.encode_to_vec().into(),
        endpoints_of: service.into(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        side: v1::Side::Callers.into(),
        ..Default::default()
    };
    part(v1::Kind::Cluster, service, &format!("{release}/{name}"), &body)
}

/// A part with a cluster that brings its own endpoints, for the service's own hosts.
pub(super) fn local_cluster(release: &str, service: &str, name: &str) -> Resource {
    let cluster = Cluster { name: name.into(), ..Default::default() };
    let body = v1::ClusterPart {
        cluster: cluster.encode_to_vec().into(),
        side: v1::Side::Inbound.into(),
        ..Default::default()
    };
    part(v1::Kind::Cluster, service, &format!("{release}/{name}"), &body)
}

pub(super) fn virtual_host(weights: &[(&str, u32)]) -> VirtualHost {
    let cluster = |(name, weight): &(&str, u32)| ClusterWeight {
        name: (*name).into(),
        weight: Some(tower_proto::envoy::google::protobuf::UInt32Value { value: *weight }),
        ..Default::default()
    };
    let specifier = match weights {
        [(name, _)] => ClusterSpecifier::Cluster((*name).into()),
        _ => ClusterSpecifier::WeightedClusters(WeightedCluster {
            clusters: weights.iter().map(cluster).collect(),
            ..Default::default()
        }),
    };
    let action = RouteAction { cluster_specifier: Some(specifier), ..Default::default() };
    let path = PathSpecifier::Prefix("/".into());
    let everything = RouteMatch { path_specifier: Some(path), ..Default::default() };
    let route =
        Route { r#match: Some(everything), action: Some(Action::Route(action)), ..Default::default() };
    VirtualHost { name: "compiled".into(), routes: vec![route], ..Default::default() }
}

/// A part with the routes to a service.
pub(super) fn routes(release: &str, service: &str, weights: &[(&str, u32)]) -> Resource {
    let body = v1::VirtualHostPart {
        virtual_host: virtual_host(weights).encode_to_vec().into(),
        side: v1::Side::Callers.into(),
        ..Default::default()
    };
    part(v1::Kind::VirtualHost, service, &format!("{release}/callers"), &body)
}

/// A release of `web` with the clusters `web`, `web/stable` and `web/canary`, a tenth for the canary.
pub(super) fn split_release(release: &str) -> Vec<Resource> {
    vec![
        cluster(release, "web", "web", &[]),
        cluster(release, "web", "web/stable", &[("model", "a")]),
        cluster(release, "web", "web/canary", &[("model", "b")]),
        routes(release, "web", &[("web/stable", 90), ("web/canary", 10)]),
    ]
}

fn listener(name: &str, filter: Filter) -> Vec<u8> {
    let chain = FilterChain { filters: vec![filter], ..Default::default() };
    Listener { name: name.into(), filter_chains: vec![chain], ..Default::default() }.encode_to_vec()
}

/// What a release adds for the hosts of `web`: an inbound listener with routes, a cluster and a secret, and a
/// listener for the TCP service `db` that it calls.
pub(super) fn inbound_parts(release: &str) -> Vec<Resource> {
    let manager = HttpConnectionManager {
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: None,
            route_config_name: "inbound/web".into(),
        })),
        ..Default::default()
    };
    let http = Filter { name: "http".into(), config_type: Some(ConfigType::TypedConfig(any(&manager))) };
    let proxy = TcpProxy {
        cluster_specifier: Some(tcp_proxy::ClusterSpecifier::Cluster("db".into())),
        ..Default::default()
    };
    let tcp = Filter { name: "tcp".into(), config_type: Some(ConfigType::TypedConfig(any(&proxy))) };
    let side = v1::Side::Inbound.into();
    let inbound = v1::ListenerPart { listener: listener("inbound/web/8443", http).into(), side };
    let outbound = v1::ListenerPart {
        listener: listener("outbound/web/db", tcp).into(),
        side: v1::Side::Outbound.into(),
    };
    let routes = v1::VirtualHostPart {
        virtual_host: virtual_host(&[("inbound/web/8443", 1)]).encode_to_vec().into(),
        side,
        route_config: "inbound/web".into(),
        ..Default::default()
    };
    let path =
        |path: &str| DataSource { specifier: Some(Specifier::Filename(path.into())), ..Default::default() };
    let certificate = TlsCertificate {
        certificate_chain: Some(path("/tls/web.pem")),
        private_key: Some(path("/tls/web.key")),
        ..Default::default()
    };
    let secret =
        Secret { name: "inbound/web".into(), r#type: Some(secret::Type::TlsCertificate(certificate)) };
    let secret = v1::SecretPart { secret: secret.encode_to_vec().into(), side };
    let name = |part: &str| format!("{release}/{part}");
    vec![
        local_cluster(release, "web", "inbound/web/8443"),
        part(v1::Kind::Listener, "web", &name("inbound/8443"), &inbound),
        part(v1::Kind::Listener, "web", &name("outbound/db"), &outbound),
        part(v1::Kind::VirtualHost, "web", &name("inbound"), &routes),
        part(v1::Kind::SecretReference, "web", &name("inbound"), &secret),
    ]
}

/// A part that says how `caller` calls `service`.
pub(super) fn dependency(release: &str, caller: &str, service: &str, timeout_ms: u32) -> Resource {
    let body = v1::DependencyPart {
        service: service.into(),
        request_timeout_ms: Some(timeout_ms),
        ..Default::default()
    };
    part(v1::Kind::Extension, caller, &format!("{release}/outbound/{service}"), &body)
}
