//! The host names in registrations, and the addresses that they were last known to have.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

/// Host names, each with who uses it.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<Arc<str>, Name>,
    new: BTreeSet<Arc<str>>,
    /// The addresses of names that nobody uses yet.
    remembered: BTreeMap<Arc<str>, Vec<IpAddr>>,
}

#[derive(Debug, Default)]
struct Name {
    /// The last good ones, sorted.
    addresses: Vec<IpAddr>,
    /// Whether it has been looked up at all.
    answered: bool,
    /// Why the last look-up failed, if it did.
    error: Option<String>,
    /// Paths.
    users: BTreeSet<Arc<str>>,
}

impl Names {
    /// The entry at `path` uses this name. Tells why the name has no address, if that is known.
    pub(super) fn add_user(&mut self, name: &Arc<str>, path: &Arc<str>) -> Option<&str> {
        if !self.known.contains_key(name) {
            self.new.insert(name.clone());
        }
        let remembered = &mut self.remembered;
        let entry = self.known.entry(name.clone()).or_insert_with(|| Name {
            addresses: remembered.remove(name).unwrap_or_default(),
            ..Name::default()
        });
        entry.users.insert(path.clone());
        entry.error.as_deref()
    }

    /// The entry at `path` uses this name no more. One that nobody uses is forgotten.
    pub(super) fn remove_user(&mut self, name: &Arc<str>, path: &Arc<str>) {
        if let Some(entry) = self.known.get_mut(name) {
            entry.users.remove(path);
            if entry.users.is_empty() {
                self.known.remove(name);
                self.new.remove(name);
            }
        }
    }

    /// A name had these addresses. They are its addresses again if somebody uses it.
    pub(super) fn remember(&mut self, name: Arc<str>, addresses: Vec<IpAddr>) {
        self.remembered.insert(name, addresses);
    }

    /// What is remembered of names that nobody uses is not true for ever.
    pub(super) fn forget_remembered(&mut self) {
        self.remembered.clear();
    }

    /// All names with their addresses.
    pub(super) fn addressed(&self) -> impl Iterator<Item = (Arc<str>, Vec<IpAddr>)> {
        let known = self.known.iter().map(|(name, entry)| (name, &entry.addresses));
        known.chain(&self.remembered).map(|(name, addresses)| (name.clone(), addresses.clone()))
    }

    /// Takes in the result of a look-up, and returns who uses the name. A failure changes no address.
    pub(super) fn resolve(&mut self, name: &str, result: Result<Vec<IpAddr>, String>) -> Vec<Arc<str>> {
        let Some(entry) = self.known.get_mut(name) else { return Vec::new() };
        entry.answered = true;
        match result {
            Ok(mut addresses) => {
                addresses.sort_unstable();
                addresses.dedup();
                entry.addresses = addresses;
                entry.error = None;
            }
            Err(error) => entry.error = Some(error),
        }
        entry.users.iter().cloned().collect()
    }

    /// Why the last look-up of a name failed, if it did.
    pub(super) fn error(&self, name: &str) -> Option<&str> {
        self.known.get(name)?.error.as_deref()
    }

    /// The addresses of a name, as far as they are known.
    pub(super) fn addresses(&self, name: &str) -> &[IpAddr] {
        self.known.get(name).map_or(&[], |entry| &entry.addresses)
    }

    /// Whether a name has never been looked up.
    pub(super) fn any_unanswered(&self) -> bool {
        self.known.values().any(|name| !name.answered)
    }

    /// Names that are new since the last call.
    pub(super) fn take_new(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.new)
    }

    /// All names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known.keys()
    }
}
