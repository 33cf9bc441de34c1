//! What the tests of this module share: worlds to serve, a client's side of the wire, and scripts.

pub(super) mod script;
pub(super) mod wire;

use std::{collections::BTreeMap, sync::Arc};

use tower_common::view::{Composition, Held, Layer, Part, PartKind, References, XdsResource};
use tower_proto::envoy::{
    envoy::config::{
        cluster::v3::Cluster,
        endpoint::v3::{ClusterLoadAssignment, cluster_load_assignment::Policy},
        listener::v3::Listener,
        route::v3::{RouteConfiguration, VirtualHost},
    },
    google::protobuf::{Duration, UInt32Value},
};

/// The revisions of a service's cluster, endpoints and routes. A revision is content: a client can read
/// it in what it gets.
pub(super) type Revisions = [u32; 3];

/// Services to be served.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct World {
    pub(super) services: BTreeMap<String, Revisions>,
    /// Further clusters of a service, `SERVICE/SUBSET`, to which its routes refer as well.
    pub(super) subsets: BTreeMap<String, Vec<String>>,
    /// Services that run on the host, with the revision of their listener.
    pub(super) inbound: BTreeMap<String, u32>,
    pub(super) complete: bool,
}

/// Services in their first revision, completely loaded.
pub(super) fn composition(services: &[&str]) -> Composition {
    let services = services.iter().map(|&name| (name.to_owned(), [1; 3])).collect();
    World { services, complete: true, ..World::default() }.compose(&Composition::default())
}

impl World {
    /// The composition of this world. Layers that are as before are the same as before, as they are when
    /// a composer made them.
    pub(super) fn compose(&self, before: &Composition) -> Composition {
        let clusters = |index: usize, make: fn(&str, u32) -> XdsResource| {
            self.services.iter().flat_map(move |(name, revisions)| {
                self.names(name).into_iter().map(move |name| make(&name, revisions[index]))
            })
        };
        let local = self.inbound.keys().map(|service| cluster(&format!("inbound/{service}/1"), 1));
        let pieces = self.services.iter().map(|(name, revisions)| self.virtual_host(name, revisions[2]));
        let listeners = self.inbound.iter().map(|(service, revision)| listener(service, *revision));
        let routes = self.inbound.keys().map(|service| routes(service));
        let mut composition = Composition {
            complete: self.complete,
            clusters: layer(&before.clusters, clusters(0, cluster).chain(local)),
            assignments: layer(&before.assignments, clusters(1, assignment)),
            virtual_hosts: layer(&before.virtual_hosts, pieces),
            listeners: layer(&before.listeners, listeners),
            route_configs: layer(&before.route_configs, routes),
            ..Composition::default()
        };
        let held: BTreeMap<Arc<str>, Arc<Held>> = self
            .services
            .keys()
            .map(|name| {
                let held = Arc::new(self.held(name, &composition));
                let same = before.held.get(name.as_str()).filter(|before| **before == held);
                (name.as_str().into(), same.cloned().unwrap_or(held))
            })
            .collect();
        composition.held = if *before.held == held { before.held.clone() } else { Arc::new(held) };
        composition
    }

    /// The names of a service's clusters.
    fn names(&self, service: &str) -> Vec<String> {
        let subsets = self.subsets.get(service).into_iter().flatten();
        [service.to_owned()].into_iter().chain(subsets.map(|subset| format!("{service}/{subset}"))).collect()
    }

    fn virtual_host(&self, name: &str, revision: u32) -> XdsResource {
        let names = self.names(name);
        let domains =
            [name.to_owned(), revision.to_string()].into_iter().chain(names.iter().skip(1).cloned());
        let host = VirtualHost { name: name.to_owned(), domains: domains.collect(), ..Default::default() };
        let mut piece = XdsResource::new(name, &host);
        if names.len() > 1 {
            piece.refers = refers(&names);
        }
        piece
    }

    fn held(&self, service: &str, composition: &Composition) -> Held {
        let part = |kind, layer: &Layer, name: &str| {
            layer.get(name).map(|held| Part { kind, name: held.name.clone(), version: held.version })
        };
        let clusters = self.names(service).into_iter();
        let clusters = clusters.filter_map(|name| part(PartKind::Cluster, &composition.clusters, &name));
        let others = [
            part(PartKind::Cluster, &composition.clusters, &format!("inbound/{service}/1")),
            part(PartKind::Piece, &composition.virtual_hosts, service),
            part(PartKind::Listener, &composition.listeners, &format!("inbound/{service}/1")),
            part(PartKind::Routes, &composition.route_configs, &format!("inbound/{service}")),
        ];
        Held { parts: clusters.chain(others.into_iter().flatten()).collect(), ..Held::default() }
    }
}

fn layer(before: &Layer, resources: impl Iterator<Item = XdsResource>) -> Layer {
    let layer: BTreeMap<_, _> = resources.map(|resource| (resource.name.clone(), resource)).collect();
    if **before == layer { before.clone() } else { Arc::new(layer) }
}

fn refers(clusters: &[String]) -> Option<Arc<References>> {
    let clusters = clusters.iter().map(|name| name.as_str().into()).collect();
    Some(Arc::new(References { clusters, ..References::default() }))
}

/// The listener in front of a service on its own host.
fn listener(service: &str, revision: u32) -> XdsResource {
    let name = format!("inbound/{service}/1");
    let listener = Listener { name: name.clone(), stat_prefix: revision.to_string(), ..Default::default() };
    let mut listener = XdsResource::new(&name, &listener);
    listener.refers = refers(&[]);
    listener
}

/// Its routes.
fn routes(service: &str) -> XdsResource {
    let name = format!("inbound/{service}");
    let configuration = RouteConfiguration { name: name.clone(), ..Default::default() };
    let mut routes = XdsResource::new(&name, &configuration);
    routes.refers = refers(&[format!("inbound/{service}/1")]);
    routes
}

fn cluster(name: &str, revision: u32) -> XdsResource {
    let cluster = Cluster {
        name: name.to_owned(),
        connect_timeout: Some(Duration { seconds: revision.into(), nanos: 0 }),
        ..Default::default()
    };
    XdsResource::new(name, &cluster)
}

fn assignment(name: &str, revision: u32) -> XdsResource {
    let policy =
        Policy { overprovisioning_factor: Some(UInt32Value { value: revision }), ..Default::default() };
    let assignment =
        ClusterLoadAssignment { cluster_name: name.to_owned(), policy: Some(policy), ..Default::default() };
    XdsResource::new(name, &assignment)
}
