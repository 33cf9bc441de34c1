//! The last good state of a source, to be kept on disk: what is registered where, and what is published.
//! What is published and not registered is held, or about to be judged.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;

use super::{Place, Position, endpoint::EndpointKey};

/// All that a model must know to go on where another has stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::sources) struct Saved {
    pub(in crate::sources) position: Position,
    pub(in crate::sources) places: Vec<Place>,
    pub(in crate::sources) entries: Vec<SavedEntry>,
    pub(in crate::sources) endpoints: Vec<SavedEndpoint>,
    /// Services that are published.
    pub(in crate::sources) services: Vec<Arc<str>>,
    /// Host names, each with the addresses that it was last known to have.
    pub(in crate::sources) names: Vec<(Arc<str>, Vec<IpAddr>)>,
}

/// An entry, without what it says: the next complete reading tells that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sources) struct SavedEntry {
    pub(in crate::sources) path: Arc<str>,
    pub(in crate::sources) place: Arc<str>,
    pub(in crate::sources) service: Arc<str>,
    pub(in crate::sources) rank: u64,
    pub(in crate::sources) index: u64,
    /// What it claims.
    pub(in crate::sources) claimed: Vec<EndpointKey>,
}

/// A published endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sources) struct SavedEndpoint {
    pub(in crate::sources) key: EndpointKey,
    pub(in crate::sources) index: u64,
    /// An encoded [`tower_proto::v1::Endpoint`].
    pub(in crate::sources) body: Bytes,
}
