//! What is told of assignments.

use std::{collections::BTreeSet, sync::Arc};

use super::{Composer, assigned::Assigned, layers::Names};
use crate::view::{Composition, Held, Layer, Part, PartKind};

impl Composer {
    /// Brings what is told of a service's assignment in step.
    pub(super) fn update_held(&mut self, service: &Arc<str>) -> bool {
        let now = self.assigned.get(service).map(|assigned| self.held(service, assigned));
        let held = &mut self.composition.held;
        if held.get(service).map(|held| &**held) == now.as_ref() {
            return false;
        }
        let held = Arc::make_mut(held);
        match now {
            Some(now) => held.insert(service.clone(), Arc::new(now)),
            None => held.remove(service),
        };
        true
    }

    fn held(&self, service: &Arc<str>, assigned: &Assigned) -> Held {
        let default = Names::of_default(service);
        let names = self.names.get(service).unwrap_or(&default);
        let Composition { clusters, virtual_hosts, listeners, route_configs, secrets, .. } =
            &self.composition;
        let mut parts = Vec::new();
        let mut note = |kind, layer: &Layer, name: &Arc<str>| {
            if let Some(resource) = layer.get(name) {
                parts.push(Part { kind, name: name.clone(), version: resource.version });
            }
        };
        let in_service = |layer: &Layer, names: &BTreeSet<Arc<str>>| {
            let served = names.iter().filter_map(|name| layer.get(name)?.refers.clone());
            served.collect::<Vec<_>>()
        };
        // An Envoy asks for what something refers to, and for nothing else.
        let by_listeners = in_service(listeners, &names.listeners);
        let by_clusters = in_service(clusters, &names.clusters);
        let referred = by_listeners.iter().chain(&by_clusters);
        let (mut routes, mut referred_secrets) = (BTreeSet::new(), BTreeSet::new());
        for references in referred {
            routes.extend(references.routes.intersection(&names.routes).cloned());
            referred_secrets.extend(references.secrets.intersection(&names.secrets).cloned());
        }
        names.clusters.iter().for_each(|name| note(PartKind::Cluster, clusters, name));
        note(PartKind::Piece, virtual_hosts, service);
        names.listeners.iter().for_each(|name| note(PartKind::Listener, listeners, name));
        routes.iter().for_each(|name| note(PartKind::Routes, route_configs, name));
        referred_secrets.iter().for_each(|name| note(PartKind::Secret, secrets, name));
        Held {
            assigned: assigned.wanted.clone(),
            served: assigned.release.as_ref().map_or_else(|| "".into(), |release| release.id.clone()),
            problem: assigned.problem.clone(),
            notes: self.notes(service, assigned.release.as_deref()),
            parts,
        }
    }
}
