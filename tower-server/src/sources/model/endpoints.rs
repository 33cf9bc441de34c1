//! Who claims which endpoint, and what was published of it.
//!
//! Of several claims the youngest wins, so that a publisher which registers again is not hurt when its
//! former registration goes; between equals the first path wins, and the others are told.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    endpoint::EndpointKey,
    problems::{Problems, Subject},
};

/// Endpoints by key.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    known: BTreeMap<EndpointKey, Endpoint>,
    dirty: BTreeSet<EndpointKey>,
}

#[derive(Debug, Default)]
struct Endpoint {
    /// The first one wins.
    claims: Vec<Claim>,
    /// The highest position of any change to the claims.
    index: u64,
    published: Option<Bytes>,
}

/// That an entry registers an endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) rank: u64,
    /// Of the entry.
    pub(super) path: Arc<str>,
    pub(super) body: Bytes,
}

/// How an endpoint differs from what was published: its body, or none; and at which position.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) key: EndpointKey,
    pub(super) body: Option<Bytes>,
    pub(super) index: u64,
}

impl Endpoints {
    /// An entry claims an endpoint, in place of what it claimed there before.
    pub(super) fn claim(&mut self, key: EndpointKey, claim: Claim, index: u64, problems: &mut Problems) {
        let endpoint = self.known.entry(key.clone()).or_default();
        // Said again, as when the weights of a place change, it moves no position.
        if endpoint.claims.contains(&claim) {
            return;
        }
        endpoint.claims.retain(|other| other.path != claim.path);
        endpoint.claims.push(claim);
        endpoint.settle(&key, index, problems);
        self.dirty.insert(key);
    }

    /// An entry claims an endpoint no more.
    pub(super) fn release(&mut self, key: EndpointKey, path: &Arc<str>, index: u64, problems: &mut Problems) {
        if let Some(endpoint) = self.known.get_mut(&key) {
            endpoint.claims.retain(|claim| claim.path != *path);
            problems.clear(path, Subject::Clash(key.clone()));
            endpoint.settle(&key, index, problems);
            self.dirty.insert(key);
        }
    }

    /// What differs from what was published, which then counts as published.
    pub(super) fn take_differences(&mut self) -> Vec<Difference> {
        let mut differences = Vec::new();
        for key in std::mem::take(&mut self.dirty) {
            let Some(endpoint) = self.known.get_mut(&key) else { continue };
            let body = endpoint.claims.first().map(|claim| claim.body.clone());
            let index = endpoint.index;
            let differs = body != endpoint.published;
            if body.is_none() {
                self.known.remove(&key);
            } else {
                endpoint.published.clone_from(&body);
            }
            if differs {
                differences.push(Difference { key, body, index });
            }
        }
        differences
    }

    /// How many are claimed. Those that are not, any more, are still known until that is published.
    pub(super) fn len(&self) -> usize {
        let unclaimed =
            |key: &&EndpointKey| self.known.get(*key).is_some_and(|endpoint| endpoint.claims.is_empty());
        self.known.len() - self.dirty.iter().filter(unclaimed).count()
    }
}

impl Endpoint {
    /// Decides between the claims, after they changed.
    fn settle(&mut self, key: &EndpointKey, index: u64, problems: &mut Problems) {
        self.index = self.index.max(index);
        self.claims.sort_unstable_by(|a, b| (b.rank, &a.path).cmp(&(a.rank, &b.path)));
        let Some((winner, losers)) = self.claims.split_first() else { return };
        problems.clear(&winner.path, Subject::Clash(key.clone()));
        for loser in losers {
            let clash = Subject::Clash(key.clone());
            if loser.rank < winner.rank {
                problems.clear(&loser.path, clash);
                continue;
            }
            let reason =
                format!("{key} of service {:?} is in {} too, which keeps it", key.service, winner.path);
            problems.set(&loser.path, clash, reason);
        }
    }
}
