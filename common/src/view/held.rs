//! What became of a service's assignment on one host, as far as composing goes.

use std::sync::Arc;

use crate::resource::Version;

/// A service with an assignment, as it is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// The release that the assignment gives to this host; empty is the release `default`. `None` if that
    /// cannot be told.
    pub assigned: Option<Arc<str>>,
    /// The release that is served; empty is the release `default`.
    pub served: Arc<str>,
    /// Why that is another one than was assigned: something cannot be understood, or is missing.
    pub problem: Option<Arc<str>>,
    /// What is served otherwise than the release says, and why.
    pub notes: Vec<String>,
    /// What an Envoy has to accept.
    pub parts: Vec<Part>,
}

/// An xDS resource of a service, or its piece of the egress routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Its name; that of the service, if it is a piece of the egress routes.
    pub name: Arc<str>,
    /// The version that is served.
    pub version: Version,
}

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// An Envoy cluster.
    Cluster,
    /// A virtual host of the egress routes.
    Piece,
    /// A listener.
    Listener,
    /// A route configuration of a listener.
    Routes,
    /// A secret that a cluster or a listener refers to.
    Secret,
}
