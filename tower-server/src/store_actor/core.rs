//! The store actor's logic, without the actor.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use bytes::Bytes;
use serde::Serialize;
use tower_common::{
    delivery::Scope,
    resource::{MAX_RESOURCE_BYTES, Origin, ResourceKey},
    served::Served,
    store::{Changes, Store, Transaction, is_complete},
    view::domains::{Domains, claim_of},
};
use tower_proto::v1;
use tracing::{info, warn};

use super::journal::Journal;
use crate::fanout::frame::{self, Parts};

/// The kinds of resources that make a service be there, for its domain.
const CLAIMING: [i32; 2] = [v1::Kind::Service as i32, v1::Kind::Assignment as i32];

/// A store with revisions.
#[derive(Debug)]
pub struct StoreCore {
    pub(super) scope: String,
    /// What Beacons are sent.
    pub(super) store: Store,
    /// What sources say of services that are not served.
    pub(super) watched: Store,
    served: Served,
    pub(super) revision: u64,
    pub(super) domains: Domains,
    pub(super) journal: Journal,
    /// The revision at which a source was last read for the first time.
    pub(super) last_load: u64,
    /// Operations that were refused because another source owns the key.
    clashes: u64,
    /// Resources that were refused because they are too large.
    oversized: u64,
}

/// How a store is.
#[derive(Debug, Clone, Serialize)]
pub struct StoreSummary {
    /// How many transactions have changed it.
    pub revision: u64,
    /// How many resources it holds.
    pub resources: usize,
    /// Whether every source that is not optional has been read.
    pub complete: bool,
    /// Operations refused because another source owns the key.
    pub clashes: u64,
    /// Resources refused because they are too large.
    pub oversized: u64,
}

impl StoreCore {
    /// An empty store of this scope, which serves everything.
    pub fn new(scope: &str) -> Self {
        Self::serving(scope, Served::All)
    }

    /// An empty store of this scope, which keeps what it does not serve from Beacons.
    pub fn serving(scope: &str, served: Served) -> Self {
        Self {
            scope: scope.to_owned(),
            store: Store::new(),
            watched: Store::new(),
            served,
            revision: 0,
            domains: Domains::default(),
            journal: Journal::default(),
            last_load: 0,
            clashes: 0,
            oversized: 0,
        }
    }

    /// What Beacons are sent.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Applies a transaction, and returns it as frames, unless it changes nothing that a Beacon must know
    /// at once: a position that moves alone is told by the next heartbeat.
    pub fn apply(&mut self, mut transaction: Transaction, now: Instant) -> Option<Vec<Bytes>> {
        self.refuse_large(&mut transaction);
        self.set_apart(&mut transaction);
        self.clashes += refuse_clashes(&self.store, &mut transaction);
        let origins: BTreeMap<ResourceKey, Origin> = transaction.removals.iter().cloned().collect();
        let sources: Vec<String> = transaction.sources.iter().map(|status| status.source.clone()).collect();
        let before = self.states(&sources);
        let changes = self.store.apply(transaction);
        let after = self.states(&sources);
        if changes.upserted.is_empty() && changes.removed.is_empty() && before == after {
            return None;
        }
        self.claim_domains(&changes);
        self.revision += 1;
        let complete = |states: &BTreeMap<String, v1::SourceState>, source: &String| {
            states.get(source).is_some_and(|state| is_complete(*state))
        };
        let loaded: Vec<String> = sources
            .iter()
            .filter(|source| complete(&after, source) && !complete(&before, source))
            .cloned()
            .collect();
        for source in &loaded {
            self.last_load = self.revision;
            if let Some(position) = self.store.source(source).and_then(|status| status.position.clone()) {
                self.journal.begin(position);
            }
        }
        let removals: Vec<_> = changes
            .removed
            .into_iter()
            .map(|key| {
                let origin = origins[&key].clone();
                (key, origin)
            })
            .collect();
        let mut upserted: BTreeSet<&ResourceKey> = changes.upserted.iter().collect();
        for source in &loaded {
            upserted.extend(self.store.keys_from(source));
        }
        let moved = self.store.sources().filter(|status| sources.contains(&status.source));
        let frames = frame::delivery(Parts {
            scope: if loaded.is_empty() { Scope::Changes } else { Scope::Sources(loaded) },
            from: self.revision - 1,
            to: self.revision,
            upserts: upserted.into_iter().filter_map(|key| self.store.get(key)).collect(),
            removals: removals.clone(),
            sources: moved.cloned().collect(),
            digest: self.store.digest(),
        });
        self.journal.record(self.revision, now, changes.upserted, removals);
        Some(frames)
    }

    /// A sign of life with a probe, or 0, as a frame.
    pub fn heartbeat(&self, probe: u64) -> Bytes {
        frame::framed(&v1::WatchResponse {
            heartbeat: Some(v1::Heartbeat {
                revision: self.revision,
                sources: self.store.sources().cloned().collect(),
                digest: Some(self.store.digest().to_proto()),
                probe,
            }),
            ..Default::default()
        })
    }

    /// How many transactions have changed the store.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How the store is.
    pub fn summary(&self) -> StoreSummary {
        StoreSummary {
            revision: self.revision,
            resources: self.store.len(),
            complete: self.store.is_complete(),
            clashes: self.clashes,
            oversized: self.oversized,
        }
    }

    /// A resource that no message can hold would cut off every Beacon. What was there before stays.
    fn refuse_large(&mut self, transaction: &mut Transaction) {
        let mut refused = 0;
        transaction.upserts.retain(|resource| {
            let bytes = resource.encoded().len();
            let fits = bytes <= MAX_RESOURCE_BYTES;
            if !fits {
                warn!(key = %resource.key(), bytes, limit = MAX_RESOURCE_BYTES, "a resource is too large");
                refused += 1;
            }
            fits
        });
        self.oversized += refused;
    }

    /// Keeps what Beacons are not sent where they do not see it: their deliveries, digests and revisions
    /// know nothing of it.
    fn set_apart(&mut self, transaction: &mut Transaction) {
        if self.served == Served::All {
            return;
        }
        let apart = |key: &ResourceKey| !self.served.covers(key);
        let mut watched = Transaction {
            upserts: transaction.upserts.extract_if(.., |resource| apart(resource.key())).collect(),
            removals: transaction.removals.extract_if(.., |(key, _)| apart(key)).collect(),
            sources: Vec::new(),
        };
        self.clashes += refuse_clashes(&self.watched, &mut watched);
        self.watched.apply(watched);
    }

    fn states(&self, sources: &[String]) -> BTreeMap<String, v1::SourceState> {
        let moved = self.store.sources().filter(|status| sources.contains(&status.source));
        moved.map(|status| (status.source.clone(), status.state())).collect()
    }

    fn claim_domains(&mut self, changes: &Changes) {
        let services = changes.keys().filter(|key| CLAIMING.contains(&key.kind));
        for service in services.map(|key| &key.service) {
            let claim = claim_of(&self.store, &self.scope, service);
            for affected in self.domains.claim(service, claim) {
                if let Some((_, error)) = self.domains.refused().find(|(name, _)| **name == affected) {
                    info!(service = &*affected, %error, "a service cannot be called by name");
                }
            }
        }
    }
}

/// A key belongs to the source that brought it first, until that source takes it back. Returns how many
/// operations were refused.
fn refuse_clashes(store: &Store, transaction: &mut Transaction) -> u64 {
    let mut clashes = 0;
    let mut owns = |key: &ResourceKey, source: &str| {
        let owner = store.get(key).map(|held| &*held.origin().source);
        let clash = owner.is_some_and(|owner| owner != source);
        if clash {
            warn!(%key, source, owner, "a source wants a key that another owns; the owner keeps it");
            clashes += 1;
        }
        !clash
    };
    transaction.upserts.retain(|resource| owns(resource.key(), &resource.origin().source));
    transaction.removals.retain(|(key, origin)| owns(key, &origin.source));
    clashes
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use tower_common::{
        clock,
        delivery::{Delivery, Event, Staging, verify},
        resource::Resource,
        standing::{Standing, standing},
    };

    use super::*;
    use crate::fanout::start::StartFrom;

    fn resource(kind: v1::Kind, source: &str, name: &str, body: &'static str) -> Resource {
        let key = ResourceKey::new("", kind, "web", name);
        let origin = Origin { source: source.into(), index: 1 };
        Resource::new(key, origin, Bytes::from_static(body.as_bytes()))
    }

    fn endpoint(source: &str, name: &str, body: &'static str) -> Resource {
        resource(v1::Kind::Endpoint, source, name, body)
    }

    fn status(state: v1::SourceState, index: u64) -> v1::SourceStatus {
        let position = v1::Position { source: "zk".into(), incarnation: "1".into(), index };
        v1::SourceStatus {
            source: "zk".into(),
            state: state.into(),
            position: Some(position),
            optional: false,
        }
    }

    fn apply(core: &mut StoreCore, transaction: Transaction) -> Option<Vec<Bytes>> {
        core.apply(transaction, clock::monotonic())
    }

    fn upsert(resources: &[Resource]) -> Transaction {
        Transaction { upserts: resources.to_vec(), ..Default::default() }
    }

    fn removal(resource: &Resource, source: &str) -> Transaction {
        let gone = Origin { source: source.into(), index: 2 };
        Transaction { removals: vec![(resource.key().clone(), gone)], ..Default::default() }
    }

    fn deliveries(frames: &[Bytes]) -> Vec<Delivery> {
        let mut staging = Staging::new();
        let welcome = v1::WatchResponse { welcome: Some(v1::Welcome::default()), ..Default::default() };
        staging.accept(welcome).unwrap();
        let mut deliveries = Vec::new();
        for frame in frames {
            let message = v1::WatchResponse::decode(frame.slice(5..)).unwrap();
            for event in staging.accept(message).unwrap() {
                if let Event::Delivery(delivery) = event {
                    deliveries.push(delivery);
                }
            }
        }
        deliveries
    }

    #[test]
    fn a_mirror_fed_with_frames_equals_the_store() {
        let mut core = StoreCore::new("");
        apply(
            &mut core,
            Transaction { sources: vec![status(v1::SourceState::Live, 1)], ..Default::default() },
        );
        apply(&mut core, upsert(&[endpoint("zk", "a", "1"), endpoint("zk", "b", "1")]));
        let mut frames = core.delivery_from(&StartFrom::Nothing);
        frames.extend(apply(&mut core, upsert(&[endpoint("zk", "a", "2")])).unwrap());
        frames.extend(apply(&mut core, removal(&endpoint("zk", "b", "1"), "zk")).unwrap());
        let mut mirror = Store::new();
        for delivery in deliveries(&frames) {
            let (revision, digest) = (delivery.to_revision, delivery.digest.clone());
            delivery.apply(&mut mirror, |_| Standing::Follow);
            verify(&mirror, revision, &digest).unwrap();
        }
        assert_eq!(mirror.digest(), core.store.digest());
        assert_eq!((mirror.len(), core.summary().revision), (1, 4));
    }

    #[test]
    fn the_first_whole_reading_of_a_source_replaces_what_mirrors_held_of_it() {
        let mut core = StoreCore::new("");
        let sources = |state| vec![status(state, 2)];
        apply(&mut core, Transaction { sources: sources(v1::SourceState::Loading), ..Default::default() });
        apply(&mut core, upsert(&[endpoint("zk", "a", "1")]));
        let frames = core.delivery_from(&StartFrom::Nothing);
        let mut mirror = Store::new();
        mirror.apply(Transaction {
            upserts: vec![endpoint("zk", "old", "1")],
            sources: vec![status(v1::SourceState::Live, 1)],
            ..Default::default()
        });
        let loaded = Transaction {
            upserts: vec![endpoint("zk", "b", "1")],
            sources: sources(v1::SourceState::Live),
            ..Default::default()
        };
        let frames = [frames, apply(&mut core, loaded).unwrap()].concat();
        let sizes: Vec<usize> = deliveries(&frames)
            .into_iter()
            .map(|delivery| {
                let offered = delivery.transaction.sources[0].clone();
                let held = mirror.source("zk").cloned();
                delivery.apply(&mut mirror, |_| standing(held.as_ref(), &offered));
                mirror.len()
            })
            .collect();
        assert_eq!(sizes, [1, 2], "the old one stays until the source has been read");
        assert_eq!(mirror.digest(), core.store.digest());
    }

    #[test]
    fn what_changes_nothing_is_not_sent() {
        let mut core = StoreCore::new("");
        let live =
            |index| Transaction { sources: vec![status(v1::SourceState::Live, index)], ..Default::default() };
        assert!(apply(&mut core, live(1)).is_some(), "a state is news");
        assert!(apply(&mut core, live(2)).is_none(), "a position alone is not");
        assert!(apply(&mut core, upsert(&[endpoint("zk", "a", "1")])).is_some());
        assert!(apply(&mut core, upsert(&[endpoint("zk", "a", "1")])).is_none());
        assert_eq!(core.summary().revision, 2);
        let heartbeat = v1::WatchResponse::decode(core.heartbeat(0).slice(5..)).unwrap().heartbeat.unwrap();
        assert_eq!(heartbeat.sources[0].position.as_ref().unwrap().index, 2);
    }

    #[test]
    fn a_key_belongs_to_the_source_that_brought_it() {
        let mut core = StoreCore::new("");
        apply(&mut core, upsert(&[endpoint("zk", "a", "1")]));
        assert!(apply(&mut core, upsert(&[endpoint("files", "a", "2")])).is_none());
        assert!(apply(&mut core, removal(&endpoint("zk", "a", "1"), "files")).is_none());
        assert_eq!(core.summary().clashes, 2);
        apply(&mut core, removal(&endpoint("zk", "a", "1"), "zk"));
        assert!(apply(&mut core, upsert(&[endpoint("files", "a", "2")])).is_some());
    }

    #[test]
    fn a_resource_that_no_message_can_hold_is_refused() {
        let mut core = StoreCore::new("");
        apply(&mut core, upsert(&[endpoint("zk", "a", "1")]));
        let large = Resource::new(
            endpoint("zk", "a", "").key().clone(),
            Origin { source: "zk".into(), index: 2 },
            vec![7; MAX_RESOURCE_BYTES].into(),
        );
        assert!(apply(&mut core, upsert(&[large])).is_none());
        assert_eq!((core.summary().oversized, core.summary().resources), (1, 1));
    }
}
