//! The pieces of the egress routes: a virtual host for each service.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use prost::DecodeError;
use tower_proto::v1;

use super::{Composer, layers::set};
use crate::view::{
    XdsResource,
    piece::{named, overridden, without_empty},
    release::{Host, Release},
    route::default_virtual_host,
};

impl Composer {
    /// Brings a service's piece in step.
    pub(super) fn update_piece(&mut self, service: &Arc<str>) -> bool {
        let granted = self.domains.granted(service);
        self.update_domain(service, granted.as_deref());
        let (piece, grpc) = match (granted, self.release(service)) {
            (None, _) => (None, None),
            (Some(domain), None) => (Some(self.default_piece(service, &domain)), None),
            (Some(domain), Some(release)) => match &release.host {
                // It is called by TCP.
                None => (None, None),
                Some(host) => self.release_piece(service, host, &domain),
            },
        };
        let composition = &mut self.composition;
        set(&mut composition.virtual_hosts, service, piece) | set(&mut composition.grpc_hosts, service, grpc)
    }

    /// What is served otherwise than a release says.
    pub(super) fn notes(&self, service: &str, release: Option<&Release>) -> Vec<String> {
        let weighed = release.and_then(|release| release.host.as_ref()).map(|host| &host.weighed);
        let empty = |cluster: &&Arc<str>| self.is_empty(cluster);
        let left = weighed.into_iter().flatten().any(|cluster| !self.is_empty(cluster));
        let mut notes: Vec<String> = weighed
            .into_iter()
            .flatten()
            .filter(|cluster| left && empty(cluster))
            .map(|cluster| format!("{cluster} has no endpoint in service, and gets no traffic"))
            .collect();
        if let Some((caller, _)) = self.caller(service) {
            notes.push(format!("called from here as {caller} says"));
        }
        notes
    }

    fn default_piece(&self, service: &Arc<str>, domain: &str) -> XdsResource {
        let piece = default_virtual_host(service, domain);
        match self.caller(service) {
            Some((_, by)) => {
                let body = overridden(&piece.body, &by, false);
                XdsResource::from_body(service.clone(), or(body, &piece.body))
            }
            None => piece,
        }
    }

    fn release_piece(
        &self,
        service: &Arc<str>,
        host: &Host,
        domain: &str,
    ) -> (Option<XdsResource>, Option<XdsResource>) {
        let by = self.caller(service).map(|(_, by)| by);
        let piece = |body: &Bytes, grpc: bool| {
            let body = or(without_empty(body, |cluster| self.is_empty(cluster)), body);
            let body = match &by {
                Some(by) => or(overridden(&body, by, grpc), &body),
                None => body,
            };
            let mut piece = XdsResource::from_body(service.clone(), named(&body, service, domain).into());
            piece.refers = Some(host.refers.clone());
            piece
        };
        (Some(piece(&host.body, false)), host.grpc.as_ref().map(|body| piece(body, true)))
    }

    /// Who of this host's own services says how another is to be called, and what; if several do, the first
    /// by name.
    fn caller(&self, service: &str) -> Option<(Arc<str>, v1::DependencyPart)> {
        self.called.of(service).find_map(|caller| {
            let release = self.release(caller)?;
            let part = release.dependencies.iter().find(|part| {
                let says = part.request_timeout_ms.is_some()
                    || part.backend_request_timeout_ms.is_some()
                    || part.retry_attempts.is_some();
                part.service == service && says
            })?;
            Some((caller.clone(), part.clone()))
        })
    }

    /// Whether a cluster is not there, or has no endpoint in service.
    fn is_empty(&self, cluster: &str) -> bool {
        self.empty.contains(cluster) || !self.composition.clusters.contains_key(cluster)
    }

    fn update_domain(&mut self, service: &Arc<str>, granted: Option<&str>) {
        // A service has one domain at most, and it is its name in lower case.
        let domain = service.to_ascii_lowercase();
        let domains = &mut self.composition.domains;
        let held = domains.get(domain.as_str()) == Some(service);
        match granted {
            Some(_) if !held => {
                Arc::make_mut(domains).insert(domain.into(), service.clone());
            }
            None if held => {
                Arc::make_mut(domains).remove(domain.as_str());
            }
            Some(_) | None => {}
        }
    }
}

impl Release {
    /// The other services whose endpoints are in its clusters.
    pub(super) fn lenders(&self) -> BTreeSet<Arc<str>> {
        self.clusters.iter().filter_map(|cluster| Some(cluster.endpoints.as_ref()?.of.clone())).collect()
    }
}

/// What was decoded when the release was read can be edited.
fn or(edited: Result<Vec<u8>, DecodeError>, body: &Bytes) -> Bytes {
    edited.map_or_else(|_| body.clone(), Bytes::from)
}
