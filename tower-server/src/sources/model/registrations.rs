//! What is registered, by path: the places of services, the entries in them. What follows from it for
//! services and endpoints is worked out at each change.

mod saved;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    net::IpAddr,
    sync::Arc,
    time::Instant,
};

use prost::Message;
use tower_common::resource::{Origin, Resource, ResourceKey};
use tower_proto::v1;

use super::{
    endpoint::{EndpointKey, body, takes_traffic},
    endpoints::{Claim, Endpoints},
    names::Names,
    problems::{Problem, Problems, Subject},
    services::{self, Services},
    weights::Weights,
};
use crate::sources::{
    address::Host,
    format::{Registration, WeightRule},
    guard::Guard,
};

/// More members than that in one place are refused.
pub(in crate::sources) const MAX_MEMBERS: usize = 20_000;

/// Longer names of services are refused.
const MAX_SERVICE_NAME_BYTES: usize = 253;

/// Where a service's members are: a directory, or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sources) struct Place {
    pub(in crate::sources) path: Arc<str>,
    pub(in crate::sources) service: Arc<str>,
    /// The position at which it came to be.
    pub(in crate::sources) created: u64,
    /// The position at which a member last came or went.
    pub(in crate::sources) changed: u64,
}

/// What one znode or file registers.
#[derive(Debug, Clone)]
pub(in crate::sources) struct Entry {
    pub(in crate::sources) path: Arc<str>,
    /// The path of its place.
    pub(in crate::sources) place: Arc<str>,
    pub(in crate::sources) service: Arc<str>,
    /// Of two entries with the same endpoint the one of the higher rank has it.
    pub(in crate::sources) rank: u64,
    /// The position of the contents.
    pub(in crate::sources) index: u64,
    pub(in crate::sources) registrations: Vec<Registration>,
    /// What it says of the weights of all entries of its place.
    pub(in crate::sources) weights: Vec<WeightRule>,
    /// How many oddities there were.
    pub(in crate::sources) remarks: u64,
}

/// Why a name is not one of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadServiceName {
    /// It has no characters.
    #[error("the service's name is empty")]
    Empty,
    /// It cannot be shown.
    #[error("the service's name has control characters")]
    Control,
    /// It has so many bytes.
    #[error("the service's name has {0} bytes, more than {MAX_SERVICE_NAME_BYTES}")]
    TooLong(usize),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Registrations {
    scope: Arc<str>,
    source: Arc<str>,
    places: BTreeMap<Arc<str>, Place>,
    /// How many entries each place has.
    members: HashMap<Arc<str>, usize>,
    entries: BTreeMap<Arc<str>, Held>,
    services: Services,
    endpoints: Endpoints,
    names: Names,
    weights: Weights,
    problems: Problems,
}

#[derive(Debug)]
struct Held {
    entry: Entry,
    claimed: Vec<EndpointKey>,
}

/// Upserts and removals.
type Differences = (Vec<Resource>, Vec<(ResourceKey, Origin)>);

impl Registrations {
    pub(super) fn new(scope: &str, source: Arc<str>) -> Self {
        Self {
            scope: scope.into(),
            source,
            places: BTreeMap::new(),
            members: HashMap::new(),
            entries: BTreeMap::new(),
            services: Services::default(),
            endpoints: Endpoints::default(),
            names: Names::default(),
            weights: Weights::default(),
            problems: Problems::default(),
        }
    }

    /// Replaces everything, except what is at or below the paths of `kept`. Returns how many of their
    /// problems are news.
    pub(super) fn replace(
        &mut self,
        places: Vec<Place>,
        entries: Vec<Entry>,
        kept: Vec<Problem>,
        index: u64,
    ) -> u64 {
        let read: HashSet<Arc<str>> = places
            .iter()
            .map(|place| &place.path)
            .chain(entries.iter().map(|entry| &entry.path))
            .cloned()
            .collect();
        let held_back: HashSet<Arc<str>> = kept.iter().map(|problem| problem.path.clone()).collect();
        let stays = |path: &str| {
            let mut path = Some(path);
            while let Some(at) = path {
                if held_back.contains(at) {
                    return true;
                }
                path = at.rsplit_once('/').map(|(parent, _)| parent);
            }
            false
        };
        // Deletions first, so that a place which was full has room for what replaced its members.
        let changed: HashMap<Arc<str>, u64> =
            places.iter().map(|place| (place.path.clone(), place.changed)).collect();
        let gone = |path: &Arc<str>| !read.contains(path) && !stays(path);
        let gone_entries: Vec<Arc<str>> = self.entries.keys().filter(|path| gone(path)).cloned().collect();
        let gone_places: Vec<Arc<str>> = self.places.keys().filter(|path| gone(path)).cloned().collect();
        for path in gone_entries {
            let place = &self.entries[&path].entry.place;
            let index = changed.get(place).copied().unwrap_or(index);
            self.remove_entry(&path, index);
        }
        for path in gone_places {
            self.remove(&path, index);
        }
        self.problems.retain_contents(|path| held_back.contains(path));
        for place in places {
            self.put_place(place);
        }
        for entry in entries {
            self.put_entry(entry);
        }
        self.names.forget_remembered();
        kept.into_iter().map(|problem| u64::from(self.keep(problem))).sum()
    }

    /// The path of something that is older than it was, if a reading has such a thing: the same znode written
    /// at an earlier position, or one made earlier in its place.
    pub(super) fn went_back<'a>(&self, places: &'a [Place], entries: &'a [Entry]) -> Option<&'a Arc<str>> {
        let older_place = |place: &&Place| {
            let known = self.places.get(&place.path);
            known.is_some_and(|known| (place.created, place.changed) < (known.created, known.changed))
        };
        let older_entry = |entry: &&Entry| {
            let known = self.entries.get(&entry.path).map(|held| &held.entry);
            known.is_some_and(|known| (entry.rank, entry.index) < (known.rank, known.index))
        };
        let place = places.iter().find(older_place).map(|place| &place.path);
        place.or_else(|| entries.iter().find(older_entry).map(|entry| &entry.path))
    }

    pub(super) fn put_place(&mut self, place: Place) {
        self.problems.clear(&place.path, Subject::Contents);
        if let Some(before) = self.places.get(&place.path)
            && before.service != place.service
        {
            self.services.remove(&before.service, &place.path, place.changed);
        }
        self.services.add(&place.service, &place.path, place.created);
        self.places.insert(place.path.clone(), place);
    }

    /// What is at this path cannot be used; what was there stays. Returns whether that is news.
    pub(super) fn keep(&mut self, problem: Problem) -> bool {
        self.problems.set(&problem.path, Subject::Contents, problem.reason)
    }

    pub(super) fn put_entry(&mut self, entry: Entry) {
        let path = entry.path.clone();
        self.problems.clear(&path, Subject::Contents);
        match self.entries.get(&path) {
            Some(held) if same(&held.entry, &entry) => return,
            Some(_) => {}
            None => {
                let members = self.members.entry(entry.place.clone()).or_default();
                if *members >= MAX_MEMBERS {
                    let reason =
                        format!("more than {MAX_MEMBERS} members; those that came last are left out");
                    self.problems.set(&entry.place, Subject::Contents, reason);
                    return;
                }
                *members += 1;
            }
        }
        for name in names_in(&entry) {
            if let Some(error) = self.names.add_user(name, &path) {
                let reason = unresolved(name, error);
                self.problems.set(&path, Subject::Name(name.clone()), reason);
            }
        }
        let index = entry.index;
        self.weights.set(&entry.place, &path, &entry.weights, index);
        let before = self.entries.insert(path.clone(), Held { entry, claimed: Vec::new() });
        let claimed = before.map(|before| {
            for name in names_in(&before.entry) {
                if !names_in(&self.entries[&path].entry).any(|kept| kept == name) {
                    self.names.remove_user(name, &path);
                    self.problems.clear(&path, Subject::Name(name.clone()));
                }
            }
            before.claimed
        });
        self.claim_all(&path, claimed.unwrap_or_default(), index);
    }

    /// Nothing is at this path any more: an entry, a place with its entries, or neither.
    pub(super) fn remove(&mut self, path: &Arc<str>, index: u64) {
        self.problems.clear(path, Subject::Contents);
        self.remove_entry(path, index);
        if let Some(place) = self.places.remove(path) {
            self.services.remove(&place.service, path, index);
            let prefix = format!("{path}/");
            let below = self.entries.range(Arc::from(prefix.as_str())..).map(|(path, _)| path);
            let below: Vec<_> = below.take_while(|path| path.starts_with(&prefix)).cloned().collect();
            for path in below {
                self.problems.clear(&path, Subject::Contents);
                self.remove_entry(&path, index);
            }
        }
    }

    /// A look-up of a name came back, while the source was at this position.
    pub(super) fn resolve(&mut self, name: &str, result: Result<Vec<IpAddr>, String>, index: u64) {
        for path in self.names.resolve(name, result) {
            let subject = Subject::Name(name.into());
            match self.names.error(name) {
                Some(error) => {
                    self.problems.set(&path, subject, unresolved(name, error));
                }
                None => self.problems.clear(&path, subject),
            }
            if let Some(held) = self.entries.get_mut(&path) {
                let claimed = std::mem::take(&mut held.claimed);
                let index = index.max(held.entry.index);
                self.claim_all(&path, claimed, index);
            }
        }
    }

    /// What differs from what was published, which then counts as published. If the guard is `frozen`,
    /// nothing leaves by time.
    pub(super) fn take_differences(&mut self, guard: &mut Guard, frozen: bool, now: Instant) -> Differences {
        for (place, index) in self.weights.take_changed() {
            self.weigh_again(&place, index);
        }
        let origin = |index| Origin { source: self.source.clone(), index };
        let key = |kind: v1::Kind, service: &Arc<str>, name: Arc<str>| ResourceKey {
            scope: self.scope.clone(),
            kind: kind.into(),
            service: service.clone(),
            name,
        };
        let (mut upserts, mut removals) = Differences::default();
        for difference in self.endpoints.take_differences(guard, frozen, now) {
            let name = format!("{}@{}", difference.key, self.source).into();
            let key = key(v1::Kind::Endpoint, &difference.key.service, name);
            match difference.body {
                Some(body) => upserts.push(Resource::new(key, origin(difference.index), body)),
                None => removals.push((key, origin(difference.index))),
            }
        }
        let endpoints = &self.endpoints;
        for (service, difference) in
            self.services.take_differences(|service| endpoints.any_published(service))
        {
            let key = key(v1::Kind::Service, &service, self.source.clone());
            match difference {
                services::Difference::Appeared(since) => {
                    let body = v1::Service { since }.encode_to_vec();
                    upserts.push(Resource::new(key, origin(since), body.into()));
                }
                services::Difference::Gone(index) => removals.push((key, origin(index))),
            }
        }
        (upserts, removals)
    }

    /// Whether nothing is known, and nothing is published.
    pub(super) fn is_empty(&self) -> bool {
        self.services.len() == 0 && self.endpoints.is_empty()
    }

    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.services.len(), self.endpoints.len())
    }

    pub(super) fn problems(&self) -> &Problems {
        &self.problems
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn take_new_names(&mut self) -> BTreeSet<Arc<str>> {
        self.names.take_new()
    }

    fn remove_entry(&mut self, path: &Arc<str>, index: u64) {
        let Some(held) = self.entries.remove(path) else { return };
        if let Some(members) = self.members.get_mut(&held.entry.place) {
            *members -= 1;
            if *members == 0 {
                self.members.remove(&held.entry.place);
            }
        }
        self.weights.set(&held.entry.place, path, &[], index);
        for name in names_in(&held.entry) {
            self.names.remove_user(name, path);
            self.problems.clear(path, Subject::Name(name.clone()));
        }
        for key in held.claimed {
            self.endpoints.release(key, path, index, &mut self.problems);
        }
    }

    /// The weights of a place changed.
    fn weigh_again(&mut self, place: &str, index: u64) {
        let prefix = format!("{place}/");
        let there = self.entries.range(Arc::from(prefix.as_str())..).map(|(path, _)| path);
        let there: Vec<_> = there.take_while(|path| path.starts_with(&prefix)).cloned().collect();
        for path in there {
            // What was restored says nothing of its own until it has been read.
            let said = |held: &&mut Held| !held.entry.registrations.is_empty();
            if let Some(held) = self.entries.get_mut(&path).filter(said) {
                let claimed = std::mem::take(&mut held.claimed);
                let index = index.max(held.entry.index);
                self.claim_all(&path, claimed, index);
            }
        }
    }

    /// Claims what the entry at `path` registers, and releases what it claimed before and does not now.
    fn claim_all(&mut self, path: &Arc<str>, before: Vec<EndpointKey>, index: u64) {
        let entry = &self.entries[path].entry;
        let mut claims = BTreeMap::new();
        for registration in &entry.registrations {
            let addresses = match &registration.host {
                Host::Ip(address) => std::slice::from_ref(address),
                Host::Name(name) => self.names.addresses(name),
            };
            for address in addresses {
                let key = EndpointKey::new(&entry.service, *address, registration);
                // The main endpoint stands first, and is not replaced by a later one with the same key.
                claims.entry(key).or_insert_with(|| {
                    let weighed = self.weights.weigh(&entry.place, path, *address, registration);
                    (takes_traffic(weighed.state, weighed.weight), body(*address, &weighed))
                });
            }
        }
        let rank = entry.rank;
        for key in before {
            if !claims.contains_key(&key) {
                self.endpoints.release(key, path, index, &mut self.problems);
            }
        }
        let keys: Vec<_> = claims.keys().cloned().collect();
        for (key, (in_service, body)) in claims {
            let claim = Claim { rank, path: path.clone(), in_service, body };
            self.endpoints.claim(key, claim, index, &mut self.problems);
        }
        if let Some(held) = self.entries.get_mut(path) {
            held.claimed = keys;
        }
    }
}

/// Whether a name is one that a service can have. What more is asked of it is up to who uses it.
///
/// # Errors
/// Why it is not.
pub(crate) fn check_service_name(name: &str) -> Result<(), BadServiceName> {
    match name {
        "" => Err(BadServiceName::Empty),
        name if name.len() > MAX_SERVICE_NAME_BYTES => Err(BadServiceName::TooLong(name.len())),
        name if name.chars().any(char::is_control) => Err(BadServiceName::Control),
        _ => Ok(()),
    }
}

fn names_in(entry: &Entry) -> impl Iterator<Item = &Arc<str>> {
    entry.registrations.iter().filter_map(|registration| match &registration.host {
        Host::Name(name) => Some(name),
        Host::Ip(_) => None,
    })
}

fn unresolved(name: &str, error: &str) -> String {
    format!("host name {name:?}: {error}")
}

fn same(one: &Entry, other: &Entry) -> bool {
    one.index == other.index
        && one.rank == other.rank
        && one.service == other.service
        && one.registrations == other.registrations
        && one.weights == other.weights
}
