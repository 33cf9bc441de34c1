//! The mirror: a copy of Tower's store, and the composition that is served from it.
//!
//! It follows one Tower at a time, and never back in time: what a Tower says of a source is followed only
//! as far as that Tower has read it at least as far as the mirror. After each delivery the mirror's digest
//! is compared with Tower's. Where they differ without a reason the last state stays in service, and Tower
//! is asked, by the digests of buckets, for what makes them equal.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tokio::sync::watch;
use tower_common::{
    audience::NodeFacts,
    delivery::{self, Delivery, DeliveryError, Scope},
    digest::Buckets,
    served::Served,
    snapshot::Snapshot,
    standing::{Standing, standing},
    store::{Changes, Store, Transaction, is_complete},
    view::{Composition, composer::Composer},
};
use tower_proto::v1;

/// A store, in step with what is served.
#[derive(Debug)]
pub struct Mirror {
    store: Store,
    composer: Composer,
    composed: watch::Sender<Composition>,
    /// What has been applied and not yet composed.
    uncomposed: Changes,
    stream: Stream,
    /// The run of a Tower and its revision to which the store is equal.
    at: Option<(String, u64)>,
    /// What the Tower sends to which the store was last equal, or with which it was last compared.
    served: Option<Served>,
    /// The store could not be made equal to a Tower's: the next start is to take nothing from it.
    distrusted: bool,
    /// The store is from disk, and Tower may be about to tell what has changed since.
    held_back: bool,
    revision: u64,
    deliveries: u64,
}

/// What is known of the stream that is being followed.
#[derive(Debug, Default)]
struct Stream {
    /// The run of the Tower.
    tower: String,
    /// What it sends.
    served: Served,
    /// Whether something has been delivered.
    begun: bool,
    /// The sources that are not followed in everything.
    aside: BTreeMap<String, Standing>,
    /// The store is that of Tower, as of what was said last.
    equal: bool,
    /// The store differs from Tower's without a reason.
    differs: bool,
    /// Tower can be followed from here in what it could not before: it has read a source as far as the
    /// mirror, or sends services that the last one did not.
    caught_up: bool,
    /// Tower has been asked for what differs.
    comparing: bool,
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
    /// Whether the store is equal to that of the Tower that is followed. If not, sources are still being
    /// read or behind there, or the difference is being looked for.
    pub equal_to_tower: bool,
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
    /// An empty mirror of a scope, on this host.
    pub fn new(scope: &str, node: NodeFacts) -> Self {
        Self {
            store: Store::new(),
            composer: Composer::new(scope, node),
            composed: watch::Sender::new(Composition::default()),
            uncomposed: Changes::default(),
            stream: Stream::default(),
            at: None,
            served: None,
            distrusted: false,
            held_back: false,
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

    /// Whether the store is a state that may be served, and kept on disk.
    pub fn is_sound(&self) -> bool {
        !self.stream.differs && !self.distrusted
    }

    /// The revision of Tower that was applied last.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What a hello says of the mirror's state.
    pub fn introduce(&self, hello: &mut v1::Hello) {
        if self.distrusted {
            return;
        }
        hello.positions = self.positions();
        hello.digest = Some(self.store.digest().to_proto());
        if let Some((tower, revision)) = &self.at {
            hello.tower.clone_from(tower);
            hello.revision = *revision;
        }
    }

    /// How far each source has been read.
    pub fn positions(&self) -> Vec<v1::Position> {
        self.store.sources().filter_map(|status| status.position.clone()).collect()
    }

    /// The digests of the store's buckets.
    pub fn buckets(&self, count: u32) -> v1::Buckets {
        Buckets::of(self.store.iter(), count).to_proto()
    }

    /// Whether Tower is to be asked now for what differs; it counts as asked then.
    pub fn take_comparison(&mut self) -> Option<v1::Buckets> {
        let wanted = (self.stream.differs || self.stream.caught_up) && !self.stream.comparing;
        self.stream.comparing |= wanted;
        wanted.then(|| self.buckets(Buckets::count_for(self.store.len())))
    }

    /// Starts from a snapshot. To be called before anything is delivered. It is held back until
    /// [`Mirror::serve_from_disk`], or until Tower has delivered: an Envoy that has newer endpoints than
    /// the disk is not to be given old ones for the moment that Tower needs to answer.
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
        let everything = Changes {
            upserted: self.store.iter().map(|resource| resource.key().clone()).collect(),
            removed: Vec::new(),
            sources: true,
        };
        self.uncomposed.merge(everything);
        self.held_back = true;
    }

    /// Serves what was restored, as Tower does not answer.
    pub fn serve_from_disk(&mut self) {
        if std::mem::take(&mut self.held_back) {
            self.flush();
        }
    }

    /// A stream begins.
    pub fn begin(&mut self, welcome: v1::Welcome) {
        let served = Served::from_proto(welcome.served);
        self.stream = Stream { tower: welcome.tower, served, ..Stream::default() };
    }

    /// Whether this Tower's delivery, which was staged aside, brings the mirror at least to where it is: the
    /// stream of the Tower that is followed may then be left without missing anything.
    pub fn can_go_on_with(&self, welcome: &v1::Welcome, delivery: &Delivery) -> bool {
        if welcome.tower == self.stream.tower {
            return delivery.to_revision >= self.revision;
        }
        let behind = |offered: &v1::SourceStatus| {
            standing(self.store.source(&offered.source), offered) == Standing::Ignore
        };
        self.store.digest() == delivery.digest || !delivery.transaction.sources.iter().any(behind)
    }

    /// Goes on with another stream, whose first delivery was staged while this one was still applied.
    pub fn hand_over(&mut self, welcome: v1::Welcome, delivery: Delivery) {
        self.begin(welcome);
        // The start was made for an earlier store. If something differs for that reason it is no failure, but
        // is asked for.
        let _ = self.take(delivery, false);
    }

    /// Applies a delivery, to be served with the next [`Mirror::flush`]. Returns whether the store changed.
    ///
    /// # Errors
    /// If the store cannot be made equal to Tower's. The last state is served until another stream has
    /// delivered everything.
    pub fn deliver(&mut self, delivery: Delivery) -> Result<bool, DeliveryError> {
        let compared = matches!(delivery.scope, Scope::Everything | Scope::Buckets { .. });
        self.take(delivery, compared)
    }

    /// After a delivery that is `compared`, and made for the store as it is, nothing may differ.
    fn take(&mut self, delivery: Delivery, compared: bool) -> Result<bool, DeliveryError> {
        let whole = match &delivery.scope {
            Scope::Everything | Scope::Buckets { .. } => true,
            Scope::Changes | Scope::Sources(_) => !self.stream.begun,
        };
        let sources = delivery.transaction.sources.clone();
        // Who has followed a source on this stream goes on doing so.
        let mut undecided: BTreeSet<String> = BTreeSet::new();
        if whole {
            undecided.extend(std::mem::take(&mut self.stream.aside).into_keys());
            self.stream.caught_up = false;
            self.stream.comparing = false;
        }
        let newly_read = |source: &String| match &delivery.scope {
            Scope::Sources(read) => read.contains(source),
            Scope::Everything | Scope::Buckets { .. } | Scope::Changes => false,
        };
        for offered in &sources {
            let first = !self.stream.begun || newly_read(&offered.source);
            // From an equal store it can be followed as soon as it is as far.
            let kept = self.stream.equal && self.stream.aside.contains_key(&offered.source);
            if first || kept || undecided.contains(&offered.source) {
                self.stand(offered);
            }
        }
        self.note_caught_up(&sources);
        let mut changes = Changes::default();
        if !self.stream.begun {
            changes = self.drop_unserved();
            // How far sources have been read does not tell what of them this Tower sends.
            self.stream.caught_up |= self.served.as_ref() != Some(&self.stream.served);
        }
        if compared {
            self.served = Some(self.stream.served.clone());
        }
        self.stream.begun = true;
        let (revision, digest) = (delivery.to_revision, delivery.digest.clone());
        let aside = &self.stream.aside;
        let standing = |source: &str| {
            // After a store that cannot be trusted nothing in it is worth keeping.
            if self.distrusted {
                return Standing::Follow;
            }
            aside.get(source).copied().unwrap_or(Standing::Follow)
        };
        changes.merge(delivery.apply(&mut self.store, standing));
        let changed = !changes.is_empty();
        self.uncomposed.merge(changes);
        self.revision = revision;
        self.deliveries += 1;
        self.distrusted &= !compared;
        self.held_back = false;
        self.settle(revision, &digest, &sources, compared)?;
        Ok(changed)
    }

    /// Takes a heartbeat. Returns whether the state or position of a source changed.
    ///
    /// # Errors
    /// If a delivery got lost, or the store cannot be made equal to Tower's.
    pub fn heartbeat(&mut self, heartbeat: v1::Heartbeat) -> Result<bool, DeliveryError> {
        let v1::Heartbeat { revision, sources, digest, probe: _ } = heartbeat;
        if revision != self.revision {
            return Err(DeliveryError::Gap { from: revision, held: self.revision });
        }
        self.note_caught_up(&sources);
        let followed = sources.iter().filter(|status| !self.stream.aside.contains_key(&status.source));
        let moved = Transaction { sources: followed.cloned().collect(), ..Transaction::default() };
        let changes = self.store.apply(moved);
        let moved = changes.sources;
        self.uncomposed.merge(changes);
        self.settle(revision, &digest.unwrap_or_default(), &sources, false)?;
        Ok(moved)
    }

    /// For people.
    pub fn summary(&self) -> MirrorSummary {
        let composition = self.composer.composition();
        let refused = self
            .composer
            .refused()
            .map(|(service, error)| Refused { service: service.to_string(), reason: error.to_string() });
        MirrorSummary {
            complete: self.composed.borrow().complete,
            revision: self.revision,
            deliveries: self.deliveries,
            resources: self.store.len(),
            services: composition.clusters.keys().filter(|name| !name.contains('/')).count(),
            refused: refused.collect(),
            sources: self.store.sources().map(source_summary).collect(),
            equal_to_tower: self.at.as_ref().is_some_and(|(tower, _)| *tower == self.stream.tower),
        }
    }

    /// Drops what this Tower does not send, however far it has read its sources.
    fn drop_unserved(&mut self) -> Changes {
        let served = &self.stream.served;
        let unserved = self.store.iter().filter(|held| !served.covers(held.key()));
        let removals = unserved.map(|held| (held.key().clone(), held.origin().clone())).collect();
        self.store.apply(Transaction { removals, ..Transaction::default() })
    }

    /// Decides how far a source is followed.
    fn stand(&mut self, offered: &v1::SourceStatus) {
        match standing(self.store.source(&offered.source), offered) {
            Standing::Follow => self.stream.aside.remove(&offered.source),
            aside @ (Standing::Keep | Standing::Ignore) => {
                self.stream.aside.insert(offered.source.clone(), aside)
            }
        };
    }

    /// Notes if Tower has now read a source far enough for it to be followed.
    fn note_caught_up(&mut self, sources: &[v1::SourceStatus]) {
        for offered in sources {
            let now = standing(self.store.source(&offered.source), offered);
            let moved = match self.stream.aside.get(&offered.source) {
                None => false,
                Some(Standing::Ignore) => now != Standing::Ignore,
                Some(Standing::Keep | Standing::Follow) => now == Standing::Follow,
            };
            self.stream.caught_up |= moved;
        }
    }

    /// Compares with Tower, and draws the conclusions.
    fn settle(
        &mut self,
        revision: u64,
        digest: &v1::Digest,
        sources: &[v1::SourceStatus],
        compared: bool,
    ) -> Result<(), DeliveryError> {
        let stream = &mut self.stream;
        let equal = delivery::verify(&self.store, revision, digest);
        stream.equal = equal.is_ok();
        if stream.equal {
            // There is nothing to keep aside, but what a Tower that is behind, or still reading, will yet say.
            stream.aside.retain(|_, aside| *aside == Standing::Ignore);
            for offered in sources {
                if standing(self.store.source(&offered.source), offered) != Standing::Ignore {
                    stream.aside.remove(&offered.source);
                }
            }
            stream.differs = false;
            stream.caught_up = false;
            self.distrusted = false;
            self.at = Some((stream.tower.clone(), revision));
            self.served = Some(stream.served.clone());
            let moved = sources.iter().cloned().map(|mut offered| {
                if stream.aside.contains_key(&offered.source) {
                    let held = self.store.source(&offered.source);
                    offered.position = held.and_then(|held| held.position.clone());
                }
                offered
            });
            let moved = Transaction { sources: moved.collect(), ..Transaction::default() };
            self.uncomposed.merge(self.store.apply(moved));
        } else {
            self.at = None;
            // What is kept from a Tower that is behind, or still reading what is known here, may differ.
            let explained = !stream.aside.is_empty();
            stream.differs = !explained;
            if !explained && compared {
                self.distrusted = true;
                return equal;
            }
        }
        Ok(())
    }

    /// Composes what has been applied since the last time, and serves it, if it may be served and is news.
    /// Returns whether there is something that the disk should have: positions that move alone do not count.
    pub fn flush(&mut self) -> bool {
        let changes = std::mem::take(&mut self.uncomposed);
        let changed = !changes.upserted.is_empty() || !changes.removed.is_empty();
        if !changes.is_empty() {
            self.composer.update(&self.store, &changes);
        }
        if !self.is_sound() || self.held_back {
            return changed;
        }
        let composition = self.composer.composition();
        let served_anew = self.composed.send_if_modified(|served| {
            let news = !served.is_same(composition);
            if news {
                served.clone_from(composition);
            }
            news
        });
        changed || served_anew
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
mod tests;
