//! Deliveries: what Tower sends, put together again, whole or not at all.

mod merge;

use std::collections::BTreeSet;

use tower_proto::v1;

use crate::{
    digest::bucket_of,
    resource::{Origin, Resource, ResourceError, ResourceKey},
    standing::Standing,
    store::{Changes, Store, Transaction},
};

/// Puts the responses of one stream together into [`Delivery`]s.
#[derive(Debug, Default)]
pub struct Staging {
    welcome: Option<v1::Welcome>,
    revision: Option<u64>,
    open: Option<Delivery>,
}

/// Everything between a begin and its commit.
#[derive(Debug, Default)]
pub struct Delivery {
    /// What it is everything of.
    pub scope: Scope,
    /// What to apply.
    pub transaction: Transaction,
    /// Tower's revision after it.
    pub to_revision: u64,
    /// Tower's digest after it.
    pub digest: v1::Digest,
}

/// What a delivery is everything of: what a receiver holds there, and is not in the delivery, is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// Of nothing: what is gone is named.
    #[default]
    Changes,
    /// Of Tower's store.
    Everything,
    /// Of these sources.
    Sources(Vec<String>),
    /// Of these buckets of the store.
    Buckets {
        /// How many buckets there are.
        count: u32,
        /// The numbers of those that are in the delivery.
        numbers: Vec<u32>,
    },
}

/// What a response amounts to.
#[derive(Debug)]
pub enum Event {
    /// The stream is accepted.
    Welcome(v1::Welcome),
    /// A delivery is complete.
    Delivery(Delivery),
    /// Nothing new: Tower is alive, and its sources are in these states.
    Heartbeat(v1::Heartbeat),
    /// Tower is about to end the stream.
    Goodbye(v1::Goodbye),
    /// Tower asks for the digests of so many buckets.
    AskBuckets(u32),
}

/// Why a stream cannot go on. Nothing of the response that caused it is applied.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// Tower must introduce itself first.
    #[error("the first response is not a welcome")]
    NoWelcome,
    /// A resource cannot be used.
    #[error("a delivery holds a bad resource: {0}")]
    Resource(#[from] ResourceError),
    /// A required field is missing.
    #[error("a response lacks {0}")]
    Missing(&'static str),
    /// Responses are in an impossible order.
    #[error("{0} outside of a delivery")]
    Stray(&'static str),
    /// A delivery starts inside another.
    #[error("a delivery begins before the last one is committed")]
    Nested,
    /// A delivery does not build on the last one.
    #[error("a delivery builds on revision {from}, but the last one ended at {held}")]
    Gap {
        /// What the delivery builds on.
        from: u64,
        /// What has been received.
        held: u64,
    },
    /// What two deliveries are everything of cannot be told together.
    #[error("a delivery cannot be made one with that before it")]
    Apart,
    /// After applying a delivery the store is not what Tower has.
    #[error("the store differs from Tower's at revision {revision}: {held} resources here, {expected} there")]
    Diverged {
        /// Tower's revision.
        revision: u64,
        /// Resources here.
        held: usize,
        /// Resources there.
        expected: u64,
    },
}

impl Staging {
    /// For a new stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next response of the stream, and returns what it completes, in order.
    ///
    /// # Errors
    /// If the response is malformed or out of order. The stream is of no further use then; nothing that
    /// was staged has been applied.
    pub fn accept(&mut self, response: v1::WatchResponse) -> Result<Vec<Event>, DeliveryError> {
        let mut events = Vec::new();
        if let Some(welcome) = response.welcome {
            self.welcome = Some(welcome.clone());
            events.push(Event::Welcome(welcome));
        } else if self.welcome.is_none() && response.goodbye.is_none() {
            return Err(DeliveryError::NoWelcome);
        }
        if let Some(begin) = response.begin {
            self.begin(begin)?;
        }
        if !response.upserts.is_empty() || !response.removals.is_empty() {
            let open = self.open.as_mut().ok_or(DeliveryError::Stray("resources"))?;
            for encoded in response.upserts {
                open.transaction.upserts.push(Resource::decode(&encoded)?);
            }
            for removal in response.removals {
                let key = removal.key.ok_or(DeliveryError::Missing("the key of a removal"))?;
                let origin = removal.origin.ok_or(DeliveryError::Missing("the origin of a removal"))?;
                open.transaction.removals.push((key.into(), origin.into()));
            }
        }
        if let Some(commit) = response.commit {
            let mut delivery = self.open.take().ok_or(DeliveryError::Stray("a commit"))?;
            delivery.to_revision = commit.to_revision;
            delivery.transaction.sources = commit.sources;
            delivery.digest = commit.digest.ok_or(DeliveryError::Missing("the digest of a commit"))?;
            self.revision = Some(commit.to_revision);
            events.push(Event::Delivery(delivery));
        }
        if let Some(heartbeat) = response.heartbeat {
            events.push(Event::Heartbeat(heartbeat));
        }
        if let Some(ask) = response.ask_buckets {
            events.push(Event::AskBuckets(ask.count));
        }
        if let Some(goodbye) = response.goodbye {
            events.push(Event::Goodbye(goodbye));
        }
        Ok(events)
    }

    fn begin(&mut self, begin: v1::Begin) -> Result<(), DeliveryError> {
        if self.open.is_some() {
            return Err(DeliveryError::Nested);
        }
        let scope = if begin.full {
            Scope::Everything
        } else if begin.bucket_count > 0 {
            Scope::Buckets { count: begin.bucket_count, numbers: begin.full_buckets }
        } else if begin.full_sources.is_empty() {
            Scope::Changes
        } else {
            Scope::Sources(begin.full_sources)
        };
        let builds_on_the_last = matches!(scope, Scope::Changes | Scope::Sources(_));
        if let (true, Some(held)) = (builds_on_the_last, self.revision)
            && held != begin.from_revision
        {
            return Err(DeliveryError::Gap { from: begin.from_revision, held });
        }
        self.open = Some(Delivery { scope, ..Delivery::default() });
        Ok(())
    }
}

impl Scope {
    fn covers(&self, held: &Resource) -> bool {
        match self {
            Self::Changes => false,
            Self::Everything => true,
            Self::Sources(sources) => sources.iter().any(|source| **source == *held.origin().source),
            Self::Buckets { count, numbers } => numbers.binary_search(&bucket_of(held.key(), *count)).is_ok(),
        }
    }
}

impl Delivery {
    /// Applies the delivery to a store, as far as the standing of each source allows it.
    pub fn apply(self, store: &mut Store, standing: impl Fn(&str) -> Standing) -> Changes {
        let Transaction { mut upserts, mut removals, mut sources } = self.transaction;
        let follows = |source: &str| standing(source) != Standing::Ignore;
        let delivered: BTreeSet<ResourceKey> =
            upserts.iter().map(|resource| resource.key().clone()).collect();
        upserts.retain(|resource| follows(&resource.origin().source));
        removals.retain(|(_, origin)| follows(&origin.source));
        let everything = self.scope == Scope::Everything;
        let named: BTreeSet<String> = sources.iter().map(|status| status.source.clone()).collect();
        if self.scope != Scope::Changes {
            let absent =
                store.iter().filter(|held| self.scope.covers(held) && !delivered.contains(held.key()));
            let gone = absent.filter(|held| {
                let source = &*held.origin().source;
                // A source that Tower does not name is one that it has no longer.
                (everything && !named.contains(source)) || standing(source) == Standing::Follow
            });
            removals.extend(gone.map(|held| {
                let origin = Origin { source: held.origin().source.clone(), index: 0 };
                (held.key().clone(), origin)
            }));
        }
        sources.retain_mut(|status| {
            if standing(&status.source) == Standing::Keep {
                // What is kept is as of the position at which it was told: only a source that has moved
                // beyond that can say that it is gone.
                let held = store.source(&status.source).and_then(|held| held.position.clone());
                status.position = held.or(status.position.take());
            }
            follows(&status.source)
        });
        if everything {
            store.retain_sources(|source| named.contains(source));
        }
        store.apply(Transaction { upserts, removals, sources })
    }
}

/// Checks a store against Tower's digest at the same revision. To be asked only when Tower has loaded all
/// its sources: until then a store may rightly hold more than Tower.
///
/// # Errors
/// [`DeliveryError::Diverged`], upon which the store is to be fetched again in full.
pub fn verify(store: &Store, revision: u64, digest: &v1::Digest) -> Result<(), DeliveryError> {
    if store.digest() == *digest {
        return Ok(());
    }
    Err(DeliveryError::Diverged { revision, held: store.len(), expected: digest.resources })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message;

    use super::*;

    fn resource(name: &str) -> Resource {
        Resource::new(
            ResourceKey::new("", v1::Kind::Endpoint, "web", name),
            Origin { source: "zk".into(), index: 1 },
            Bytes::new(),
        )
    }

    fn welcome() -> v1::WatchResponse {
        v1::WatchResponse { welcome: Some(v1::Welcome::default()), ..Default::default() }
    }

    fn begin(full: bool, from_revision: u64) -> v1::WatchResponse {
        v1::WatchResponse {
            begin: Some(v1::Begin { full, from_revision, ..Default::default() }),
            ..Default::default()
        }
    }

    fn upsert(name: &str) -> v1::WatchResponse {
        v1::WatchResponse { upserts: vec![resource(name).encoded().clone()], ..Default::default() }
    }

    fn commit(to_revision: u64) -> v1::WatchResponse {
        let digest = Some(v1::Digest::default());
        let commit = Some(v1::Commit { to_revision, sources: vec![], digest });
        v1::WatchResponse { commit, ..Default::default() }
    }

    /// The keys of each delivery that the responses complete, or the error that they end in.
    fn check(responses: Vec<v1::WatchResponse>) -> Result<Vec<Vec<String>>, String> {
        let mut staging = Staging::new();
        let mut deliveries = Vec::new();
        for response in responses {
            for event in staging.accept(response).map_err(|error| error.to_string())? {
                if let Event::Delivery(delivery) = event {
                    let names = delivery.transaction.upserts.iter().map(|r| r.key().name.to_string());
                    deliveries.push(names.collect());
                }
            }
        }
        Ok(deliveries)
    }

    #[test]
    fn a_delivery_is_whole_or_absent() {
        let responses = vec![welcome(), begin(true, 0), upsert("a"), upsert("b")];
        assert_eq!(check(responses.clone()).unwrap(), Vec::<Vec<String>>::new());
        let committed = [responses, vec![commit(5), begin(false, 5), commit(6)]].concat();
        assert_eq!(check(committed).unwrap(), [vec!["a", "b"], vec![]]);
    }

    #[test]
    fn one_response_may_hold_a_whole_delivery() {
        let mut response = begin(true, 0);
        response.upserts = upsert("a").upserts;
        response.commit = commit(1).commit;
        assert_eq!(check(vec![welcome(), response]).unwrap(), [vec!["a"]]);
    }

    #[test]
    fn disorder_ends_the_stream() {
        let error = |responses| check(responses).unwrap_err();
        assert!(error(vec![begin(true, 0)]).contains("not a welcome"));
        assert!(error(vec![welcome(), upsert("a")]).contains("resources outside"));
        assert!(error(vec![welcome(), commit(1)]).contains("a commit outside"));
        assert!(error(vec![welcome(), begin(true, 0), begin(true, 0)]).contains("begins before"));
        let gap = vec![welcome(), begin(true, 0), commit(3), begin(false, 4)];
        assert!(error(gap).contains("ended at 3"));
        let mut keyless = begin(true, 0);
        keyless.removals = vec![v1::Removal::default()];
        assert!(error(vec![welcome(), keyless]).contains("key of a removal"));
    }

    fn follow(_: &str) -> Standing {
        Standing::Follow
    }

    fn held(names: &[&str]) -> Store {
        let mut store = Store::new();
        let upserts = names.iter().map(|name| resource(name)).collect();
        store.apply(Transaction { upserts, ..Default::default() });
        store
    }

    fn delivery(scope: Scope, names: &[&str]) -> Delivery {
        let upserts = names.iter().map(|name| resource(name)).collect();
        Delivery { scope, transaction: Transaction { upserts, ..Default::default() }, ..Default::default() }
    }

    #[test]
    fn a_source_that_tower_has_just_read_replaces_what_was_held_of_it() {
        let mut store = held(&["a", "b"]);
        let changes = delivery(Scope::Sources(vec!["zk".into()]), &["b"]).apply(&mut store, follow);
        assert_eq!((changes.removed.len(), changes.upserted.len(), store.len()), (1, 0, 1));
        delivery(Scope::Sources(vec!["files".into()]), &[]).apply(&mut store, follow);
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn buckets_replace_what_was_held_in_them() {
        let mut store = held(&["a", "b", "c", "d"]);
        let bucket = |name: &str| bucket_of(resource(name).key(), 1024);
        let mut numbers = vec![bucket("a"), bucket("b")];
        numbers.sort_unstable();
        delivery(Scope::Buckets { count: 1024, numbers }, &["b"]).apply(&mut store, follow);
        let names: Vec<_> = store.iter().map(|resource| &*resource.key().name).collect();
        assert_eq!(names, ["b", "c", "d"]);
    }

    #[test]
    fn a_source_is_followed_only_as_far_as_it_stands() {
        let check = |standing: Standing, expected: &[&str]| {
            let mut store = held(&["a", "b"]);
            let sources = vec![v1::SourceStatus { source: "zk".into(), ..Default::default() }];
            let mut delivery = delivery(Scope::Everything, &["b", "c"]);
            delivery.transaction.sources = sources;
            delivery.apply(&mut store, |_| standing);
            let names: Vec<_> = store.iter().map(|resource| &*resource.key().name).collect();
            assert_eq!(names, expected, "{standing:?}");
        };
        check(Standing::Follow, &["b", "c"]);
        check(Standing::Keep, &["a", "b", "c"]);
        check(Standing::Ignore, &["a", "b"]);
    }

    #[test]
    fn what_comes_from_a_source_that_tower_has_no_longer_goes() {
        let mut store = held(&["a"]);
        delivery(Scope::Everything, &[]).apply(&mut store, |_| Standing::Ignore);
        assert!(store.is_empty());
    }

    #[test]
    fn a_difference_from_tower_is_noticed() {
        let mut store = Store::new();
        store.apply(Transaction { upserts: vec![resource("a")], ..Default::default() });
        let digest = store.digest().to_proto();
        assert!(verify(&store, 1, &digest).is_ok());
        store.apply(Transaction { upserts: vec![resource("b")], ..Default::default() });
        assert!(verify(&store, 1, &digest).is_err());
    }

    #[test]
    fn whatever_a_tower_sends_is_staged_or_refused() {
        let key = Some(resource("b").key().to_proto());
        let removal = v1::Removal { key, origin: Some(v1::Origin::default()) };
        let whole = v1::WatchResponse {
            welcome: welcome().welcome,
            upserts: upsert("a").upserts,
            removals: vec![removal],
            commit: commit(1).commit,
            ..begin(true, 0)
        };
        let rest =
            v1::WatchResponse { commit: commit(2).commit, upserts: upsert("c").upserts, ..begin(false, 1) };
        // Responses of one stream, each behind its length.
        let stream = [whole.encode_length_delimited_to_vec(), rest.encode_length_delimited_to_vec()].concat();
        tower_fuzz::fuzz("delivery", &[&stream], &["zk", "web"], |mut input| {
            let mut staging = Staging::new();
            let mut store = Store::new();
            while !input.is_empty() {
                let response = v1::WatchResponse::decode_length_delimited(&mut input);
                let events = staging.accept(response.map_err(|error| error.to_string())?);
                for event in events.map_err(|error| error.to_string())? {
                    if let Event::Delivery(delivery) = event {
                        delivery.apply(&mut store, follow);
                    }
                }
            }
            Ok::<_, String>(store.len())
        });
    }
}
