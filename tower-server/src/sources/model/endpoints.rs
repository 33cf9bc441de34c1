//! Who claims which endpoint, and what was published of it. What is claimed no more leaves when the guard
//! lets it.
//!
//! Of several claims the youngest wins, so that a publisher which registers again is not hurt when its
//! former registration goes; between equals the first path wins, and the others are told.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;

use super::{
    endpoint::EndpointKey,
    problems::{Problems, Subject},
    saved::SavedEndpoint,
};
use crate::sources::guard::{Guard, Registered};

/// Endpoints by key.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    known: BTreeMap<EndpointKey, Endpoint>,
    dirty: BTreeSet<EndpointKey>,
    /// How many have a claim.
    claimed: usize,
    /// What was published before this process began, and is not yet published again.
    restored: Vec<Difference>,
}

#[derive(Debug, Default)]
struct Endpoint {
    /// The first one wins.
    claims: Vec<Claim>,
    /// The highest position of any change to the claims.
    index: u64,
    /// Whether the last claim that was in force takes traffic.
    in_service: bool,
    /// What the guard was told last.
    told: Registered,
    published: Option<Bytes>,
}

/// That an entry registers an endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) rank: u64,
    /// Of the entry.
    pub(super) path: Arc<str>,
    pub(super) in_service: bool,
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
        self.claimed += usize::from(endpoint.claims.is_empty());
        endpoint.claims.retain(|other| other.path != claim.path);
        endpoint.claims.push(claim);
        endpoint.settle(&key, index, problems);
        self.dirty.insert(key);
    }

    /// An entry claims an endpoint no more.
    pub(super) fn release(&mut self, key: EndpointKey, path: &Arc<str>, index: u64, problems: &mut Problems) {
        if let Some(endpoint) = self.known.get_mut(&key) {
            let before = endpoint.claims.len();
            endpoint.claims.retain(|claim| claim.path != *path);
            self.claimed -= usize::from(before > 0 && endpoint.claims.is_empty());
            problems.clear(path, Subject::Clash(key.clone()));
            endpoint.settle(&key, index, problems);
            self.dirty.insert(key);
        }
    }

    /// What differs from what was published, which then counts as published.
    pub(super) fn take_differences(
        &mut self,
        guard: &mut Guard,
        frozen: bool,
        now: Instant,
    ) -> Vec<Difference> {
        let mut differences = std::mem::take(&mut self.restored);
        let known = &self.known;
        // The guard wants to know what went before what came.
        let (came, went): (Vec<_>, Vec<_>) = std::mem::take(&mut self.dirty)
            .into_iter()
            .partition(|key| known.get(key).is_some_and(|endpoint| !endpoint.claims.is_empty()));
        for key in went {
            self.go(key, guard, now, &mut differences);
        }
        for key in came {
            let Some(endpoint) = self.known.get_mut(&key) else { continue };
            let registered = endpoint.registered();
            guard.told(&key, endpoint.told, registered, now);
            endpoint.told = registered;
            let body = endpoint.claims.first().map(|claim| claim.body.clone());
            if body != endpoint.published {
                endpoint.published.clone_from(&body);
                differences.push(Difference { key, body, index: endpoint.index });
            }
        }
        for key in guard.take_leaving(frozen, now) {
            // One that has come back meanwhile stays.
            if self.known.get(&key).is_some_and(|endpoint| endpoint.claims.is_empty()) {
                self.remove(key, &mut differences);
            }
        }
        differences
    }

    /// An endpoint is claimed no more.
    fn go(&mut self, key: EndpointKey, guard: &mut Guard, now: Instant, differences: &mut Vec<Difference>) {
        let Some(endpoint) = self.known.get_mut(&key) else { return };
        if endpoint.published.is_none() {
            self.known.remove(&key);
            return;
        }
        // It may have been announced, and gone, since the guard was told last.
        if endpoint.told == Registered::InService && !endpoint.in_service {
            guard.told(&key, endpoint.told, Registered::OutOfService, now);
            endpoint.told = Registered::OutOfService;
        }
        let announced = endpoint.told == Registered::OutOfService;
        guard.told(&key, endpoint.told, Registered::No, now);
        endpoint.told = Registered::No;
        if announced {
            self.remove(key, differences);
        }
    }

    fn remove(&mut self, key: EndpointKey, differences: &mut Vec<Difference>) {
        if let Some(endpoint) = self.known.remove(&key) {
            differences.push(Difference { key, body: None, index: endpoint.index });
        }
    }

    /// An endpoint was published, and the guard knows how it was registered.
    pub(super) fn restore(&mut self, SavedEndpoint { key, index, body }: SavedEndpoint, told: Registered) {
        let in_service = told == Registered::InService;
        let published = Some(body.clone());
        let endpoint = Endpoint { claims: Vec::new(), index, in_service, told, published };
        self.restored.push(Difference { key: key.clone(), body: Some(body), index });
        // If nobody claims it, the guard is to hear of that.
        self.dirty.insert(key.clone());
        self.known.insert(key, endpoint);
    }

    /// An endpoint that was restored was held, and so was not registered any more.
    pub(super) fn restored_as_held(&mut self, key: &EndpointKey) {
        if let Some(endpoint) = self.known.get_mut(key) {
            endpoint.told = Registered::No;
        }
    }

    /// Whether a restored endpoint was registered.
    pub(super) fn was_registered(&self, key: &EndpointKey) -> bool {
        self.known.get(key).is_some_and(|endpoint| endpoint.told != Registered::No)
    }

    /// What is published.
    pub(super) fn published(&self) -> impl Iterator<Item = SavedEndpoint> {
        self.known.iter().filter_map(|(key, endpoint)| {
            let body = endpoint.published.clone()?;
            Some(SavedEndpoint { key: key.clone(), index: endpoint.index, body })
        })
    }

    /// How many are claimed.
    pub(super) fn len(&self) -> usize {
        self.claimed
    }

    /// Whether none is claimed, and none is published.
    pub(super) fn is_empty(&self) -> bool {
        self.claimed == 0 && self.known.values().all(|endpoint| endpoint.published.is_none())
    }

    /// Whether an endpoint of this service is published.
    pub(super) fn any_published(&self, service: &Arc<str>) -> bool {
        let first = EndpointKey {
            service: service.clone(),
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: 0,
            port_name: Arc::from(""),
        };
        self.known
            .range(first..)
            .take_while(|(key, _)| key.service == *service)
            .any(|(_, endpoint)| endpoint.published.is_some())
    }
}

impl Endpoint {
    fn registered(&self) -> Registered {
        match (self.claims.is_empty(), self.in_service) {
            (true, _) => Registered::No,
            (false, true) => Registered::InService,
            (false, false) => Registered::OutOfService,
        }
    }

    /// Decides between the claims, after they changed.
    fn settle(&mut self, key: &EndpointKey, index: u64, problems: &mut Problems) {
        self.index = self.index.max(index);
        self.claims.sort_unstable_by(|a, b| (b.rank, &a.path).cmp(&(a.rank, &b.path)));
        let Some((winner, losers)) = self.claims.split_first() else { return };
        self.in_service = winner.in_service;
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
