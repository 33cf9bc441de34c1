//! The mirror: a copy of Tower's store, and the composition that is served from it.

use std::collections::BTreeSet;

use serde::Serialize;
use tokio::sync::watch;
use tower_common::{
    delivery::{self, Delivery, DeliveryError},
    snapshot::Snapshot,
    store::{Changes, Store, Transaction, is_complete},
    view::{Composition, composer::Composer},
};
use tower_proto::v1;

/// A store, always in step with what is served.
#[derive(Debug)]
pub struct Mirror {
    scope: String,
    store: Store,
    composer: Composer,
    composed: watch::Sender<Composition>,
    /// Sources that the Tower of the current stream is still reading.
    loading: BTreeSet<String>,
    revision: u64,
    deliveries: u64,
}

/// A mirror, for people.
#[derive(Debug, Clone, Serialize)]
pub struct MirrorSummary {
    /// Whether there is a whole state to serve.
    pub complete: bool,
    /// The revision of Tower that was applied last; 0 before the first.
    pub revision: u64,
    /// Deliveries applied since the start.
    pub deliveries: u64,
    /// Resources held.
    pub resources: usize,
    /// Services served.
    pub services: usize,
    /// Services that cannot be called by name, and why.
    pub refused: Vec<Refused>,
    /// What Tower says of its sources.
    pub sources: Vec<SourceSummary>,
}

/// A service that cannot be called by name.
#[derive(Debug, Clone, Serialize)]
pub struct Refused {
    /// The service.
    pub service: String,
    /// Why.
    pub reason: String,
}

/// What Tower says of a source.
#[derive(Debug, Clone, Serialize)]
pub struct SourceSummary {
    /// The source's id.
    pub id: String,
    /// Its state.
    pub state: &'static str,
    /// Which history its index counts in.
    pub incarnation: String,
    /// How far it has been read.
    pub index: u64,
}

impl Mirror {
    /// An empty mirror of a scope.
    pub fn new(scope: &str) -> Self {
        Self {
            scope: scope.to_owned(),
            store: Store::new(),
            composer: Composer::new(scope),
            composed: watch::Sender::new(Composition::default()),
            loading: BTreeSet::new(),
            revision: 0,
            deliveries: 0,
        }
    }

    /// What is served, and every later state of it.
    pub fn compositions(&self) -> watch::Receiver<Composition> {
        self.composed.subscribe()
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The revision of Tower that was applied last.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Starts from a snapshot. To be called before anything is delivered.
    pub fn restore(&mut self, snapshot: Snapshot) {
        self.store = snapshot.store;
        let stale = self.store.sources().cloned().map(|mut status| {
            if is_complete(status.state()) {
                status.set_state(v1::SourceState::Stale);
            }
            status
        });
        let sources = stale.collect();
        self.store.apply(Transaction { sources, ..Transaction::default() });
        self.compose_anew();
    }

    /// Applies a delivery and serves it. Returns whether the store changed.
    ///
    /// # Errors
    /// If the store is then not what Tower has. It must be fetched again in full; until then the last
    /// state is served.
    pub fn deliver(&mut self, delivery: Delivery) -> Result<bool, DeliveryError> {
        if delivery.full {
            self.loading.clear();
        }
        self.note_loading(&delivery.transaction.sources);
        let (full, revision) = (delivery.full, delivery.to_revision);
        let digest = delivery.digest.clone();
        let changes = delivery.apply(&mut self.store);
        if self.loading.is_empty() {
            delivery::verify(&self.store, revision, &digest)?;
        }
        self.revision = revision;
        self.deliveries += 1;
        if full {
            // Whatever a delivery that failed verification has left behind ends here.
            self.compose_anew();
        } else {
            self.compose(&changes);
        }
        Ok(!changes.is_empty())
    }

    /// Takes a heartbeat. Returns whether a source's state or position moved.
    ///
    /// # Errors
    /// If the store is not what Tower has, as with a delivery.
    pub fn heartbeat(&mut self, heartbeat: v1::Heartbeat) -> Result<bool, DeliveryError> {
        self.note_loading(&heartbeat.sources);
        if heartbeat.revision != self.revision {
            return Err(DeliveryError::Gap { from: heartbeat.revision, held: Some(self.revision) });
        }
        if self.loading.is_empty() {
            let digest = heartbeat.digest.unwrap_or_default();
            delivery::verify(&self.store, heartbeat.revision, &digest)?;
        }
        let moved = Transaction { sources: heartbeat.sources, ..Transaction::default() };
        let changes = self.store.apply(moved);
        self.compose(&changes);
        Ok(changes.sources)
    }

    /// For people.
    pub fn summary(&self) -> MirrorSummary {
        let composition = self.composer.composition();
        let refused = self
            .composer
            .refused()
            .map(|(service, error)| Refused { service: service.to_string(), reason: error.to_string() });
        MirrorSummary {
            complete: composition.complete,
            revision: self.revision,
            deliveries: self.deliveries,
            resources: self.store.len(),
            services: composition.clusters.len(),
            refused: refused.collect(),
            sources: self.store.sources().map(source_summary).collect(),
        }
    }

    fn note_loading(&mut self, sources: &[v1::SourceStatus]) {
        for status in sources {
            if is_complete(status.state()) {
                self.loading.remove(&status.source);
            } else {
                self.loading.insert(status.source.clone());
            }
        }
    }

    fn compose(&mut self, changes: &Changes) {
        if self.composer.update(&self.store, changes) {
            self.composed.send_replace(self.composer.composition().clone());
        }
    }

    fn compose_anew(&mut self) {
        let everything = Changes {
            upserted: self.store.iter().map(|resource| resource.key().clone()).collect(),
            removed: Vec::new(),
            sources: true,
        };
        let mut composer = Composer::new(&self.scope);
        composer.update(&self.store, &everything);
        // What has not changed keeps its place in memory: streams tell by that that it has not.
        composer.adopt_equal_layers(self.composer.composition());
        self.composer = composer;
        self.composed.send_replace(self.composer.composition().clone());
    }
}

fn source_summary(status: &v1::SourceStatus) -> SourceSummary {
    let position = status.position.clone().unwrap_or_default();
    SourceSummary {
        id: status.source.clone(),
        state: status.state().as_str_name().trim_start_matches("SOURCE_STATE_"),
        incarnation: position.incarnation,
        index: position.index,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message;
    use tower_common::resource::{Origin, Resource, ResourceKey};

    use super::*;

    fn endpoint(service: &str, address: &str) -> Resource {
        let body = v1::Endpoint { address: address.into(), port: 80, ..Default::default() };
        let key = ResourceKey::new("", v1::Kind::Endpoint, service, address);
        let origin = Origin { source: "zk".into(), index: 5 };
        Resource::new(key, origin, Bytes::from(body.encode_to_vec()))
    }

    fn status(state: v1::SourceState) -> v1::SourceStatus {
        v1::SourceStatus { source: "zk".into(), state: state.into(), ..Default::default() }
    }

    /// Everything that a Tower has.
    fn full(state: v1::SourceState, resources: Vec<Resource>) -> Delivery {
        let mut store = Store::new();
        let sources = vec![status(state)];
        store.replace(resources.clone(), sources.clone());
        Delivery {
            full: true,
            transaction: Transaction { upserts: resources, sources, ..Default::default() },
            to_revision: 1,
            digest: store.digest().to_proto(),
            ..Default::default()
        }
    }

    fn services(mirror: &Mirror) -> Vec<String> {
        mirror.compositions().borrow().clusters.keys().map(|name| name.to_string()).collect()
    }

    #[test]
    fn nothing_is_complete_before_a_source_is() {
        let mut mirror = Mirror::new("");
        assert!(!mirror.compositions().borrow().complete);
        mirror.deliver(full(v1::SourceState::Loading, vec![])).unwrap();
        assert!(!mirror.compositions().borrow().complete);
        mirror.deliver(full(v1::SourceState::Live, vec![])).unwrap();
        assert!(mirror.compositions().borrow().complete);
    }

    #[test]
    fn a_restarted_tower_that_is_still_loading_takes_nothing_away() {
        let mut mirror = Mirror::new("");
        mirror.deliver(full(v1::SourceState::Live, vec![endpoint("web", "10.0.0.1")])).unwrap();
        mirror.deliver(full(v1::SourceState::Loading, vec![])).unwrap();
        assert_eq!(services(&mirror), ["web"]);
        assert!(mirror.compositions().borrow().complete);
    }

    #[test]
    fn what_differs_from_tower_is_not_served_and_healed_by_a_full_delivery() {
        let mut mirror = Mirror::new("");
        mirror.deliver(full(v1::SourceState::Live, vec![endpoint("web", "10.0.0.1")])).unwrap();
        let mut wrong = full(v1::SourceState::Live, vec![endpoint("api", "10.0.0.1")]);
        wrong.digest = v1::Digest::default();
        assert!(mirror.deliver(wrong).is_err());
        assert_eq!(services(&mirror), ["web"]);
        mirror.deliver(full(v1::SourceState::Live, vec![endpoint("api", "10.0.0.1")])).unwrap();
        assert_eq!(services(&mirror), ["api"]);
    }

    #[test]
    fn a_full_delivery_of_the_same_changes_nothing_for_clients() {
        let mut mirror = Mirror::new("");
        let delivery = || full(v1::SourceState::Live, vec![endpoint("web", "10.0.0.1")]);
        mirror.deliver(delivery()).unwrap();
        let before = mirror.compositions().borrow().clone();
        mirror.deliver(delivery()).unwrap();
        let after = mirror.compositions().borrow().clone();
        assert!(std::sync::Arc::ptr_eq(&before.clusters, &after.clusters));
        assert!(std::sync::Arc::ptr_eq(&before.virtual_hosts, &after.virtual_hosts));
    }

    #[test]
    fn a_heartbeat_moves_positions_and_notices_a_gap() {
        let mut mirror = Mirror::new("");
        mirror.deliver(full(v1::SourceState::Live, vec![])).unwrap();
        let mut moved = status(v1::SourceState::Live);
        moved.position = Some(v1::Position { index: 9, ..Default::default() });
        let digest = Some(mirror.store().digest().to_proto());
        let heartbeat = v1::Heartbeat { revision: 1, sources: vec![moved], digest };
        assert!(mirror.heartbeat(heartbeat.clone()).unwrap());
        assert_eq!(mirror.summary().sources[0].index, 9);
        assert!(mirror.heartbeat(v1::Heartbeat { revision: 2, ..heartbeat }).is_err());
    }
}
