//! Keeping layers in step, name by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;

use crate::view::{Layer, XdsResource};

/// The names that one service has in the layers of a composition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) clusters: BTreeSet<Arc<str>>,
    /// Clusters whose endpoints are discovered.
    pub(super) assignments: BTreeSet<Arc<str>>,
    pub(super) listeners: BTreeSet<Arc<str>>,
    pub(super) routes: BTreeSet<Arc<str>>,
    pub(super) secrets: BTreeSet<Arc<str>>,
}

impl Names {
    /// Those of a service without a release.
    pub(super) fn of_default(service: &Arc<str>) -> Self {
        let name = BTreeSet::from([service.clone()]);
        Self { clusters: name.clone(), assignments: name, ..Self::default() }
    }
}

/// Sets or takes away a resource. Returns whether that changed anything.
pub(super) fn set(layer: &mut Layer, name: &Arc<str>, resource: Option<XdsResource>) -> bool {
    if layer.get(name).map(|held| held.version) == resource.as_ref().map(|new| new.version) {
        return false;
    }
    let layer = Arc::make_mut(layer);
    match resource {
        Some(resource) => layer.insert(name.clone(), resource),
        None => layer.remove(name),
    };
    true
}

/// Takes away what a service had and has not any more. Returns whether there was something.
pub(super) fn drop_others(layer: &mut Layer, before: &BTreeSet<Arc<str>>, now: &BTreeSet<Arc<str>>) -> bool {
    before.difference(now).fold(false, |changed, name| changed | set(layer, name, None))
}

/// Who depends on what.
#[derive(Debug, Default)]
pub(super) struct Index {
    dependents: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl Index {
    /// Those who depend on this.
    pub(super) fn of(&self, what: &str) -> impl Iterator<Item = &Arc<str>> {
        self.dependents.get(what).into_iter().flatten()
    }

    /// Notes what somebody depends on now, who depended on other things before.
    pub(super) fn change(&mut self, who: &Arc<str>, before: &BTreeSet<Arc<str>>, now: &BTreeSet<Arc<str>>) {
        for gone in before.difference(now) {
            if let Some(dependents) = self.dependents.get_mut(gone) {
                dependents.remove(who);
                if dependents.is_empty() {
                    self.dependents.remove(gone);
                }
            }
        }
        for new in now.difference(before) {
            self.dependents.entry(new.clone()).or_default().insert(who.clone());
        }
    }
}

/// Things of which several services may have the same.
#[derive(Debug, Default)]
pub(super) struct Counted(BTreeMap<Bytes, usize>);

impl Counted {
    /// Notes what a service has now, which had something else before. Returns whether that changes what there
    /// is.
    pub(super) fn change(&mut self, before: Option<Bytes>, now: Option<Bytes>) -> bool {
        if before == now {
            return false;
        }
        let mut changed = false;
        if let Some(now) = now {
            let count = self.0.entry(now).or_default();
            *count += 1;
            changed |= *count == 1;
        }
        if let Some(before) = before
            && let Some(count) = self.0.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&before);
                changed = true;
            }
        }
        changed
    }

    /// All that there is.
    pub(super) fn all(&self) -> Arc<BTreeSet<Bytes>> {
        Arc::new(self.0.keys().cloned().collect())
    }
}
