//! What is offered beside the composition: clusters that are gone and still referred to, with their endpoints,
//! and the endpoints of an Envoy's neighbours.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use tower_common::view::{self, LOCAL, XdsResource};

use super::Offer;

impl Offer {
    /// Lets clusters go that nothing of the client's refers to any more. `referred` as for an update.
    pub(in crate::xds) fn release(&mut self, referred: impl FnOnce() -> BTreeSet<Arc<str>>) {
        if self.retired.is_empty() {
            return;
        }
        let in_use = self.in_use(referred());
        let before = self.retired.len();
        self.retired.retain(|name, _| in_use.contains(name));
        if self.retired.len() != before {
            self.merge_retired();
        }
    }

    pub(super) fn in_use(&self, mut referred: BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
        referred.extend(self.pieces.in_use().flat_map(XdsResource::clusters).cloned());
        referred
    }

    pub(super) fn merge_retired(&mut self) {
        self.clusters = self.composition.clusters.clone();
        if !self.retired.is_empty() {
            let clusters = Arc::make_mut(&mut self.clusters);
            clusters.extend(self.retired.iter().map(|(name, (cluster, _))| (name.clone(), cluster.clone())));
        }
        self.merge_assignments();
    }

    pub(super) fn merge_assignments(&mut self) {
        self.assignments = self.composition.assignments.clone();
        if self.retired.is_empty() && self.locals.is_empty() {
            return;
        }
        let assignments = Arc::make_mut(&mut self.assignments);
        for (name, (_, assignment)) in &self.retired {
            if let Some(assignment) = assignment {
                assignments.entry(name.clone()).or_insert_with(|| assignment.clone());
            }
        }
        for name in &self.locals {
            let service = name.rsplit('/').next().unwrap_or_default();
            let of_service = self.composition.assignments.get(service);
            if let Some(local) = of_service.and_then(|held| view::assignment::local(name, held)) {
                assignments.insert(name.clone(), local);
            }
        }
    }
}

/// Of the endpoints that a client asks for, those of its neighbours.
pub(super) fn locals(names: &BTreeSet<Arc<str>>) -> Vec<&Arc<str>> {
    let prefix = format!("{LOCAL}/");
    let from = names.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
    from.take_while(|name| name.starts_with(&prefix)).collect()
}
