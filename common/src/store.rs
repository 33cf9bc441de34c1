//! The store: the resources and the state of the sources, and nothing else. The same in Tower and Beacon.

use std::{collections::BTreeMap, sync::Arc};

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

    /// Adds later changes.
    pub fn merge(&mut self, later: Self) {
        self.upserted.extend(later.upserted);
        self.removed.extend(later.removed);
        self.sources |= later.sources;
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

    /// Forgets every source but these. What they brought is removed by a transaction.
    pub fn retain_sources(&mut self, wanted: impl Fn(&str) -> bool) {
        self.sources.retain(|id, _| wanted(id));
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

    /// The resources of one kind, by service.
    pub fn of_kind<'a>(
        &'a self,
        scope: &str,
        kind: v1::Kind,
    ) -> impl Iterator<Item = &'a Resource> + use<'a> {
        let first = ResourceKey::new(scope, kind, "", "");
        self.resources
            .range(first.clone()..)
            .take_while(move |(key, _)| key.kind == first.kind && key.scope == first.scope)
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

    /// What is known of a source.
    pub fn source(&self, id: &str) -> Option<&v1::SourceStatus> {
        self.sources.get(id)
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
    fn a_source_that_is_read_again_stays_a_whole_if_an_old_one() {
        let mut store = Store::new();
        let apply = |store: &mut Store, state| {
            store.apply(Transaction { sources: vec![status("zk", state)], ..Default::default() });
        };
        apply(&mut store, v1::SourceState::Live);
        apply(&mut store, v1::SourceState::Loading);
        assert!(store.is_complete());
        assert_eq!(store.source("zk").unwrap().state(), v1::SourceState::Stale);
        store.retain_sources(|id| id != "zk");
        assert_eq!(store.sources().count(), 0);
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
        assert_eq!(store.of_kind("", v1::Kind::Endpoint).count(), 3);
        assert_eq!(store.of_kind("eu", v1::Kind::Endpoint).count(), 0);
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
