//! What the tests of this module share: worlds to serve, a client's side of the wire, and scripts.

pub(super) mod script;
pub(super) mod wire;

use std::{collections::BTreeMap, sync::Arc};

use tower_common::view::{Composition, Layer, XdsResource};
use tower_proto::envoy::{
    envoy::config::{
        cluster::v3::Cluster,
        endpoint::v3::{ClusterLoadAssignment, cluster_load_assignment::Policy},
        route::v3::VirtualHost,
    },
    google::protobuf::{Duration, UInt32Value},
};

/// The revisions of a service's cluster, endpoints and routes. A revision is content: a client can read
/// it in what it gets.
pub(super) type Revisions = [u32; 3];

/// Services to be served.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct World {
    pub(super) services: BTreeMap<String, Revisions>,
    pub(super) complete: bool,
}

/// Services in their first revision, completely loaded.
pub(super) fn composition(services: &[&str]) -> Composition {
    let services = services.iter().map(|&name| (name.to_owned(), [1; 3])).collect();
    World { services, complete: true }.compose(&Composition::default())
}

impl World {
    /// The composition of this world. Layers that are as before are the same as before, as they are when
    /// a composer made them.
    pub(super) fn compose(&self, before: &Composition) -> Composition {
        let layer = |before: &Layer, index: usize, make: fn(&str, u32) -> XdsResource| {
            let layer: BTreeMap<Arc<str>, XdsResource> = self
                .services
                .iter()
                .map(|(name, revisions)| (name.as_str().into(), make(name, revisions[index])))
                .collect();
            if **before == layer { before.clone() } else { Arc::new(layer) }
        };
        Composition {
            complete: self.complete,
            clusters: layer(&before.clusters, 0, cluster),
            assignments: layer(&before.assignments, 1, assignment),
            virtual_hosts: layer(&before.virtual_hosts, 2, virtual_host),
            ..Composition::default()
        }
    }
}

fn cluster(name: &str, revision: u32) -> XdsResource {
    let cluster = Cluster {
        name: name.to_owned(),
        connect_timeout: Some(Duration { seconds: revision.into(), nanos: 0 }),
        ..Default::default()
    };
    XdsResource::new(name, &cluster)
}

fn assignment(name: &str, revision: u32) -> XdsResource {
    let policy =
        Policy { overprovisioning_factor: Some(UInt32Value { value: revision }), ..Default::default() };
    let assignment =
        ClusterLoadAssignment { cluster_name: name.to_owned(), policy: Some(policy), ..Default::default() };
    XdsResource::new(name, &assignment)
}

fn virtual_host(name: &str, revision: u32) -> XdsResource {
    let domains = vec![name.to_owned(), revision.to_string()];
    XdsResource::new(name, &VirtualHost { name: name.to_owned(), domains, ..Default::default() })
}
