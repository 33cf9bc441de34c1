//! Keeps a [`Composition`] in step with a store, at the cost of what changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use prost::Message;
use tower_proto::v1;

use super::{
    Composition, XdsResource,
    assignment::assignment,
    cluster::default_cluster,
    domains::{DomainError, Domains, claim_of, domain_of},
    route::default_virtual_host,
};
use crate::{
    resource::ResourceKey,
    store::{Changes, Store},
};

/// Builds the composition of one scope.
#[derive(Debug, Default)]
pub struct Composer {
    scope: Arc<str>,
    composition: Composition,
    domains: Domains,
}

impl Composer {
    /// For this scope, starting with nothing.
    pub fn new(scope: &str) -> Self {
        Self { scope: scope.into(), ..Self::default() }
    }

    /// Brings the composition in step with a store to which these changes have been applied. Returns
    /// whether the composition is a different one now.
    pub fn update(&mut self, store: &Store, changes: &Changes) -> bool {
        let services: BTreeSet<&Arc<str>> =
            changes.keys().filter(|key| self.is_served(key)).map(|key| &key.service).collect();
        let mut changed = false;
        for service in services {
            let claim = claim_of(store, &self.scope, service);
            // A name that cannot be a host name is no name of a cluster either: `*` and `xdstp:` mean
            // something in xDS, and one such cluster costs a client all others.
            let named = claim.is_some() && domain_of(service).is_ok();
            changed |= self.update_cluster(store, service, named);
            for affected in self.domains.claim(service, claim) {
                changed |= self.update_virtual_host(&affected);
            }
        }
        let complete = store.is_complete();
        changed |= complete != self.composition.complete;
        self.composition.complete = complete;
        changed
    }

    /// What has been composed. Cheap to clone.
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// The services that cannot be reached by name, and why.
    pub fn refused(&self) -> impl Iterator<Item = (&Arc<str>, &DomainError)> {
        self.domains.refused()
    }

    /// Other kinds are made by a compiler for services with documents, or unknown to this build: kept in
    /// the store, not served.
    fn is_served(&self, key: &ResourceKey) -> bool {
        let kinds = [v1::Kind::Endpoint, v1::Kind::Service].map(i32::from);
        key.scope == self.scope && kinds.contains(&key.kind)
    }

    fn update_cluster(&mut self, store: &Store, service: &Arc<str>, there: bool) -> bool {
        let cluster = there.then(|| default_cluster(service));
        let endpoints = there.then(|| {
            let endpoints: Vec<v1::Endpoint> = store
                .of_service(&self.scope, v1::Kind::Endpoint, service)
                .filter_map(|resource| v1::Endpoint::decode(resource.body().clone()).ok())
                .collect();
            assignment(service, endpoints.iter())
        });
        let Composition { clusters, assignments, .. } = &mut self.composition;
        set(clusters, service, cluster) | set(assignments, service, endpoints)
    }

    fn update_domain(&mut self, service: &Arc<str>, granted: Option<&str>) {
        // A service has one domain at most, and it is its name in lower case.
        let domain = service.to_ascii_lowercase();
        let domains = &mut self.composition.domains;
        let held = domains.get(domain.as_str()) == Some(service);
        match granted {
            Some(_) if !held => {
                Arc::make_mut(domains).insert(domain.into(), service.clone());
            }
            None if held => {
                Arc::make_mut(domains).remove(domain.as_str());
            }
            Some(_) | None => {}
        }
    }

    fn update_virtual_host(&mut self, service: &Arc<str>) -> bool {
        let granted = self.domains.granted(service);
        self.update_domain(service, granted.as_deref());
        let host = granted.map(|domain| default_virtual_host(service, &domain));
        set(&mut self.composition.virtual_hosts, service, host)
    }
}

fn set(
    layer: &mut Arc<BTreeMap<Arc<str>, XdsResource>>,
    name: &Arc<str>,
    resource: Option<XdsResource>,
) -> bool {
    if layer.get(name).map(|held| held.version) == resource.as_ref().map(|new| new.version) {
        return false;
    }
    let layer = Arc::make_mut(layer);
    match resource {
        Some(resource) => layer.insert(name.clone(), resource),
        None => layer.remove(name),
    };
    true
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tower_proto::envoy::envoy::config::endpoint::v3::ClusterLoadAssignment;

    use super::*;
    use crate::{
        resource::{Origin, Resource},
        store::Transaction,
    };

    struct World {
        store: Store,
        composer: Composer,
    }

    impl World {
        fn new() -> Self {
            Self { store: Store::new(), composer: Composer::new("") }
        }

        fn apply(&mut self, transaction: Transaction) -> bool {
            let changes = self.store.apply(transaction);
            self.composer.update(&self.store, &changes)
        }

        fn add(&mut self, resource: Resource) -> bool {
            self.apply(Transaction { upserts: vec![resource], ..Default::default() })
        }

        fn remove(&mut self, resource: &Resource) -> bool {
            let gone = Origin { source: "zk".into(), index: 99 };
            let removals = vec![(resource.key().clone(), gone)];
            self.apply(Transaction { removals, ..Default::default() })
        }

        fn hosts(&self) -> Vec<&str> {
            self.composer.composition().virtual_hosts.keys().map(|name| &**name).collect()
        }

        fn members(&self, service: &str) -> Option<usize> {
            let held = self.composer.composition().assignments.get(service)?;
            let assignment = ClusterLoadAssignment::decode(held.body.clone()).unwrap();
            Some(assignment.endpoints.iter().map(|locality| locality.lb_endpoints.len()).sum())
        }
    }

    fn endpoint(service: &str, address: &str) -> Resource {
        let body = v1::Endpoint { address: address.into(), port: 80, ..Default::default() };
        let key = ResourceKey::new("", v1::Kind::Endpoint, service, address);
        Resource::new(key, Origin { source: "zk".into(), index: 5 }, body.encode_to_vec().into())
    }

    fn service(name: &str, since: u64) -> Resource {
        let key = ResourceKey::new("", v1::Kind::Service, name, "zk");
        let body = v1::Service { since }.encode_to_vec();
        Resource::new(key, Origin { source: "zk".into(), index: 1 }, body.into())
    }

    #[test]
    fn a_service_is_served_from_its_first_sign_of_life_to_its_last() {
        let mut world = World::new();
        assert!(world.add(service("web", 1)));
        assert_eq!((world.hosts(), world.members("web")), (vec!["web"], Some(0)));
        assert!(world.add(endpoint("web", "10.0.0.1")));
        assert_eq!(world.members("web"), Some(1));
        assert!(!world.remove(&service("web", 1)), "its endpoint is still there");
        assert_eq!((world.hosts(), world.members("web")), (vec!["web"], Some(1)));
        assert!(world.remove(&endpoint("web", "10.0.0.1")));
        assert_eq!((world.hosts(), world.members("web")), (vec![], None));
        assert!(world.composer.composition().clusters.is_empty());
    }

    #[test]
    fn an_endpoint_changes_its_own_assignment_only() {
        let mut world = World::new();
        world.add(endpoint("a", "10.0.0.1"));
        world.add(endpoint("b", "10.0.0.1"));
        let before = world.composer.composition().clone();
        assert!(world.add(endpoint("a", "10.0.0.2")));
        let after = world.composer.composition();
        assert!(Arc::ptr_eq(&before.clusters, &after.clusters));
        assert!(Arc::ptr_eq(&before.virtual_hosts, &after.virtual_hosts));
        assert_eq!(before.assignments["b"], after.assignments["b"]);
        assert_ne!(before.assignments["a"], after.assignments["a"]);
    }

    #[test]
    fn names_that_collide_have_one_owner() {
        let mut world = World::new();
        world.add(service("Ads", 7));
        world.add(service("ads", 3));
        world.add(service("ads.mesh", 1));
        assert_eq!(world.hosts(), ["ads"]);
        let owner = |world: &World| world.composer.composition().domains["ads"].to_string();
        assert_eq!(owner(&world), "ads");
        assert_eq!(world.composer.refused().count(), 2);
        assert_eq!(world.composer.composition().clusters.len(), 2, "those that could be host names");
        world.remove(&service("ads", 3));
        assert_eq!(world.hosts(), ["Ads"]);
        assert_eq!(owner(&world), "Ads");
        world.remove(&service("Ads", 7));
        assert!(world.composer.composition().domains.is_empty());
    }

    #[test]
    fn a_name_that_means_something_in_xds_is_no_cluster() {
        let mut world = World::new();
        for name in ["*", "xdstp:x", "a b", ""] {
            world.add(service(name, 1));
            world.add(endpoint(name, "10.0.0.1"));
        }
        let composition = world.composer.composition();
        assert!(composition.clusters.is_empty() && composition.assignments.is_empty());
        assert_eq!(world.composer.refused().count(), 4);
    }

    #[test]
    fn unknown_kinds_and_other_scopes_change_nothing() {
        let mut world = World::new();
        let origin = Origin { source: "zk".into(), index: 1 };
        let mut key = ResourceKey::new("", v1::Kind::Endpoint, "web", "x");
        key.kind = 4711;
        assert!(!world.add(Resource::new(key, origin.clone(), Bytes::new())));
        let key = ResourceKey::new("other", v1::Kind::Service, "web", "x");
        assert!(!world.add(Resource::new(key, origin, Bytes::new())));
    }
}
