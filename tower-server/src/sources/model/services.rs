//! The services that a source knows: those with a place, whether or not anything is registered there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Services by name.
#[derive(Debug, Default)]
pub(super) struct Services {
    known: BTreeMap<Arc<str>, Service>,
    dirty: BTreeSet<Arc<str>>,
    /// What was published before this process began, and is not yet published again.
    restored: Vec<Arc<str>>,
}

#[derive(Debug, Default)]
struct Service {
    /// Path and creation of each place.
    places: BTreeMap<Arc<str>, u64>,
    gone_at: u64,
    /// The creation that was published.
    published: Option<u64>,
}

impl Service {
    /// Since when it is known.
    fn since(&self) -> Option<u64> {
        self.places.values().min().copied()
    }
}

/// How a service differs from what was published, and at which position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    Appeared(u64),
    Gone(u64),
}

impl Services {
    /// A service has a place.
    pub(super) fn add(&mut self, name: &Arc<str>, path: &Arc<str>, created: u64) {
        let service = self.known.entry(name.clone()).or_default();
        // A folder does not know when a file was made: the first time that it was seen counts.
        let earliest = service.places.get(path).map_or(created, |known| created.min(*known));
        if service.places.insert(path.clone(), earliest) != Some(earliest) {
            self.dirty.insert(name.clone());
        }
    }

    /// A service has a place no more.
    pub(super) fn remove(&mut self, name: &Arc<str>, path: &Arc<str>, index: u64) {
        if let Some(service) = self.known.get_mut(name) {
            service.places.remove(path);
            service.gone_at = service.gone_at.max(index);
            self.dirty.insert(name.clone());
        }
    }

    /// What differs from what was published, which then counts as published. A service without a place
    /// stays as long as it is `needed`.
    pub(super) fn take_differences(
        &mut self,
        needed: impl Fn(&Arc<str>) -> bool,
    ) -> Vec<(Arc<str>, Difference)> {
        let mut differences = Vec::new();
        for name in std::mem::take(&mut self.restored) {
            let Some(service) = self.known.get_mut(&name) else { continue };
            let since = service.since().unwrap_or_default();
            service.published = Some(since);
            differences.push((name, Difference::Appeared(since)));
        }
        for name in std::mem::take(&mut self.dirty) {
            let Some(service) = self.known.get_mut(&name) else { continue };
            match service.since() {
                None if service.published.is_some() && needed(&name) => {
                    self.dirty.insert(name);
                }
                Some(since) if service.published != Some(since) => {
                    differences.push((name, Difference::Appeared(since)));
                    service.published = Some(since);
                }
                Some(_) => {}
                None => {
                    let service = self.known.remove(&name).unwrap_or_default();
                    if service.published.is_some() {
                        differences.push((name, Difference::Gone(service.gone_at)));
                    }
                }
            }
        }
        differences
    }

    /// A service was published.
    pub(super) fn restore(&mut self, name: Arc<str>) {
        self.known.entry(name.clone()).or_default().published = Some(0);
        // If it gets no place, it is to be looked at again.
        self.dirty.insert(name.clone());
        self.restored.push(name);
    }

    /// What is published.
    pub(super) fn published(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known.iter().filter(|(_, service)| service.published.is_some()).map(|(name, _)| name)
    }

    /// How many have a place. Those that have none, any more, are still known until that is published.
    pub(super) fn len(&self) -> usize {
        let homeless =
            |name: &&Arc<str>| self.known.get(*name).is_some_and(|service| service.places.is_empty());
        self.known.len() - self.dirty.iter().filter(homeless).count()
    }
}
