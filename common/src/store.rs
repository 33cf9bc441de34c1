//! The store: the resources and the state of the sources, and nothing else. The same in Tower and Beacon.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tower_proto::v1;

use crate::{
    digest::Digest,
    resource::{Origin, Resource, ResourceKey},
};

/// The resources by key, and what is known of each source.
#[derive(Debug, Clone, Default)]
pub struct Store {
    resources: BTreeMap<ResourceKey, Resource>,
    sources: BTreeMap<Arc<str>, v1::SourceStatus>,
    digest: Digest,
}

/// What is applied together or not at all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transaction {
    /// New or changed resources.
    pub upserts: Vec<Resource>,
    /// What is gone, and where in its source it was gone.
    pub removals: Vec<(ResourceKey, Origin)>,
    /// The sources that the transaction moves, as they are after it.
    pub sources: Vec<v1::SourceStatus>,
}

/// What a transaction really changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys whose content is new or different.
    pub upserted: Vec<ResourceKey>,
    /// Keys that are gone.
    pub removed: Vec<ResourceKey>,
    /// Whether a source's state or position differs.
    pub sources: bool,
}

impl Changes {
    /// Whether no resource and no source changed.
    pub fn is_empty(&self) -> bool {
        self.upserted.is_empty() && self.removed.is_empty() && !self.sources
    }

    /// Every key whose content changed, or that is gone.
    pub fn keys(&self) -> impl Iterator<Item = &ResourceKey> {
        self.upserted.iter().chain(&self.removed)
    }
}

impl Store {
    /// An empty store that knows of no source.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies a transaction. An upsert with the content that is there already changes nothing, not even
    /// the origin; so does the removal of what is not there.
    pub fn apply(&mut self, transaction: Transaction) -> Changes {
        let mut changes = Changes::default();
        for (key, _) in transaction.removals {
            self.remove(key, &mut changes);
        }
        for resource in transaction.upserts {
            self.upsert(resource, &mut changes);
        }
        for status in transaction.sources {
            changes.sources |= self.set_source(status);
        }
        changes
    }

    /// Replaces everything by what one Tower has, except that what comes from a source which that Tower
    /// is still loading, and has not got, stays: its absence says nothing.
    pub fn replace(&mut self, resources: Vec<Resource>, sources: Vec<v1::SourceStatus>) -> Changes {
        let mut changes = Changes::default();
        let named: BTreeSet<&ResourceKey> = resources.iter().map(Resource::key).collect();
        let loading: BTreeSet<&str> = sources
            .iter()
            .filter(|status| !is_complete(status.state()))
            .map(|status| status.source.as_str())
            .collect();
        let gone: Vec<ResourceKey> = self
            .resources
            .values()
            .filter(|held| !named.contains(held.key()) && !loading.contains(&*held.origin().source))
            .map(|held| held.key().clone())
            .collect();
        for key in gone {
            self.remove(key, &mut changes);
        }
        for resource in resources {
            self.upsert(resource, &mut changes);
        }
        let before = self.sources.len();
        self.sources.retain(|id, _| sources.iter().any(|status| status.source == **id));
        changes.sources |= self.sources.len() != before;
        for status in sources {
            changes.sources |= self.set_source(status);
        }
        changes
    }

    /// The resource of this key.
    pub fn get(&self, key: &ResourceKey) -> Option<&Resource> {
        self.resources.get(key)
    }

    /// All resources, by key.
    pub fn iter(&self) -> impl Iterator<Item = &Resource> {
        self.resources.values()
    }

    /// The resources of one kind and service.
    pub fn of_service<'a>(
        &'a self,
        scope: &str,
        kind: v1::Kind,
        service: &str,
    ) -> impl Iterator<Item = &'a Resource> + use<'a> {
        let first = ResourceKey::new(scope, kind, service, "");
        self.resources
            .range(first.clone()..)
            .take_while(move |(key, _)| {
                key.kind == first.kind && key.service == first.service && key.scope == first.scope
            })
            .map(|(_, resource)| resource)
    }

    /// The keys of all resources that come from a source.
    pub fn keys_from<'a>(&'a self, source: &str) -> impl Iterator<Item = &'a ResourceKey> {
        self.resources
            .iter()
            .filter(move |(_, resource)| *resource.origin().source == *source)
            .map(|(key, _)| key)
    }

    /// How many resources there are.
    pub fn len(&self) -> usize {
        self.resources.len()
    }

    /// Whether there is no resource.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// What is known of each source.
    pub fn sources(&self) -> impl Iterator<Item = &v1::SourceStatus> {
        self.sources.values()
    }

    /// The digest of all resources.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether there are sources, and each that is not optional has been read in full: only then does
    /// the absence of a resource mean anything.
    pub fn is_complete(&self) -> bool {
        !self.sources.is_empty()
            && self.sources.values().all(|status| status.optional || is_complete(status.state()))
    }

    fn upsert(&mut self, resource: Resource, changes: &mut Changes) {
        let held = self.resources.get(resource.key());
        if held.is_some_and(|held| held.version() == resource.version()) {
            return;
        }
        if let Some(held) = held {
            self.digest.remove(held.key(), held.version());
        }
        self.digest.add(resource.key(), resource.version());
        changes.upserted.push(resource.key().clone());
        self.resources.insert(resource.key().clone(), resource);
    }

    fn remove(&mut self, key: ResourceKey, changes: &mut Changes) {
        if let Some(held) = self.resources.remove(&key) {
            self.digest.remove(&key, held.version());
            changes.removed.push(key);
        }
    }

    fn set_source(&mut self, mut status: v1::SourceStatus) -> bool {
        if let Some(held) = self.sources.get(status.source.as_str())
            && is_complete(held.state())
            && !is_complete(status.state())
        {
            // Whoever says so is reading it again. What is held stays a whole state, if an old one.
            status.set_state(v1::SourceState::Stale);
            status.position.clone_from(&held.position);
        }
        match self.sources.get_mut(status.source.as_str()) {
            Some(held) if *held == status => false,
            Some(held) => {
                *held = status;
                true
            }
            None => {
                self.sources.insert(status.source.as_str().into(), status);
                true
            }
        }
    }
}

/// Whether a source in this state has been read in full, now or earlier.
pub fn is_complete(state: v1::SourceState) -> bool {
    match state {
        v1::SourceState::Unspecified | v1::SourceState::Loading => false,
        v1::SourceState::Live | v1::SourceState::Stale | v1::SourceState::Lost => true,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn endpoint(source: &str, name: &str, body: &'static str) -> Resource {
        Resource::new(
            ResourceKey::new("", v1::Kind::Endpoint, "web", name),
            Origin { source: source.into(), index: 1 },
            Bytes::from_static(body.as_bytes()),
        )
    }

    fn status(source: &str, state: v1::SourceState) -> v1::SourceStatus {
        v1::SourceStatus { source: source.into(), state: state.into(), ..Default::default() }
    }

    fn names(store: &Store) -> Vec<&str> {
        store.iter().map(|resource| &*resource.key().name).collect()
    }

    #[test]
    fn equal_content_is_no_change() {
        let mut store = Store::new();
        let add = Transaction { upserts: vec![endpoint("zk", "a", "1")], ..Default::default() };
        assert_eq!(store.apply(add.clone()).upserted.len(), 1);
        assert!(store.apply(add).is_empty());
        let gone = Origin { source: "zk".into(), index: 2 };
        let key = endpoint("zk", "b", "").key().clone();
        let remove = Transaction { removals: vec![(key, gone)], ..Default::default() };
        assert!(store.apply(remove).is_empty());
    }

    #[test]
    fn replacing_keeps_only_what_an_unfinished_source_may_still_bring() {
        let mut store = Store::new();
        store.apply(Transaction {
            upserts: vec![
                endpoint("files", "a", "1"),
                endpoint("gone", "b", "1"),
                endpoint("zk", "c", "1"),
                endpoint("zk", "d", "1"),
            ],
            sources: ["files", "gone", "zk"].map(|id| status(id, v1::SourceState::Live)).into(),
            ..Default::default()
        });
        let sources = vec![status("files", v1::SourceState::Live), status("zk", v1::SourceState::Loading)];
        store.replace(vec![endpoint("zk", "d", "2")], sources);
        assert_eq!(names(&store), ["c", "d"]);
        assert!(store.is_complete(), "an old state of a source is a state");
        assert_eq!(store.sources().last().unwrap().state(), v1::SourceState::Stale);
        assert_eq!(store.sources().count(), 2);

        store.replace(vec![], vec![status("zk", v1::SourceState::Live)]);
        assert!(store.is_empty() && store.is_complete());
        assert_eq!(store.digest(), Digest::default());
    }

    #[test]
    fn completeness_waits_for_every_source_that_is_not_optional() {
        let mut store = Store::new();
        assert!(!store.is_complete(), "no source is known yet");
        let mut optional = status("k8s", v1::SourceState::Loading);
        optional.optional = true;
        let sources = vec![optional, status("zk", v1::SourceState::Stale)];
        store.apply(Transaction { sources, ..Default::default() });
        assert!(store.is_complete());
    }

    #[test]
    fn the_resources_of_a_service_stand_together() {
        let mut store = Store::new();
        let key = |kind, service: &str| ResourceKey::new("", kind, service, "x");
        let origin = Origin { source: "zk".into(), index: 1 };
        let keys = [
            key(v1::Kind::Endpoint, "we"),
            key(v1::Kind::Endpoint, "web"),
            key(v1::Kind::Endpoint, "webs"),
            key(v1::Kind::Service, "web"),
        ];
        let upserts = keys.map(|key| Resource::new(key, origin.clone(), Bytes::new())).into();
        store.apply(Transaction { upserts, ..Default::default() });
        let found: Vec<_> = store.of_service("", v1::Kind::Endpoint, "web").collect();
        assert_eq!(found.len(), 1);
        assert_eq!(&*found[0].key().service, "web");
    }

    proptest! {
        #[test]
        fn the_digest_is_that_of_the_contents(steps in prop::collection::vec((0..6_u8, 0..3_u8), 0..60)) {
            let mut store = Store::new();
            for (name, body) in steps {
                let resource = endpoint("zk", &name.to_string(), ["", "1", "2"][usize::from(body)]);
                let transaction = if body == 0 {
                    let origin = resource.origin().clone();
                    Transaction { removals: vec![(resource.key().clone(), origin)], ..Default::default() }
                } else {
                    Transaction { upserts: vec![resource], ..Default::default() }
                };
                store.apply(transaction);
            }
            let mut digest = Digest::default();
            for resource in store.iter() {
                digest.add(resource.key(), resource.version());
            }
            prop_assert_eq!(store.digest(), digest);
        }
    }
}
