//! Releases as a compiler makes them, and a host that composes them.

use std::{net::SocketAddr, path::Path};

use beacon_agent::xds::clients::ReleaseStatus;
use prost::{Message, Name};
use tokio::sync::watch;
use tower_common::{
    audience::NodeFacts,
    resource::{Origin, Resource, ResourceKey},
    store::{Store, Transaction},
    view::{Composition, composer::Composer},
};
use tower_proto::{
    envoy::{
        envoy::{
            config::{
                cluster::v3::{
                    Cluster,
                    cluster::{ClusterDiscoveryType, CommonLbConfig, DiscoveryType},
                },
                core::v3::{
                    Address, DataSource, SocketAddress, TransportSocket, address, data_source::Specifier,
                    socket_address::PortSpecifier, transport_socket,
                },
                endpoint::v3::{
                    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
                    lb_endpoint::HostIdentifier,
                },
                listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
                route::v3::{
                    Route, RouteAction, RouteMatch, VirtualHost, WeightedCluster, route::Action,
                    route_action::ClusterSpecifier, route_match::PathSpecifier,
                    weighted_cluster::ClusterWeight,
                },
            },
            extensions::{
                filters::{
                    http::router::v3::Router,
                    network::{
                        http_connection_manager::v3::{
                            HttpConnectionManager, HttpFilter, Rds, http_connection_manager::RouteSpecifier,
                            http_filter,
                        },
                        tcp_proxy::v3::{TcpProxy, tcp_proxy},
                    },
                },
                transport_sockets::tls::v3::{
                    CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, Secret, TlsCertificate, secret,
                },
            },
            r#type::v3::Percent,
        },
        google::protobuf::{Any, Duration, UInt32Value},
    },
    v1,
};

use crate::support::World;

/// A host: a store, and what it serves.
pub(crate) struct Host {
    store: Store,
    composer: Composer,
    pub(crate) world: World,
}

impl Host {
    /// A host on which these services run, with these resources.
    pub(crate) async fn new(workloads: &[&str], resources: Vec<Resource>) -> Self {
        let workloads = workloads.iter().map(|&service| tower_common::audience::Workload {
            service: service.to_owned(),
            cluster: String::new(),
        });
        let node = NodeFacts { workloads: workloads.collect(), ..NodeFacts::default() };
        let world = World::new(Composition::default()).await;
        let mut host = Self { store: Store::new(), composer: Composer::new("", node), world };
        let live = v1::SourceStatus {
            source: "log".into(),
            state: v1::SourceState::Live.into(),
            ..Default::default()
        };
        host.apply(Transaction { upserts: resources, sources: vec![live], ..Transaction::default() });
        host
    }

    pub(crate) fn add(&mut self, resources: Vec<Resource>) {
        self.apply(Transaction { upserts: resources, ..Transaction::default() });
    }

    fn apply(&mut self, transaction: Transaction) {
        let changes = self.store.apply(transaction);
        self.composer.update(&self.store, &changes);
        let composition = self.composer.composition().clone();
        // Nobody may be connected.
        let sender: &watch::Sender<Composition> = &self.world.compositions;
        sender.send_replace(composition);
    }

    /// What became of the releases, by service.
    pub(crate) fn releases(&self) -> Vec<ReleaseStatus> {
        self.world.clients.releases(&self.composer.composition().held)
    }
}

fn resource(kind: v1::Kind, service: &str, name: &str, body: &impl Message) -> Resource {
    let key = ResourceKey::new("", kind, service, name);
    Resource::new(key, Origin { source: "log".into(), index: 1 }, body.encode_to_vec().into())
}

fn any(message: &impl Name) -> Any {
    // Of a message that has a name its type has one as well.
    fn url<M: Name>(_: &M) -> String {
        M::type_url()
    }
    Any { type_url: url(message), value: message.encode_to_vec() }
}

fn socket(address: SocketAddr) -> Option<Address> {
    let address = SocketAddress {
        address: address.ip().to_string(),
        port_specifier: Some(PortSpecifier::PortValue(address.port().into())),
        ..Default::default()
    };
    Some(Address { address: Some(address::Address::SocketAddress(address)) })
}

pub(crate) fn endpoint(service: &str, address: SocketAddr, labels: &[(&str, &str)]) -> Resource {
    let body = v1::Endpoint {
        address: address.ip().to_string(),
        port: address.port().into(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..Default::default()
    };
    resource(v1::Kind::Endpoint, service, &address.to_string(), &body)
}

/// Everyone gets this release.
pub(crate) fn assignment(service: &str, release: &str) -> Resource {
    let body = v1::Assignment { rules: Vec::new(), default_release: release.to_owned() };
    resource(v1::Kind::Assignment, service, "", &body)
}

/// A cluster of the endpoints of `service` with these labels.
pub(crate) fn cluster(release: &str, service: &str, name: &str, labels: &[(&str, &str)]) -> Resource {
    let cluster = Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        connect_timeout: Some(Duration { seconds: 1, nanos: 0 }),
        common_lb_config: Some(CommonLbConfig {
            healthy_panic_threshold: Some(Percent { value: 0.0 }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let body = v1::ClusterPart {
        cluster: cluster.encode_to_vec().into(),
        endpoints_of: service.to_owned(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        side: v1::Side::Callers.into(),
        failover: v1::cluster_part::Failover::Zone.into(),
        ..Default::default()
    };
    resource(v1::Kind::Cluster, service, &format!("{release}/{name}"), &body)
}

/// The cluster of an application on this host.
pub(crate) fn application(release: &str, service: &str, port: u16, address: SocketAddr) -> Resource {
    let name = format!("inbound/{service}/{port}");
    let endpoint = LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: socket(address),
            ..Default::default()
        })),
        ..Default::default()
    };
    let cluster = Cluster {
        name: name.clone(),
        connect_timeout: Some(Duration { seconds: 1, nanos: 0 }),
        load_assignment: Some(ClusterLoadAssignment {
            cluster_name: name.clone(),
            endpoints: vec![LocalityLbEndpoints { lb_endpoints: vec![endpoint], ..Default::default() }],
            ..Default::default()
        }),
        ..Default::default()
    };
    let body = v1::ClusterPart {
        cluster: cluster.encode_to_vec().into(),
        side: v1::Side::Inbound.into(),
        ..Default::default()
    };
    resource(v1::Kind::Cluster, service, &format!("{release}/{name}"), &body)
}

fn virtual_host(weights: &[(&str, u32)]) -> VirtualHost {
    let weight = |(name, weight): &(&str, u32)| ClusterWeight {
        name: (*name).to_owned(),
        weight: Some(UInt32Value { value: *weight }),
        ..Default::default()
    };
    let specifier = ClusterSpecifier::WeightedClusters(WeightedCluster {
        clusters: weights.iter().map(weight).collect(),
        ..Default::default()
    });
    let action = RouteAction { cluster_specifier: Some(specifier), ..Default::default() };
    let path = PathSpecifier::Prefix("/".to_owned());
    let everything = RouteMatch { path_specifier: Some(path), ..Default::default() };
    let route =
        Route { r#match: Some(everything), action: Some(Action::Route(action)), ..Default::default() };
    VirtualHost { name: "routes".to_owned(), routes: vec![route], ..Default::default() }
}

/// The routes to a service.
pub(crate) fn routes(release: &str, service: &str, weights: &[(&str, u32)]) -> Resource {
    let body = v1::VirtualHostPart {
        virtual_host: virtual_host(weights).encode_to_vec().into(),
        side: v1::Side::Callers.into(),
        ..Default::default()
    };
    resource(v1::Kind::VirtualHost, service, &format!("{release}/callers"), &body)
}

/// The routes on the service's own host.
pub(crate) fn inbound_routes(release: &str, service: &str, port: u16) -> Resource {
    let body = v1::VirtualHostPart {
        virtual_host: virtual_host(&[(&format!("inbound/{service}/{port}"), 1)]).encode_to_vec().into(),
        side: v1::Side::Inbound.into(),
        route_config: format!("inbound/{service}"),
        ..Default::default()
    };
    resource(v1::Kind::VirtualHost, service, &format!("{release}/inbound"), &body)
}

/// What a listener does with a connection.
#[derive(Clone, Copy)]
pub(crate) enum Does {
    /// HTTP, by the routes `inbound/SERVICE`.
    Http,
    /// The same, over TLS with the secret `inbound/SERVICE`.
    Tls,
    /// TCP to this cluster.
    Tcp(&'static str),
    /// Something that no Envoy knows.
    Nonsense,
}

/// A listener `inbound/SERVICE/PORT`.
pub(crate) fn listener(release: &str, service: &str, port: u16, does: Does) -> Resource {
    let http = || {
        let router = HttpFilter {
            name: "envoy.filters.http.router".to_owned(),
            config_type: Some(http_filter::ConfigType::TypedConfig(any(&Router::default()))),
            ..Default::default()
        };
        any(&HttpConnectionManager {
            stat_prefix: "inbound".to_owned(),
            route_specifier: Some(RouteSpecifier::Rds(Rds {
                config_source: None,
                route_config_name: format!("inbound/{service}"),
            })),
            http_filters: vec![router],
            ..Default::default()
        })
    };
    let config = match does {
        Does::Http | Does::Tls => http(),
        Does::Tcp(cluster) => any(&TcpProxy {
            stat_prefix: "tcp".to_owned(),
            cluster_specifier: Some(tcp_proxy::ClusterSpecifier::Cluster(cluster.to_owned())),
            ..Default::default()
        }),
        Does::Nonsense => {
            Any { type_url: "type.googleapis.com/no.such.Filter".to_owned(), value: Vec::new() }
        }
    };
    let certificate = SdsSecretConfig { name: format!("inbound/{service}"), sds_config: None };
    let tls = DownstreamTlsContext {
        common_tls_context: Some(CommonTlsContext {
            tls_certificate_sds_secret_configs: vec![certificate],
            ..Default::default()
        }),
        ..Default::default()
    };
    let transport_socket = matches!(does, Does::Tls).then(|| TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(transport_socket::ConfigType::TypedConfig(any(&tls))),
    });
    let name = format!("inbound/{service}/{port}");
    let listener = Listener {
        name: name.clone(),
        address: socket(([127, 0, 0, 1], port).into()),
        filter_chains: vec![FilterChain {
            filters: vec![Filter {
                name: "filter".to_owned(),
                config_type: Some(ConfigType::TypedConfig(config)),
            }],
            transport_socket,
            ..Default::default()
        }],
        ..Default::default()
    };
    let body = v1::ListenerPart { listener: listener.encode_to_vec().into(), side: v1::Side::Inbound.into() };
    resource(v1::Kind::Listener, service, &format!("{release}/{name}"), &body)
}

/// The certificate of a service, in `cert.pem` and `key.pem` of a folder.
pub(crate) fn certificate(release: &str, service: &str, folder: &Path) -> Resource {
    let file = |name: &str| DataSource {
        specifier: Some(Specifier::Filename(folder.join(name).to_string_lossy().into_owned())),
        ..Default::default()
    };
    let certificate = TlsCertificate {
        certificate_chain: Some(file("cert.pem")),
        private_key: Some(file("key.pem")),
        ..Default::default()
    };
    let secret = Secret {
        name: format!("inbound/{service}"),
        r#type: Some(secret::Type::TlsCertificate(certificate)),
    };
    let body = v1::SecretPart { secret: secret.encode_to_vec().into(), side: v1::Side::Inbound.into() };
    resource(v1::Kind::SecretReference, service, &format!("{release}/inbound"), &body)
}

/// What became of a service's release: its state, and what is wrong with it.
pub(crate) fn of<'a>(releases: &'a [ReleaseStatus], service: &str) -> &'a ReleaseStatus {
    releases.iter().find(|status| status.service == service).expect("it has an assignment")
}
