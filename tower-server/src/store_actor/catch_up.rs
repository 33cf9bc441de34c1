//! What a Beacon is sent when its stream begins, or has fallen behind: as little as can be told to be
//! enough.
//!
//! 1. It was at a revision of this run: what changed since.
//! 2. Its digest is Tower's: nothing.
//! 3. All that was removed after its positions is still known: what its sources said since.
//! 4. Otherwise it is asked for the digests of its buckets, and sent those that differ.
//! 5. It has nothing, or so little that asking costs as much: everything.
//!
//! Whatever was chosen, the digest of the delivery tells the Beacon whether it was right; if not, it asks by
//! its buckets.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;
use tower_common::{
    delivery::Scope,
    digest::{Buckets, bucket_of},
    resource::{Resource, ResourceKey},
    store::is_complete,
};
use tower_proto::v1;

use super::core::StoreCore;
use crate::fanout::{
    frame::{self, Parts},
    start::StartFrom,
};

/// A smaller store is sent whole rather than asked for.
const SMALL_STORE: usize = 256;

/// What a Beacon says of its state.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The revision of this run that it is at.
    pub revision: Option<u64>,
    /// The digest of its store; `None` if it has none that can be trusted.
    pub digest: Option<v1::Digest>,
    /// How far it has read each source.
    pub positions: Vec<v1::Position>,
}

/// How a Beacon gets to Tower's state.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It is there.
    There,
    /// By a delivery.
    From(StartFrom),
    /// It must first say where it differs, in so many buckets.
    Ask(u32),
}

impl StoreCore {
    /// How a Beacon gets here from the state that it describes.
    pub(super) fn way(&self, ask: &Ask) -> Way {
        if let Some(revision) = ask.revision {
            let known = (self.last_load..=self.revision).contains(&revision)
                && self.journal.since_revision(revision).is_some();
            return Way::From(if known { StartFrom::Revision(revision) } else { StartFrom::Nothing });
        }
        let Some(digest) = ask.digest.as_ref().filter(|digest| digest.resources > 0) else {
            return Way::From(StartFrom::Nothing);
        };
        if self.store.digest() == *digest {
            return Way::There;
        }
        if self.store.len() <= SMALL_STORE {
            return Way::From(StartFrom::Nothing);
        }
        match self.comparable(&ask.positions) {
            Some(positions) if self.journal.removed_since(&positions).is_some() => {
                Way::From(StartFrom::Positions(encode(&ask.positions)))
            }
            _ => Way::Ask(Buckets::count_for(self.store.len())),
        }
    }

    /// The delivery that leads from a state to this one.
    pub fn delivery_from(&self, from: &StartFrom) -> Vec<Bytes> {
        match from {
            StartFrom::Nothing => {
                self.delivery(Scope::Everything, 0, self.store.iter().collect(), &BTreeSet::new())
            }
            StartFrom::Revision(revision) => {
                let keys = self.journal.since_revision(*revision).unwrap_or_default();
                self.differences(*revision, &keys)
            }
            StartFrom::Positions(encoded) => {
                let positions = decode(encoded);
                let positions = self.comparable(&positions).unwrap_or_default();
                let mut keys = self.journal.removed_since(&positions).unwrap_or_default();
                keys.extend(self.store.iter().filter_map(|resource| {
                    let position = positions.get(&*resource.origin().source)?;
                    (resource.origin().index > position.index).then(|| resource.key())
                }));
                self.differences(0, &keys)
            }
            StartFrom::Buckets(sums) => {
                let theirs = Buckets::from_proto(&v1::Buckets { sums: sums.clone() });
                let Some(theirs) = theirs else { return self.delivery_from(&StartFrom::Nothing) };
                let count = theirs.count();
                let numbers = Buckets::of(self.store.iter(), count).differing(&theirs);
                let wanted: BTreeSet<u32> = numbers.iter().copied().collect();
                let upserts = self.store.iter().filter(|held| wanted.contains(&bucket_of(held.key(), count)));
                self.delivery(Scope::Buckets { count, numbers }, 0, upserts.collect(), &BTreeSet::new())
            }
        }
    }

    /// What has changed since a revision that all readers of the log are at, each key once.
    pub(super) fn flush(&self, since: u64) -> Vec<Bytes> {
        match self.journal.since_revision(since) {
            Some(keys) => self.differences(since, &keys),
            // More has changed at once than the journal holds.
            None => self.delivery_from(&StartFrom::Nothing),
        }
    }

    /// The delivery for a Beacon that is here already.
    pub(super) fn nothing_new(&self) -> Vec<Bytes> {
        self.delivery(Scope::Changes, 0, Vec::new(), &BTreeSet::new())
    }

    fn differences(&self, from: u64, keys: &BTreeSet<&ResourceKey>) -> Vec<Bytes> {
        let upserts = keys.iter().filter_map(|key| self.store.get(key)).collect();
        let gone = keys.iter().copied().filter(|key| self.store.get(key).is_none()).collect();
        self.delivery(Scope::Changes, from, upserts, &gone)
    }

    /// For a receiver `from` matters only in changes that are not the first delivery of their stream. What is
    /// gone went after it.
    fn delivery(
        &self,
        scope: Scope,
        from: u64,
        upserts: Vec<&Resource>,
        gone: &BTreeSet<&ResourceKey>,
    ) -> Vec<Bytes> {
        let removals = self.journal.removals(from, gone);
        frame::delivery(Parts {
            scope,
            from,
            to: self.revision,
            upserts,
            removals: removals.into_iter().map(|(key, origin)| (key.clone(), origin.clone())).collect(),
            sources: self.store.sources().cloned().collect(),
            digest: self.store.digest(),
        })
    }

    /// The positions from which a difference can be told: those of sources that Tower has read further. One
    /// that Tower is still reading, or has read less far, is not followed by the Beacon in any case. `None`
    /// if the Beacon holds something of which Tower knows nothing.
    fn comparable<'a>(&self, positions: &'a [v1::Position]) -> Option<BTreeMap<&'a str, &'a v1::Position>> {
        let mut comparable = BTreeMap::new();
        for position in positions {
            let status = self.store.source(&position.source)?;
            let ours = status.position.as_ref().filter(|_| is_complete(status.state()));
            let behind = ours
                .is_none_or(|ours| ours.incarnation == position.incarnation && ours.index < position.index);
            if !behind {
                comparable.insert(position.source.as_str(), position);
            }
        }
        let untold = self.store.sources().any(|status| {
            is_complete(status.state()) && !positions.iter().any(|position| position.source == status.source)
        });
        (!untold).then_some(comparable)
    }
}

/// Positions as one value that can be compared.
fn encode(positions: &[v1::Position]) -> Vec<u8> {
    let mut positions = positions.to_vec();
    positions.sort_by(|a, b| a.source.cmp(&b.source));
    v1::Hello { positions, ..Default::default() }.encode_to_vec()
}

fn decode(encoded: &[u8]) -> Vec<v1::Position> {
    v1::Hello::decode(encoded).expect("it was encoded here").positions
}

#[cfg(test)]
mod tests {
    use tower_common::{
        clock,
        delivery::{Event, Staging, verify},
        resource::Origin,
        standing::{Standing, standing},
        store::{Store, Transaction},
    };

    use super::*;

    fn status(index: u64) -> v1::SourceStatus {
        let position = v1::Position { source: "zk".into(), incarnation: "1".into(), index };
        let state = v1::SourceState::Live.into();
        v1::SourceStatus { source: "zk".into(), state, position: Some(position), optional: false }
    }

    fn endpoint(name: &str, index: u64) -> Resource {
        let key = ResourceKey::new("", v1::Kind::Endpoint, "web", name);
        let origin = Origin { source: "zk".into(), index };
        Resource::new(key, origin, index.to_string().into_bytes().into())
    }

    /// A Tower that has read `count` endpoints at position 10.
    fn tower(count: usize) -> StoreCore {
        let mut core = StoreCore::new("");
        let upserts = (0..count).map(|number| endpoint(&number.to_string(), 5)).collect();
        publish(&mut core, upserts, &[], 10);
        core
    }

    fn publish(core: &mut StoreCore, upserts: Vec<Resource>, gone: &[Resource], index: u64) {
        let origin = Origin { source: "zk".into(), index };
        let removals = gone.iter().map(|resource| (resource.key().clone(), origin.clone())).collect();
        let transaction = Transaction { upserts, removals, sources: vec![status(index)] };
        core.apply(transaction, clock::monotonic());
    }

    #[test]
    fn a_flush_is_what_changed_since_the_last_one_each_key_once() {
        let mut core = tower(300);
        let mut mirror = mirror(&core);
        let sent = core.revision();
        publish(&mut core, vec![endpoint("1", 11), endpoint("2", 11), endpoint("new", 11)], &[], 11);
        publish(&mut core, vec![endpoint("1", 12)], &[endpoint("2", 0), endpoint("3", 0)], 12);
        publish(&mut core, vec![endpoint("3", 13)], &[endpoint("new", 0)], 13);
        let frames = core.flush(sent);
        let message = v1::WatchResponse::decode(frames[0].slice(5..)).unwrap();
        assert_eq!((message.upserts.len(), message.removals.len()), (2, 2));
        assert_eq!(message.begin.unwrap().from_revision, sent);
        follow(&mut mirror, &frames);
        verify(&mirror, core.revision(), &core.store.digest().to_proto()).unwrap();
    }

    fn mirror(core: &StoreCore) -> Store {
        let mut store = Store::new();
        follow(&mut store, &core.delivery_from(&StartFrom::Nothing));
        store
    }

    /// Applies a delivery as the first of a stream, and returns its size.
    fn follow(store: &mut Store, frames: &[Bytes]) -> usize {
        let mut staging = Staging::new();
        let welcome = v1::WatchResponse { welcome: Some(v1::Welcome::default()), ..Default::default() };
        staging.accept(welcome).unwrap();
        for frame in frames {
            let message = v1::WatchResponse::decode(frame.slice(5..)).unwrap();
            for event in staging.accept(message).unwrap() {
                let Event::Delivery(delivery) = event else { panic!("{event:?}") };
                let offered = delivery.transaction.sources.clone();
                let held: BTreeMap<_, _> =
                    store.sources().map(|status| (status.source.clone(), status.clone())).collect();
                delivery.apply(store, |source| {
                    let offered = offered.iter().find(|status| status.source == source);
                    offered.map_or(Standing::Follow, |offered| standing(held.get(source), offered))
                });
            }
        }
        frames.iter().map(Bytes::len).sum()
    }

    fn ask(store: &Store, revision: Option<u64>) -> Ask {
        Ask {
            revision,
            digest: Some(store.digest().to_proto()),
            positions: store.sources().filter_map(|status| status.position.clone()).collect(),
        }
    }

    /// Follows the way that Tower chooses, and checks that it leads to Tower's state.
    fn check(
        core: &StoreCore,
        store: &mut Store,
        revision: Option<u64>,
        way: impl Fn(&Way) -> bool,
    ) -> usize {
        let chosen = core.way(&ask(store, revision));
        assert!(way(&chosen), "{chosen:?}");
        let bytes = match chosen {
            Way::There => follow(store, &core.nothing_new()),
            Way::From(from) => follow(store, &core.delivery_from(&from)),
            Way::Ask(count) => {
                let sums = Buckets::of(store.iter(), count).to_proto().sums;
                follow(store, &core.delivery_from(&StartFrom::Buckets(sums)))
            }
        };
        verify(store, core.revision(), &core.store.digest().to_proto()).unwrap();
        bytes
    }

    #[test]
    fn who_was_at_a_revision_gets_what_changed_since() {
        let mut core = tower(1000);
        let (mut store, revision) = (mirror(&core), core.revision());
        publish(&mut core, vec![endpoint("new", 11)], &[endpoint("7", 0)], 11);
        publish(&mut core, vec![endpoint("8", 12)], &[], 12);
        let bytes =
            check(&core, &mut store, Some(revision), |way| matches!(way, Way::From(StartFrom::Revision(_))));
        assert!(bytes < 600, "{bytes} bytes");
    }

    #[test]
    fn who_was_at_a_revision_before_a_source_was_read_gets_everything() {
        let core = tower(3);
        assert_eq!(core.way(&Ask { revision: Some(0), ..Ask::default() }), Way::From(StartFrom::Nothing));
        assert_eq!(core.way(&Ask { revision: Some(99), ..Ask::default() }), Way::From(StartFrom::Nothing));
    }

    #[test]
    fn who_has_the_same_from_another_tower_gets_nothing() {
        let mut store = mirror(&tower(1000));
        let bytes = check(&tower(1000), &mut store, None, |way| *way == Way::There);
        assert!(bytes < 200, "{bytes} bytes");
    }

    #[test]
    fn who_missed_something_from_another_tower_gets_what_its_sources_said_since() {
        let (mut store, mut core) = (mirror(&tower(1000)), tower(1000));
        publish(&mut core, vec![endpoint("new", 11)], &[endpoint("7", 0)], 11);
        let bytes = check(&core, &mut store, None, |way| matches!(way, Way::From(StartFrom::Positions(_))));
        assert!(bytes < 600, "{bytes} bytes");
    }

    #[test]
    fn a_tower_that_is_too_young_compares_buckets() {
        let mut old = tower(1000);
        publish(&mut old, vec![endpoint("extra", 8)], &[], 9);
        let mut store = Store::new();
        follow(&mut store, &old.delivery_from(&StartFrom::Nothing));
        let mut young = StoreCore::new("");
        let upserts = (1..1000).map(|number| endpoint(&number.to_string(), 5)).collect();
        publish(&mut young, upserts, &[], 20);
        let bytes = check(&young, &mut store, None, |way| matches!(way, Way::Ask(64)));
        let everything: usize = young.delivery_from(&StartFrom::Nothing).iter().map(Bytes::len).sum();
        assert!(bytes < everything / 10, "{bytes} of {everything} bytes");
    }

    #[test]
    fn who_has_nothing_or_little_gets_everything() {
        let mut store = Store::new();
        check(&tower(1000), &mut store, None, |way| *way == Way::From(StartFrom::Nothing));
        let mut store = mirror(&tower(4));
        check(&tower(5), &mut store, None, |way| *way == Way::From(StartFrom::Nothing));
    }

    #[test]
    fn a_tower_that_is_behind_takes_nothing_away() {
        let mut ahead = tower(1000);
        publish(&mut ahead, vec![endpoint("new", 11)], &[endpoint("7", 0)], 11);
        let mut store = mirror(&ahead);
        let before = store.digest();
        let behind = tower(1000);
        let Way::From(from) = behind.way(&ask(&store, None)) else { panic!("there is nothing to ask") };
        follow(&mut store, &behind.delivery_from(&from));
        assert_eq!(store.digest(), before);
        assert_eq!(store.source("zk").unwrap().position.as_ref().unwrap().index, 11);
    }
}
