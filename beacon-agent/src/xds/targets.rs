//! The listeners and routes of gRPC's targets, for the names that one client asks for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tower_common::view::{Composition, Layer, XdsResource, grpc};

use super::kind::ResourceType;

/// What a client's targets need besides clusters and endpoints.
#[derive(Debug, Default)]
pub(super) struct Targets {
    listeners: Resolved,
    routes: Resolved,
}

/// Resources by the names that were asked for, and what they were made of.
#[derive(Debug, Default)]
struct Resolved {
    layer: Layer,
    names: BTreeSet<Arc<str>>,
    /// The services that they stand for.
    services: BTreeMap<Arc<str>, Arc<str>>,
    pieces: Layer,
    /// Pieces that are others for gRPC.
    others: Layer,
}

impl Targets {
    /// What there is of these names now.
    pub(super) fn resolve(
        &mut self,
        kind: ResourceType,
        names: &BTreeSet<Arc<str>>,
        composition: &Composition,
    ) {
        match kind {
            ResourceType::Listener => {
                self.listeners.resolve(names, composition, |target, _| Some(grpc::listener(target)));
            }
            ResourceType::Route => self.routes.resolve(names, composition, grpc::routes),
            ResourceType::Secret
            | ResourceType::Runtime
            | ResourceType::Cluster
            | ResourceType::Endpoint
            | ResourceType::Extension
            | ResourceType::ScopedRoute => {}
        }
    }

    /// The targets that stand for a service, of those whose routes are asked for.
    pub(super) fn of_service(&self, service: &str) -> impl Iterator<Item = &Arc<str>> {
        self.routes.services.iter().filter(move |(_, named)| ***named == *service).map(|(target, _)| target)
    }

    pub(super) fn listeners(&self) -> &Layer {
        &self.listeners.layer
    }

    pub(super) fn routes(&self) -> &Layer {
        &self.routes.layer
    }
}

impl Resolved {
    fn resolve(
        &mut self,
        names: &BTreeSet<Arc<str>>,
        composition: &Composition,
        make: impl Fn(&str, &XdsResource) -> Option<XdsResource>,
    ) {
        let same = Arc::ptr_eq(&self.pieces, &composition.virtual_hosts)
            && Arc::ptr_eq(&self.others, &composition.grpc_hosts);
        if self.names == *names && same {
            return;
        }
        let mut services = BTreeMap::new();
        let resources = names.iter().filter_map(|target| {
            let service = grpc::service_of(composition, target)?;
            services.insert(target.clone(), service.clone());
            let piece =
                composition.grpc_hosts.get(service).or_else(|| composition.virtual_hosts.get(service))?;
            Some((target.clone(), make(target, piece)?))
        });
        let layer: BTreeMap<_, _> = resources.collect();
        if layer != *self.layer {
            self.layer = Arc::new(layer);
        }
        self.services = services;
        self.names.clone_from(names);
        self.pieces = composition.virtual_hosts.clone();
        self.others = composition.grpc_hosts.clone();
    }
}
