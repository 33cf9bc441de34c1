//! What one client may have now: the composition, seen through what this client has got so far.
//!
//! Three rules live here, the first two of which are "make before break" (xDS protocol, "Eventual
//! consistency considerations"):
//! - What refers to a cluster that is new to the client (a service's routes, a listener) waits until the
//!   client has accepted the cluster. An Envoy that gets both at once answers 503 while the cluster is warming.
//!   Nothing else waits, and what the client had under that name stays until then.
//! - A cluster that goes stays, with its endpoints, until what refers to it was replaced, and the client has
//!   accepted that: if it rejects it, it goes back.
//! - A piece of routes that the client cannot take is kept from it, and what it accepted last stays.

mod kept;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tower_common::{
    audience::Workload,
    resource::Version,
    view::{self, ClientKind, Composition, Layer, NodeView, XdsResource},
};

use self::kept::locals;
use super::{
    gate::gate, kind::ResourceType, pieces::Pieces, targets::Targets, triage::Refused, triage::Triage,
};

/// What one client may have now, by type.
#[derive(Debug)]
pub(super) struct Offer {
    composition: Composition,
    clusters: Layer,
    assignments: Layer,
    /// The names under which the client asks for its neighbours.
    locals: Vec<Arc<str>>,
    /// The listener for calls that leave the host.
    egress: XdsResource,
    listeners: Layer,
    /// The listeners that the client shall have, apart from `egress`.
    own_listeners: Layer,
    /// The egress routes, and the route configurations of other listeners.
    routes: Layer,
    own_routes: Layer,
    /// Clusters that are gone, and to which the client still has a reference; with their endpoints.
    retired: BTreeMap<Arc<str>, (XdsResource, Option<XdsResource>)>,
    pieces: Pieces,
    /// Instead of the listener and routes for everything, if the client is gRPC.
    targets: Option<Targets>,
    /// It is connected by a socket of this host.
    local: bool,
    /// Whose listeners it has; `None`: of all services that run on the host.
    workloads: Option<Arc<[Workload]>>,
    /// Some pieces are waiting, or it is not known.
    pieces_waiting: bool,
    /// The same of listeners, and of their route configurations.
    listeners_waiting: bool,
    routes_waiting: bool,
}

impl Offer {
    /// For a client with this view.
    pub(super) fn new(node: &NodeView, composition: &Composition) -> Self {
        let egress = view::listener::egress(node);
        let mut offer = Self {
            composition: composition.clone(),
            clusters: composition.clusters.clone(),
            assignments: composition.assignments.clone(),
            locals: Vec::new(),
            listeners: Arc::new(BTreeMap::from([(egress.name.clone(), egress.clone())])),
            egress,
            own_listeners: Layer::default(),
            routes: Layer::default(),
            own_routes: Layer::default(),
            retired: BTreeMap::new(),
            pieces: Pieces::default(),
            targets: match node.client {
                ClientKind::Envoy => None,
                ClientKind::Grpc => Some(Targets::default()),
            },
            local: node.local,
            workloads: node.workloads.clone(),
            pieces_waiting: true,
            listeners_waiting: true,
            routes_waiting: true,
        };
        offer.own_listeners = offer.listeners_for_client();
        offer
    }

    /// The resources of one type.
    pub(super) fn layer(&self, kind: ResourceType) -> &Layer {
        if let Some(targets) = &self.targets {
            match kind {
                ResourceType::Listener => return targets.listeners(),
                ResourceType::Route => return targets.routes(),
                ResourceType::Secret
                | ResourceType::Runtime
                | ResourceType::Cluster
                | ResourceType::Endpoint
                | ResourceType::Extension
                | ResourceType::ScopedRoute => {}
            }
        }
        match kind {
            ResourceType::Cluster => &self.clusters,
            ResourceType::Endpoint => &self.assignments,
            ResourceType::Listener => &self.listeners,
            ResourceType::Route => &self.routes,
            ResourceType::Secret if self.local => &self.composition.socket_secrets,
            ResourceType::Secret => &self.composition.secrets,
            ResourceType::Runtime => &self.composition.runtimes,
            ResourceType::Extension => &self.composition.extensions,
            ResourceType::ScopedRoute => &self.composition.scoped_routes,
        }
    }

    /// What all clients of the host have in common.
    pub(super) fn composition(&self) -> &Composition {
        &self.composition
    }

    /// Whether the client gets one configuration with the routes of all services.
    pub(super) fn composes_routes(&self) -> bool {
        self.targets.is_none()
    }

    /// What the targets of a client that is gRPC are.
    pub(super) fn targets(&self) -> Option<&Targets> {
        self.targets.as_ref()
    }

    /// Whether the client has the listeners of a service that runs on the host.
    pub(super) fn has_listeners_of(&self, service: &str) -> bool {
        self.workloads.as_ref().is_none_or(|all| all.iter().any(|workload| workload.service == service))
    }

    /// The pieces of the egress routes.
    pub(super) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Looks up what a client wants that names it in its own way.
    pub(super) fn resolve(&mut self, kind: ResourceType, names: &BTreeSet<Arc<str>>) {
        if let Some(targets) = &mut self.targets {
            targets.resolve(kind, names, &self.composition);
        }
        if kind == ResourceType::Endpoint {
            let wanted = locals(names);
            if !wanted.iter().copied().eq(&self.locals) {
                self.locals = wanted.into_iter().cloned().collect();
                self.merge_assignments();
            }
        }
    }

    /// Whether every source has been read, so that absence is an answer.
    pub(super) fn is_complete(&self) -> bool {
        self.composition.complete
    }

    /// Takes in a new composition. What did not change costs nothing. `referred`: the clusters that the
    /// client's listeners and their routes refer to.
    pub(super) fn update(&mut self, new: &Composition, referred: impl FnOnce() -> BTreeSet<Arc<str>>) {
        let old = std::mem::replace(&mut self.composition, new.clone());
        let clusters = !Arc::ptr_eq(&old.clusters, &new.clusters);
        if clusters {
            let gone = old.clusters.iter().filter(|(name, _)| !new.clusters.contains_key(*name));
            let gone: Vec<(&Arc<str>, &XdsResource)> = gone.collect();
            if !gone.is_empty() {
                let in_use = self.in_use(referred());
                for (name, cluster) in gone.into_iter().filter(|(name, _)| in_use.contains(*name)) {
                    let assignment = old.assignments.get(name).cloned();
                    self.retired.insert(name.clone(), (cluster.clone(), assignment));
                }
            }
            self.retired.retain(|name, _| !new.clusters.contains_key(name));
        }
        if clusters || !Arc::ptr_eq(&old.assignments, &new.assignments) {
            self.merge_retired();
        }
        self.pieces_waiting |= clusters || !Arc::ptr_eq(&old.virtual_hosts, &new.virtual_hosts);
        self.routes_waiting |= !Arc::ptr_eq(&old.route_configs, &new.route_configs);
        if !Arc::ptr_eq(&old.listeners, &new.listeners) {
            self.own_listeners = self.listeners_for_client();
            self.listeners_waiting = true;
        }
    }

    fn listeners_for_client(&self) -> Layer {
        let all = &self.composition.listeners;
        if self.workloads.is_none() {
            return all.clone();
        }
        let own = all.iter().filter(|(name, _)| {
            // `inbound/SERVICE/PORT`
            name.split('/').nth(1).is_some_and(|service| self.has_listeners_of(service))
        });
        Arc::new(own.map(|(name, listener)| (name.clone(), listener.clone())).collect())
    }

    /// Composes the routes anew, if there is a reason to. `accepted`: whether the client has accepted a
    /// cluster, or does not want to be kept waiting for it.
    pub(super) fn compose_routes(&mut self, accepted: impl Fn(&str) -> bool) {
        if !self.pieces_waiting {
            return;
        }
        let Composition { clusters, virtual_hosts, .. } = &self.composition;
        let ready = |name: &str| accepted(name) || !clusters.contains_key(name);
        self.pieces_waiting = !self.pieces.compose(virtual_hosts, ready);
        self.merge_routes();
    }

    /// Looks which route configurations of listeners the client may have, if there is a reason to. `told`:
    /// what it was sent of a name.
    pub(super) fn gate_routes<'a>(
        &mut self,
        told: impl Fn(&str) -> Option<&'a XdsResource>,
        accepted: impl Fn(&str) -> bool,
    ) {
        if !self.routes_waiting {
            return;
        }
        let Composition { clusters, route_configs, .. } = &self.composition;
        let ready = |name: &str| accepted(name) || !clusters.contains_key(name);
        // Its listener is warming until it has them, and was sent after the clusters.
        let (routes, all) = gate(route_configs, false, told, ready);
        self.own_routes = routes;
        self.routes_waiting = !all;
        self.merge_routes();
    }

    /// The same of listeners.
    pub(super) fn gate_listeners<'a>(
        &mut self,
        told: impl Fn(&str) -> Option<&'a XdsResource>,
        accepted: impl Fn(&str) -> bool,
    ) {
        if !self.listeners_waiting {
            return;
        }
        let clusters = &self.composition.clusters;
        let ready = |name: &str| accepted(name) || !clusters.contains_key(name);
        let (own, all) = gate(&self.own_listeners, true, told, ready);
        self.listeners_waiting = !all;
        let mut listeners = (*own).clone();
        listeners.insert(self.egress.name.clone(), self.egress.clone());
        if listeners != *self.listeners {
            self.listeners = Arc::new(listeners);
        }
    }

    fn merge_routes(&mut self) {
        let mut routes = (*self.own_routes).clone();
        routes.extend(self.pieces.routes().map(|routes| (routes.name.clone(), routes.clone())));
        if routes != *self.routes {
            self.routes = Arc::new(routes);
        }
    }

    /// The routes were sent.
    pub(super) fn routes_sent(&mut self) {
        self.pieces.sent();
    }

    /// The client has accepted the routes with this version.
    pub(super) fn routes_accepted(&mut self, version: Version) {
        if self.pieces.accepted(version, &self.composition.virtual_hosts) {
            self.pieces_waiting |= !self.pieces.is_idle();
        }
    }

    /// The client has rejected the routes with this version. `certain`: for nothing else in the response.
    pub(super) fn routes_rejected(&mut self, version: Version, message: &str, certain: bool) {
        self.pieces.rejected(version, message, certain);
        self.pieces_waiting = true;
    }

    /// Begins with pieces that the client could not take on its earlier streams.
    pub(super) fn recall(&mut self, pieces: Triage) {
        self.pieces.recall(pieces);
    }

    /// The pieces that are kept from this client.
    pub(super) fn refused_pieces(&self) -> impl Iterator<Item = &Refused> {
        self.pieces.refused(&self.composition.virtual_hosts)
    }

    /// The client does not want routes, so nothing waits for them.
    pub(super) fn routes_unwanted(&mut self) {
        self.pieces.unwanted();
    }
}

#[cfg(test)]
mod tests;
