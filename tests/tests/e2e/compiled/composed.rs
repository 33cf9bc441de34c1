//! Releases as a Beacon composes them, in an Envoy's bootstrap.

use anyhow::{Result, ensure};
use prost::Message;
use tower_common::{
    audience::{NodeFacts, Workload},
    resource::{Origin, Resource, ResourceKey},
    store::{Store, Transaction},
    view::{NodeView, XdsResource, composer::Composer, listener, route},
};
use tower_proto::{
    envoy::{
        envoy::{
            config::{
                bootstrap::v3::{
                    Admin, Bootstrap,
                    bootstrap::{DynamicResources, StaticResources},
                },
                cluster::v3::Cluster,
                core::v3::{
                    Address, ApiConfigSource, ApiVersion, GrpcService, Node, SocketAddress, address,
                    api_config_source::ApiType,
                    grpc_service::{EnvoyGrpc, TargetSpecifier},
                    socket_address::PortSpecifier,
                },
                listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
                route::v3::RouteConfiguration,
            },
            extensions::{
                filters::{
                    http::router::v3::Router,
                    network::http_connection_manager::v3::{
                        HttpConnectionManager, HttpFilter, http_connection_manager::RouteSpecifier,
                        http_filter,
                    },
                },
                transport_sockets::tls::v3::Secret,
            },
        },
        google::protobuf::{Any, BoolValue},
    },
    v1::{self, Bundle, Kind},
};

/// Where listeners begin that have the routes which others ask for.
const ROUTES_FROM: u16 = 30_000;

/// A service and what its document has led to.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) bundle: Bundle,
}

/// The bootstrap, serialized, of an Envoy on a host that runs all of these services and calls all of them.
pub(super) fn bootstrap(services: &[Service]) -> Result<Vec<u8>> {
    let workloads = services.iter().map(|of| Workload { service: of.name.clone(), cluster: String::new() });
    let node = NodeFacts { id: "host".to_owned(), workloads: workloads.collect(), ..NodeFacts::default() };
    let mut store = Store::default();
    store.apply(Transaction { upserts: services.iter().flat_map(resources).collect(), ..Default::default() });
    let composer = Composer::of_store("", node, &store);
    let composition = composer.composition();
    for service in services {
        ensure!(composition.clusters.contains_key(service.name.as_str()), "{} is not served", service.name);
    }
    let egress = route::compose(composition.virtual_hosts.values());
    let view = NodeView::new(([127, 0, 0, 1], 1).into());
    let mut listeners = decode(composition.listeners.values())?;
    listeners.push(Listener::decode(listener::egress(&view).body)?);
    let routes: Vec<RouteConfiguration> = decode(composition.route_configs.values().chain([&egress]))?;
    for (number, routes) in (0..).zip(routes) {
        listeners.push(with(routes, ROUTES_FROM + number));
    }
    let bootstrap = Bootstrap {
        node: Some(Node { id: "host".to_owned(), cluster: "host".to_owned(), ..Default::default() }),
        admin: Some(Admin { address: Some(loopback(0)), ..Default::default() }),
        static_resources: Some(StaticResources {
            clusters: decode::<Cluster>(composition.clusters.values())?
                .into_iter()
                .chain([beacon()])
                .collect(),
            listeners,
            secrets: decode::<Secret>(composition.secrets.values())?,
        }),
        dynamic_resources: Some(DynamicResources { ads_config: Some(ads()), ..Default::default() }),
        ..Default::default()
    };
    Ok(bootstrap.encode_to_vec())
}

/// A release and its assignment, and one endpoint.
fn resources(of: &Service) -> Vec<Resource> {
    let resource = |kind: i32, name: &str, body: Vec<u8>| {
        let origin = Origin { source: "test".into(), index: 1 };
        Resource::new(
            ResourceKey { kind, ..ResourceKey::new("", Kind::Service, &of.name, name) },
            origin,
            body.into(),
        )
    };
    let part = |part: &v1::bundle::Part| resource(part.kind, &format!("r/{}", part.name), part.body.to_vec());
    let assignment = v1::Assignment { default_release: "r".to_owned(), ..Default::default() };
    let endpoint = v1::Endpoint { address: "127.0.0.1".to_owned(), port: 9, ..Default::default() };
    let fixed = [
        resource(Kind::Service.into(), "", v1::Service::default().encode_to_vec()),
        resource(Kind::Endpoint.into(), "127.0.0.1:9", endpoint.encode_to_vec()),
        resource(Kind::Assignment.into(), "", assignment.encode_to_vec()),
    ];
    of.bundle.parts.iter().map(part).chain(fixed).collect()
}

fn decode<'a, M: Message + Default>(resources: impl Iterator<Item = &'a XdsResource>) -> Result<Vec<M>> {
    resources.map(|resource| Ok(M::decode(resource.body.clone())?)).collect()
}

/// A listener with these routes in it: those that are asked for, Envoy would not look at.
fn with(routes: RouteConfiguration, port: u16) -> Listener {
    let name = format!("routes {}", routes.name);
    // As with routes that are asked for: a service that is called may not be there yet.
    let routes = RouteConfiguration { validate_clusters: Some(BoolValue { value: false }), ..routes };
    let router = HttpFilter {
        name: "envoy.filters.http.router".to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(any(&Router::default()))),
        ..Default::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: "routes".to_owned(),
        route_specifier: Some(RouteSpecifier::RouteConfig(routes)),
        http_filters: vec![router],
        ..Default::default()
    };
    let filter = Filter {
        name: "envoy.filters.network.http_connection_manager".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&manager))),
    };
    Listener {
        name,
        address: Some(loopback(port)),
        filter_chains: vec![FilterChain { filters: vec![filter], ..Default::default() }],
        ..Default::default()
    }
}

fn loopback(port: u16) -> Address {
    let address = SocketAddress {
        address: "127.0.0.1".to_owned(),
        port_specifier: Some(PortSpecifier::PortValue(port.into())),
        ..Default::default()
    };
    Address { address: Some(address::Address::SocketAddress(address)) }
}

fn any<M: Message + prost::Name>(message: &M) -> Any {
    Any { type_url: M::type_url(), value: message.encode_to_vec() }
}

fn ads() -> ApiConfigSource {
    let envoy_grpc = EnvoyGrpc { cluster_name: "tower:beacon".to_owned(), ..Default::default() };
    ApiConfigSource {
        api_type: ApiType::DeltaGrpc.into(),
        transport_api_version: ApiVersion::V3.into(),
        grpc_services: vec![GrpcService {
            target_specifier: Some(TargetSpecifier::EnvoyGrpc(envoy_grpc)),
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn beacon() -> Cluster {
    Cluster {
        name: "tower:beacon".to_owned(),
        connect_timeout: Some(tower_proto::envoy::google::protobuf::Duration { seconds: 1, nanos: 0 }),
        ..Default::default()
    }
}
