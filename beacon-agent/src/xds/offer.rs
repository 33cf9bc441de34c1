//! What one client may have now: the composition, seen through what this client has got so far.
//!
//! Three rules live here, the first two of which are "make before break" (xDS protocol, "Eventual
//! consistency considerations"):
//! - A route to a cluster that is new to the client waits until the client has accepted the cluster. An
//!   Envoy that gets both at once answers 503 while the cluster is warming. Other routes do not wait.
//! - A cluster that goes stays, with its endpoints, until the routes that refer to it were replaced.
//! - A piece of routes that the client cannot take is kept from it, and what it accepted last stays.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use tower_common::{
    resource::Version,
    view::{self, ClientKind, Composition, EGRESS, Layer, NodeView, XdsResource},
};

use super::{
    kind::ResourceType,
    targets::Targets,
    triage::{Refused, Split, Suspects, Triage},
};

/// Routes whose pieces are remembered until they are answered. Routes are not sent again before they are,
/// unless the client asks.
const MAX_UNANSWERED: usize = 4;

/// What one client may have now, by type.
#[derive(Debug)]
pub(super) struct Offer {
    composition: Composition,
    clusters: Layer,
    assignments: Layer,
    listeners: Layer,
    routes: Layer,
    /// Clusters that are gone, and to which the client still has a route; with their endpoints.
    retired: BTreeMap<Arc<str>, (XdsResource, Option<XdsResource>)>,
    /// The pieces in `routes`.
    pieces: Layer,
    /// The pieces in the routes that the client was sent last.
    sent_pieces: Layer,
    /// The pieces in the routes that it accepted last.
    good_pieces: Layer,
    /// The pieces of routes that were sent and not answered, by the version of the routes.
    unanswered: VecDeque<(Version, Layer)>,
    /// Pieces that the client could not take.
    triage: Triage,
    /// Instead of the listener and routes for everything, if the client is gRPC.
    targets: Option<Targets>,
    /// It is connected by a socket of this host.
    local: bool,
    /// Some pieces are waiting, or it is not known.
    waiting: bool,
}

impl Offer {
    /// For a client with this view.
    pub(super) fn new(node: &NodeView, composition: &Composition) -> Self {
        let listener = view::listener::egress(node);
        Self {
            composition: composition.clone(),
            clusters: composition.clusters.clone(),
            assignments: composition.assignments.clone(),
            listeners: Arc::new(BTreeMap::from([(listener.name.clone(), listener)])),
            routes: Layer::default(),
            retired: BTreeMap::new(),
            pieces: Layer::default(),
            sent_pieces: Layer::default(),
            good_pieces: Layer::default(),
            unanswered: VecDeque::new(),
            triage: Triage::default(),
            targets: match node.client {
                ClientKind::Envoy => None,
                ClientKind::Grpc => Some(Targets::default()),
            },
            local: node.local,
            waiting: true,
        }
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

    /// Whether the client gets one configuration with the routes of all services.
    pub(super) fn composes_routes(&self) -> bool {
        self.targets.is_none()
    }

    /// Looks up what a client wants that names it in its own way.
    pub(super) fn resolve(&mut self, kind: ResourceType, names: &BTreeSet<Arc<str>>) {
        if let Some(targets) = &mut self.targets {
            targets.resolve(kind, names, &self.composition);
        }
    }

    /// Whether every source has been read, so that absence is an answer.
    pub(super) fn is_complete(&self) -> bool {
        self.composition.complete
    }

    /// Takes in a new composition. What did not change costs nothing.
    pub(super) fn update(&mut self, new: &Composition) {
        let old = std::mem::replace(&mut self.composition, new.clone());
        let clusters = !Arc::ptr_eq(&old.clusters, &new.clusters);
        if clusters {
            for (name, cluster) in old.clusters.iter().filter(|(name, _)| !new.clusters.contains_key(*name)) {
                if self.sent_pieces.contains_key(name) {
                    let assignment = old.assignments.get(name).cloned();
                    self.retired.insert(name.clone(), (cluster.clone(), assignment));
                }
            }
            self.retired.retain(|name, _| !new.clusters.contains_key(name));
        }
        if clusters || !Arc::ptr_eq(&old.assignments, &new.assignments) {
            self.merge_retired();
        }
        self.waiting |= clusters || !Arc::ptr_eq(&old.virtual_hosts, &new.virtual_hosts);
    }

    /// Composes the routes anew, if there is a reason to. `accepted`: whether the client has accepted a
    /// cluster, or does not want to be kept waiting for it.
    pub(super) fn compose_routes(&mut self, accepted: impl Fn(&str) -> bool) {
        if !self.waiting {
            return;
        }
        let Composition { clusters, virtual_hosts, .. } = &self.composition;
        let may_have = |name: &Arc<str>| {
            // A route that the client has is not taken away again, whatever it says of the cluster.
            clusters.contains_key(name) && (accepted(name) || self.sent_pieces.contains_key(name))
        };
        let admitted = self.admit(virtual_hosts);
        let all = admitted.keys().all(may_have);
        self.waiting = !all;
        let pieces = if all {
            admitted
        } else {
            let there = admitted.iter().filter(|(name, _)| may_have(name));
            Arc::new(there.map(|(name, piece)| (name.clone(), piece.clone())).collect())
        };
        if !self.routes.is_empty() && pieces == self.pieces {
            return;
        }
        let routes = view::route::compose(pieces.values());
        self.routes = Arc::new(BTreeMap::from([(routes.name.clone(), routes)]));
        self.pieces = pieces;
    }

    /// The pieces that the client can take, as far as is known.
    fn admit(&self, pieces: &Layer) -> Layer {
        if self.triage.is_idle() {
            return pieces.clone();
        }
        self.triage.admit(pieces, |name| self.good_pieces.get(name).cloned()).0
    }

    /// The routes were sent. What only their predecessor referred to may go now.
    pub(super) fn routes_sent(&mut self) {
        self.sent_pieces = self.pieces.clone();
        if let Some(routes) = self.routes.get(EGRESS) {
            let version = routes.version;
            self.unanswered.retain(|(sent, _)| *sent != version);
            self.unanswered.push_back((version, self.pieces.clone()));
            if self.unanswered.len() > MAX_UNANSWERED {
                self.unanswered.pop_front();
            }
        }
        self.release();
    }

    /// The client has accepted the routes with this version.
    pub(super) fn routes_accepted(&mut self, version: Version) {
        let Some(at) = self.unanswered.iter().position(|(sent, _)| *sent == version) else { return };
        // It stays known, in case that it is sent again and then rejected.
        self.unanswered.drain(..at);
        self.good_pieces = self.unanswered[0].1.clone();
        let (pieces, good) = (&self.composition.virtual_hosts, &self.good_pieces);
        self.triage.settle(|name, version| {
            let has = |layer: &Layer| layer.get(name).is_some_and(|piece| piece.version == version);
            has(pieces) && !has(good)
        });
        self.waiting |= !self.triage.is_idle();
    }

    /// The client has rejected the routes with this version: one of the pieces that it has never accepted
    /// is to blame.
    pub(super) fn routes_rejected(&mut self, version: Version, message: &str) {
        let Some((_, pieces)) = self.unanswered.iter().find(|(sent, _)| *sent == version) else { return };
        let good = &self.good_pieces;
        let known = |piece: &&XdsResource| good.get(&piece.name).is_none_or(|g| g.version != piece.version);
        let suspects =
            Suspects { resources: pieces.values().filter(known).cloned().collect(), certain: true };
        self.triage.reject(suspects, message, Split::Halves, |name| good.get(name).cloned());
        self.waiting = true;
    }

    /// Begins with pieces that the client could not take on its earlier streams.
    pub(super) fn recall(&mut self, pieces: Triage) {
        self.triage = pieces;
    }

    /// What the client's later streams are to begin with.
    pub(super) fn memory(&self) -> Triage {
        self.triage.lasting()
    }

    /// The pieces that are kept from this client.
    pub(super) fn refused_pieces(&self) -> impl Iterator<Item = &Refused> {
        self.triage.refused_of(&self.composition.virtual_hosts)
    }

    /// The client does not want routes, so nothing waits for them.
    pub(super) fn routes_unwanted(&mut self) {
        self.sent_pieces = Layer::default();
        self.release();
    }

    fn release(&mut self) {
        let before = self.retired.len();
        self.retired.retain(|name, _| self.sent_pieces.contains_key(name));
        if self.retired.len() != before {
            self.merge_retired();
        }
    }

    fn merge_retired(&mut self) {
        self.clusters = self.composition.clusters.clone();
        self.assignments = self.composition.assignments.clone();
        if self.retired.is_empty() {
            return;
        }
        let clusters = Arc::make_mut(&mut self.clusters);
        let assignments = Arc::make_mut(&mut self.assignments);
        for (name, (cluster, assignment)) in &self.retired {
            clusters.insert(name.clone(), cluster.clone());
            if let Some(assignment) = assignment {
                assignments.entry(name.clone()).or_insert_with(|| assignment.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;
    use crate::xds::testing::composition;

    fn offer(services: &[&str]) -> Offer {
        let egress = SocketAddr::from((Ipv4Addr::LOCALHOST, 5875));
        Offer::new(&NodeView::new(egress), &composition(services))
    }

    fn names(layer: &Layer) -> Vec<&str> {
        layer.keys().map(|name| &**name).collect()
    }

    fn pieces(offer: &Offer) -> Vec<&str> {
        offer.pieces.keys().map(|name| &**name).collect()
    }

    #[test]
    fn a_cluster_that_goes_stays_until_routes_without_it_were_sent() {
        let mut offer = offer(&["a", "b"]);
        offer.compose_routes(|_| true);
        offer.routes_sent();
        offer.update(&composition(&["a"]));
        assert_eq!(names(&offer.clusters), ["a", "b"]);
        assert_eq!(names(&offer.assignments), ["a", "b"]);
        offer.compose_routes(|_| true);
        assert_eq!(pieces(&offer), ["a"]);
        offer.routes_sent();
        assert_eq!(names(&offer.clusters), ["a"]);
        assert_eq!(names(&offer.assignments), ["a"]);
    }

    #[test]
    fn a_cluster_that_comes_back_in_time_has_never_gone() {
        let mut offer = offer(&["a", "b"]);
        offer.compose_routes(|_| true);
        offer.routes_sent();
        offer.update(&composition(&["a"]));
        offer.update(&composition(&["a", "b"]));
        assert!(offer.retired.is_empty());
        offer.compose_routes(|_| false);
        assert_eq!(pieces(&offer), ["a", "b"], "the client has these routes");
    }

    #[test]
    fn a_cluster_to_which_the_client_has_no_route_goes_at_once() {
        let mut offer = offer(&["a", "b"]);
        offer.update(&composition(&["a"]));
        assert_eq!(names(&offer.clusters), ["a"]);
        offer.compose_routes(|_| true);
        offer.routes_sent();
        offer.update(&composition(&[]));
        assert_eq!(names(&offer.clusters), ["a"]);
        offer.routes_unwanted();
        assert!(offer.clusters.is_empty());
    }

    #[test]
    fn only_the_route_to_a_cluster_that_is_not_accepted_waits() {
        let mut offer = offer(&["a", "b"]);
        offer.compose_routes(|name| name == "b");
        assert_eq!(pieces(&offer), ["b"]);
        offer.compose_routes(|_| true);
        assert_eq!(pieces(&offer), ["a", "b"]);
    }

    #[test]
    fn routes_are_composed_for_a_reason_only() {
        let mut offer = offer(&["a"]);
        offer.compose_routes(|_| true);
        let before = offer.routes.clone();
        let mut changed = composition(&["a"]);
        changed.clusters = offer.composition.clusters.clone();
        changed.virtual_hosts = offer.composition.virtual_hosts.clone();
        offer.update(&changed);
        offer.compose_routes(|_| true);
        assert!(Arc::ptr_eq(&before, &offer.routes));
    }
}
