//! Keeps a [`Composition`] in step with a store, at the cost of what changed.
//!
//! A service without an assignment has the default cluster and routes. One with an assignment has what the
//! release that this host is given says; releases that are not served are not decoded. What cannot be
//! evaluated (an audience with a new term, a release with a missing part) leaves the service with the release
//! that it has, and is told.

mod assigned;
mod holding;
mod layers;
mod pieces;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use prost::Message;
use tower_proto::v1;

pub use self::assigned::evaluate;
use self::{
    assigned::{Assigned, Before, decide},
    layers::{Counted, Index, Names, drop_others, set},
};
use super::{
    Composition, XdsResource,
    assignment::assemble,
    cluster::default_cluster,
    domains::{DomainError, Domains, claim_of, domain_of},
    release::{Release, Side},
};
use crate::{
    audience::NodeFacts,
    resource::ResourceKey,
    store::{Changes, Store},
};

/// Builds the composition of one scope, as one host sees it.
#[derive(Debug, Default)]
pub struct Composer {
    scope: Arc<str>,
    node: NodeFacts,
    composition: Composition,
    domains: Domains,
    /// The services with an assignment.
    assigned: BTreeMap<Arc<str>, Assigned>,
    /// What services have that serve a release.
    names: BTreeMap<Arc<str>, Names>,
    /// Clusters whose endpoints are discovered, of which none is in service.
    empty: BTreeSet<Arc<str>>,
    /// Services by whose endpoints other services' clusters are filled.
    lenders: Index,
    /// Clusters by whose weights routes divide traffic.
    weighed: Index,
    /// Services that are called by this host's own otherwise than they say.
    called: Index,
    /// The logs that services have.
    logs: Counted,
}

/// What an update has found to be done.
#[derive(Debug, Default)]
struct Work {
    /// Services that have to be looked at, and whether their releases may be others.
    services: BTreeMap<Arc<str>, bool>,
    /// Services whose routes have to be composed.
    pieces: BTreeSet<Arc<str>>,
    changed: bool,
}

impl Composer {
    /// For a host in this scope, starting with nothing.
    pub fn new(scope: &str, node: NodeFacts) -> Self {
        Self { scope: scope.into(), node, ..Self::default() }
    }

    /// What a host would be served of a store, as in a preview.
    pub fn of_store(scope: &str, node: NodeFacts, store: &Store) -> Self {
        let mut composer = Self::new(scope, node);
        let upserted = store.iter().map(|resource| resource.key().clone()).collect();
        composer.update(store, &Changes { upserted, ..Changes::default() });
        composer
    }

    /// Brings the composition in step with a store to which these changes have been applied. Returns
    /// whether the composition is a different one now.
    pub fn update(&mut self, store: &Store, changes: &Changes) -> bool {
        let mut work = self.work(changes);
        for (service, _) in work.services.clone().into_iter().filter(|(_, reassigned)| *reassigned) {
            self.assign(store, &service, &mut work);
        }
        let mut endpoints = Endpoints::default();
        for service in work.services.clone().keys() {
            self.update_service(store, service, &mut endpoints, &mut work);
        }
        for service in &work.pieces {
            work.changed |= self.update_piece(service);
        }
        for service in work.services.keys().chain(&work.pieces) {
            work.changed |= self.update_held(service);
        }
        let composition = &mut self.composition;
        composition.socket_secrets = composition.secrets.clone();
        let complete = store.is_complete();
        work.changed |= complete != composition.complete;
        composition.complete = complete;
        work.changed
    }

    /// What has been composed. Cheap to clone.
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// The services that cannot be reached by name, and why.
    pub fn refused(&self) -> impl Iterator<Item = (&Arc<str>, &DomainError)> {
        self.domains.refused()
    }

    /// Whom changes concern. Kinds that are unknown to this build, and other scopes, are kept in the store,
    /// and not served.
    fn work(&self, changes: &Changes) -> Work {
        let mut work = Work::default();
        for key in changes.keys().filter(|key| key.scope == self.scope) {
            let ResourceKey { kind, service, .. } = key;
            let reassigned = match v1::Kind::try_from(*kind) {
                Ok(v1::Kind::Endpoint) => {
                    for borrower in self.lenders.of(service) {
                        work.services.entry(borrower.clone()).or_default();
                    }
                    false
                }
                Ok(v1::Kind::Service) => false,
                Ok(
                    v1::Kind::Assignment
                    | v1::Kind::Cluster
                    | v1::Kind::VirtualHost
                    | v1::Kind::Listener
                    | v1::Kind::SecretReference
                    | v1::Kind::Extension,
                ) => true,
                Ok(v1::Kind::Unspecified | v1::Kind::Runtime | v1::Kind::AppConfig) | Err(_) => continue,
            };
            *work.services.entry(service.clone()).or_default() |= reassigned;
        }
        work
    }

    /// Decides which release a service has.
    fn assign(&mut self, store: &Store, service: &Arc<str>, work: &mut Work) {
        let before = match self.assigned.get(service) {
            Some(assigned) => Before::Assigned(assigned),
            None if self.composition.clusters.contains_key(service) => Before::Default,
            None => Before::Nothing,
        };
        let now = decide(store, &self.scope, service, &self.node, before);
        let before = match now {
            Some(now) => self.assigned.insert(service.clone(), now),
            None => self.assigned.remove(service),
        };
        let before = before.and_then(|assigned| assigned.release);
        let now = self.release(service);
        let lenders = |release: &Option<Arc<Release>>| release.iter().flat_map(|r| r.lenders()).collect();
        self.lenders.change(service, &lenders(&before), &lenders(&now));
        let weighed = |release: &Option<Arc<Release>>| {
            let hosts = release.iter().filter_map(|release| release.host.as_ref());
            hosts.flat_map(|host| host.weighed.iter().cloned()).collect()
        };
        self.weighed.change(service, &weighed(&before), &weighed(&now));
        let log = |release: &Option<Arc<Release>>| release.as_ref()?.host.as_ref()?.access_log.clone();
        if self.logs.change(log(&before), log(&now)) {
            self.composition.access_logs = self.logs.all();
            work.changed = true;
        }
        if self.node.runs(service) {
            let called = |release: &Option<Arc<Release>>| -> BTreeSet<Arc<str>> {
                let parts = release.iter().flat_map(|release| &release.dependencies);
                parts.map(|part| part.service.as_str().into()).collect()
            };
            let (before, now) = (called(&before), called(&now));
            self.called.change(service, &before, &now);
            work.pieces.extend(before.into_iter().chain(now));
        }
    }

    /// The release that a service is served from; `None` is the release "default".
    fn release(&self, service: &str) -> Option<Arc<Release>> {
        self.assigned.get(service)?.release.clone()
    }

    /// Brings everything of a service in step but its routes.
    fn update_service(
        &mut self,
        store: &Store,
        service: &Arc<str>,
        endpoints: &mut Endpoints,
        work: &mut Work,
    ) {
        let claim = claim_of(store, &self.scope, service);
        // A name that cannot be a host name is no name of a cluster either: `*` and `xdstp:` mean
        // something in xDS, and one such cluster costs a client all others.
        let named = claim.is_some() && domain_of(service).is_ok();
        let release = self.release(service);
        let names = match &release {
            Some(release) if named => self.update_release(store, release, service, endpoints, work),
            None if named => {
                self.set_cluster(service, default_cluster(service), work);
                let all = endpoints.of(store, &self.scope, service);
                let assembled = assemble(service, all.iter(), None, &self.node);
                work.changed |= set(&mut self.composition.assignments, service, Some(assembled.resource));
                self.note_empty(service, !assembled.in_service, work);
                Names::of_default(service)
            }
            Some(_) | None => Names::default(),
        };
        self.keep_names(service, names, release.is_some() && named, work);
        work.pieces.insert(service.clone());
        work.pieces.extend(self.domains.claim(service, claim));
    }

    /// Brings everything of a service in step that its release says, but its routes.
    fn update_release(
        &mut self,
        store: &Store,
        release: &Release,
        service: &Arc<str>,
        endpoints: &mut Endpoints,
        work: &mut Work,
    ) -> Names {
        let here = self.node.runs(service);
        let served = |side: Side| side == Side::Callers || here;
        let mut names = Names::default();
        for cluster in release.clusters.iter().filter(|cluster| served(cluster.side)) {
            let name = &cluster.resource.name;
            names.clusters.insert(name.clone());
            self.set_cluster(name, cluster.resource.clone(), work);
            work.changed |= set(&mut self.composition.grpc_clusters, name, cluster.grpc.clone());
            if let Some(wanted) = &cluster.endpoints {
                names.assignments.insert(name.clone());
                let all = endpoints.of(store, &self.scope, &wanted.of);
                let assembled = assemble(name, all.iter(), Some(wanted), &self.node);
                work.changed |= set(&mut self.composition.assignments, name, Some(assembled.resource));
                self.note_empty(name, !assembled.in_service, work);
            }
        }
        let Composition { listeners, route_configs, secrets, .. } = &mut self.composition;
        let all = [
            (listeners, &release.listeners, &mut names.listeners),
            (route_configs, &release.routes, &mut names.routes),
            (secrets, &release.secrets, &mut names.secrets),
        ];
        for (layer, resources, names) in all {
            for (_, resource) in resources.iter().filter(|(side, _)| served(*side)) {
                names.insert(resource.name.clone());
                work.changed |= set(layer, &resource.name, Some(resource.clone()));
            }
        }
        names
    }

    /// Takes away what a service has no more.
    fn keep_names(&mut self, service: &Arc<str>, now: Names, of_release: bool, work: &mut Work) {
        let before = self.names.remove(service).unwrap_or_else(|| Names::of_default(service));
        let composition = &mut self.composition;
        if !of_release {
            now.clusters
                .iter()
                .for_each(|name| work.changed |= set(&mut composition.grpc_clusters, name, None));
        }
        work.changed |= drop_others(&mut composition.clusters, &before.clusters, &now.clusters)
            | drop_others(&mut composition.grpc_clusters, &before.clusters, &now.clusters)
            | drop_others(&mut composition.assignments, &before.assignments, &now.assignments)
            | drop_others(&mut composition.listeners, &before.listeners, &now.listeners)
            | drop_others(&mut composition.route_configs, &before.routes, &now.routes)
            | drop_others(&mut composition.secrets, &before.secrets, &now.secrets);
        for gone in before.assignments.difference(&now.assignments) {
            // Of a cluster that brings its own endpoints nothing is known.
            self.note_empty(gone, false, work);
        }
        for gone in before.clusters.difference(&now.clusters) {
            work.pieces.extend(self.weighed.of(gone).cloned());
        }
        if of_release {
            self.names.insert(service.clone(), now);
        }
    }

    fn set_cluster(&mut self, name: &Arc<str>, cluster: XdsResource, work: &mut Work) {
        if !self.composition.clusters.contains_key(name) {
            work.pieces.extend(self.weighed.of(name).cloned());
        }
        work.changed |= set(&mut self.composition.clusters, name, Some(cluster));
    }

    /// Notes whether no endpoint of a cluster is in service.
    fn note_empty(&mut self, cluster: &Arc<str>, empty: bool, work: &mut Work) {
        let changed = if empty { self.empty.insert(cluster.clone()) } else { self.empty.remove(cluster) };
        if changed {
            work.pieces.extend(self.weighed.of(cluster).cloned());
        }
    }
}

/// Services' endpoints, decoded once in an update.
#[derive(Debug, Default)]
struct Endpoints {
    last: Option<(Arc<str>, Vec<v1::Endpoint>)>,
}

impl Endpoints {
    fn of(&mut self, store: &Store, scope: &str, service: &Arc<str>) -> &[v1::Endpoint] {
        if self.last.as_ref().is_none_or(|(held, _)| held != service) {
            let resources = store.of_service(scope, v1::Kind::Endpoint, service);
            let endpoints = resources.filter_map(|r| v1::Endpoint::decode(r.body().clone()).ok());
            self.last = Some((service.clone(), endpoints.collect()));
        }
        self.last.as_ref().map_or(&[], |(_, endpoints)| endpoints)
    }
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod releases;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
