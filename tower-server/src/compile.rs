//! From a service document to what Envoys are given: `compile(document) -> bundle`, the same bytes each time.
//!
//! - [`cluster`]: the clusters of callers, with [`balancing`], [`breaker`], [`health`], [`outlier`],
//!   [`protocol`]
//! - [`routes`]: virtual hosts, with [`limits`], [`rbac`] and [`metadata`]
//! - [`inbound`]: listeners in front of the application; [`tcp`]: bytes, and local ports of dependencies;
//!   [`tls`], [`access_log`]
//! - [`dependencies`]: what a service wants otherwise than those that it calls
//! - [`patches`]: the platform's own changes of all this
//! - [`plan`]: what a change does to connections
//! - [`messages`], [`convert`]: Envoy's messages and values; [`constraints`]: what they may be
//!
//! Nothing here asks anybody, looks at a clock, or knows which hosts there are.

mod access_log;
mod balancing;
mod breaker;
mod cluster;
mod constraints;
mod convert;
mod dependencies;
mod health;
mod inbound;
mod limits;
pub mod messages;
mod metadata;
mod outlier;
mod patches;
pub mod plan;
mod protocol;
mod rbac;
mod routes;
mod tcp;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeMap;

use prost::Message;
use tower_common::{
    document::{
        Document, Effective, Finding,
        model::{PatchKind, Protocol},
    },
    view,
};
use tower_proto::v1::{
    Bundle, ClusterPart, DependencyPart, Kind, ListenerPart, SecretPart, Side, VirtualHostPart, bundle::Part,
};

use self::{messages::canonical, patches::Patches};

/// What the hosts of a mesh are given for a service with this document.
///
/// # Errors
/// If a patch does not fit. Everything else that can be wrong with a document was found when it was checked.
pub fn compile(effective: &Effective, service: &str) -> Result<Bundle, Vec<Finding>> {
    let document = &effective.document;
    let spec = &document.spec;
    let mut patches = Patches::new(service, &spec.patches);
    let mut parts = Parts::default();
    cluster::add(service, &spec.callers, &mut patches, &mut parts);
    if spec.callers.protocol.is_none_or(Protocol::is_http) {
        let host = routes::callers(service, &spec.callers);
        let grpc = routes::for_grpc(&host);
        parts.virtual_host(
            service,
            &VirtualHostPart {
                virtual_host: patches.apply(PatchKind::VirtualHost, service, canonical(&host)),
                side: Side::Callers.into(),
                route_config: String::new(),
                grpc: canonical(&grpc).into(),
                access_log: access_log::callers(&spec.callers.access_log).unwrap_or_default().into(),
            },
        );
    }
    let inbound = (!spec.inbound.ports.is_empty()).then_some(&spec.inbound.tls);
    for (name, secret) in tls::secrets(service, inbound, &spec.callers.tls) {
        parts.secret(&name, &secret);
    }
    inbound::add(service, document, &mut patches, &mut parts);
    tcp::add(service, &spec.outbound, &mut patches, &mut parts);
    dependencies::add(&spec.outbound, &mut parts);
    let findings = patches.findings();
    if !findings.is_empty() {
        return Err(findings);
    }
    let bundle = parts.bundle();
    match view::check_release(service, &bundle) {
        Ok(()) => Ok(bundle),
        Err(problem) => Err(vec![patches::no_host_would_serve(&problem)]),
    }
}

/// What is wrong with the patches of a part of the platform, as far as can be told without a service's document.
pub fn check_patches(part: &Document) -> Vec<Finding> {
    patches::check_each(&part.spec.patches)
}

/// The parts of a bundle by kind and name.
#[derive(Debug, Default)]
struct Parts(BTreeMap<(i32, String), Vec<u8>>);

impl Parts {
    fn cluster(&mut self, name: &str, part: &ClusterPart) {
        self.add(Kind::Cluster, name, part);
    }

    fn virtual_host(&mut self, name: &str, part: &VirtualHostPart) {
        self.add(Kind::VirtualHost, name, part);
    }

    fn listener(&mut self, name: &str, part: &ListenerPart) {
        self.add(Kind::Listener, name, part);
    }

    fn secret(&mut self, name: &str, part: &SecretPart) {
        self.add(Kind::SecretReference, name, part);
    }

    fn extension(&mut self, name: &str, part: &DependencyPart) {
        self.add(Kind::Extension, name, part);
    }

    /// The maps of our own messages are sorted, so they are written in one order.
    fn add(&mut self, kind: Kind, name: &str, part: &impl Message) {
        self.0.insert((kind.into(), name.to_owned()), part.encode_to_vec());
    }

    fn bundle(self) -> Bundle {
        let part = |((kind, name), body): ((i32, String), Vec<u8>)| Part { kind, name, body: body.into() };
        Bundle { parts: self.0.into_iter().map(part).collect() }
    }
}
