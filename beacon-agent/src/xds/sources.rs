//! Where a client asks for what a resource refers to: as it has asked for the resource.

use tower_common::view::{ConfigSource, EGRESS, Layer, cluster, sources};

use super::{kind::ResourceType, selection::Batch};

/// Where one client asks.
#[derive(Debug)]
pub(super) struct Sources {
    source: ConfigSource,
    /// What a cluster ends with whose endpoints are discovered, and that refers to nothing else.
    suffix: Vec<u8>,
}

impl Sources {
    /// For a client that asks here.
    pub(super) fn new(source: ConfigSource) -> Self {
        Self { source, suffix: cluster::suffix(source) }
    }

    /// Fills that into what is about to be sent, which has been composed for an aggregated stream.
    /// `assignments` are there for clusters whose endpoints are discovered.
    pub(super) fn fill(&self, batch: &mut Batch, assignments: &Layer) {
        if self.source == ConfigSource::Aggregated {
            return;
        }
        for resource in &mut batch.resources {
            let by_eds = assignments.contains_key(&resource.name);
            let filled = match batch.kind {
                ResourceType::Cluster if resource.refers.is_some() => {
                    sources::fill_cluster(&resource.body, self.source, by_eds).ok()
                }
                ResourceType::Cluster if by_eds => Some([&resource.body, &*self.suffix].concat()),
                ResourceType::Listener if *resource.name != *EGRESS => {
                    sources::fill_listener(&resource.body, self.source).ok()
                }
                ResourceType::Cluster
                | ResourceType::Listener
                | ResourceType::Secret
                | ResourceType::Runtime
                | ResourceType::Endpoint
                | ResourceType::Extension
                | ResourceType::ScopedRoute
                | ResourceType::Route => None,
            };
            if let Some(filled) = filled {
                resource.body = filled.into();
            }
        }
    }
}
