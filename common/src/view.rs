//! What an Envoy sees of a store: `view(store, node)`, the same in Tower (to preview) and Beacon (to
//! serve).
//!
//! - [`composer`]: keeps the parts that are the same for every node, change by change
//! - [`domains`]: which service answers to which host name
//! - [`assignment`], [`cluster`], [`route`], [`listener`]: Envoy messages, and nothing else
//! - `release`: what a compiler made of a service's document, read from the store; `names`: whose it is
//! - `piece`: what becomes of its routes before a host serves them
//! - [`references`]: what a message refers to; [`sources`]: where a client asks for that
//! - `wire`: changing messages without decoding them
//! - [`held`]: what became of assignments
//! - [`grpc`]: what is different for gRPC without a proxy
//!
//! Routes stay in pieces, one per service, and are put together per client ([`route::compose`]): a client
//! may have to wait for one service's piece, or to do without it, and the others must not notice.

pub mod assignment;
pub mod cluster;
pub mod composer;
pub mod domains;
pub mod grpc;
pub mod held;
pub mod listener;
mod names;
mod piece;
pub mod references;
mod release;
pub mod route;
pub mod sources;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::SocketAddr,
    sync::Arc,
};

use bytes::Bytes;
use prost::Message;
use tower_proto::envoy::google::protobuf::Any;

pub use self::{
    composer::evaluate,
    held::{Held, Part, PartKind},
    references::References,
    release::check_release,
};
use crate::{audience::Workload, resource::Version};

/// The name of the listener, and of the route configuration, for calls that leave the host.
pub const EGRESS: &str = "egress";

/// The name that an Envoy's bootstrap gives to the cluster of the Beacon. No service can have it: it could be
/// no host name.
pub const BEACON: &str = "tower:beacon";

/// The name that an Envoy's bootstrap gives to the cluster of its neighbours, for routing that prefers a zone. It
/// asks for the endpoints by this name, a slash, and the service of which they are.
pub const LOCAL: &str = "tower:local";

/// One xDS resource, serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct XdsResource {
    /// Its name in xDS.
    pub name: Arc<str>,
    /// The content hash of its body.
    pub version: Version,
    /// The serialized message, without the `Any` around it.
    pub body: Bytes,
    /// What it refers to, if that is to be known. A piece of routes that does not say refers to the cluster of
    /// its own name.
    pub refers: Option<Arc<References>>,
}

/// Resources of one type by name. Cheap to clone.
pub type Layer = Arc<BTreeMap<Arc<str>, XdsResource>>;

/// What all clients of a host have in common.
#[derive(Debug, Clone, Default)]
pub struct Composition {
    /// Whether every source that is not optional has been read: only then is absence an answer.
    pub complete: bool,
    /// Envoy clusters by name; a service's cluster bears its name.
    pub clusters: Layer,
    /// ClusterLoadAssignments. There is one for each cluster, if need be an empty one.
    pub assignments: Layer,
    /// Those of these clusters that are others for gRPC without a proxy.
    pub grpc_clusters: Layer,
    /// Pieces of the egress route configuration: a virtual host for each service.
    pub virtual_hosts: Layer,
    /// Those of these pieces that are others for gRPC without a proxy.
    pub grpc_hosts: Layer,
    /// Logs of the egress listener, serialized, in which services' requests are written about.
    pub access_logs: Arc<BTreeSet<Bytes>>,
    /// Listeners of services that run on the host, which ask for what they refer to on the aggregated stream.
    pub listeners: Layer,
    /// The route configurations of these listeners.
    pub route_configs: Layer,
    /// What became of the assignments of services that have one.
    pub held: Arc<BTreeMap<Arc<str>, Arc<Held>>>,
    /// The service that owns a domain, which is a service's name in lower case.
    pub domains: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Secrets: where a host finds certificates and keys.
    pub secrets: Layer,
    /// The same, and those with a private key in them, which is not to cross a network.
    pub socket_secrets: Layer,
    /// Runtime layers.
    pub runtimes: Layer,
    /// Configurations of single extensions, such as filters.
    pub extensions: Layer,
    /// Scopes of routes.
    pub scoped_routes: Layer,
}

/// What the view depends on besides the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Where the Envoy listens for calls that leave the host.
    pub egress: SocketAddr,
    /// Where it asks for what a resource refers to.
    pub source: ConfigSource,
    /// What it is.
    pub client: ClientKind,
    /// It is connected by a socket of this host.
    pub local: bool,
    /// Whose listeners it has, if not those of all services that run on the host.
    pub workloads: Option<Arc<[Workload]>>,
}

/// What asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientKind {
    /// A proxy, which wants everything.
    Envoy,
    /// gRPC itself, without a proxy: it wants what its targets need.
    Grpc,
}

/// Where an Envoy asks for what a resource refers to: as it has asked for the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSource {
    /// On the aggregated stream.
    Aggregated,
    /// On a stream of the type, state of the world.
    Sotw,
    /// On a stream of the type, delta.
    Delta,
}

impl NodeView {
    /// An Envoy with an aggregated stream.
    pub fn new(egress: SocketAddr) -> Self {
        Self {
            egress,
            source: ConfigSource::Aggregated,
            client: ClientKind::Envoy,
            local: false,
            workloads: None,
        }
    }
}

impl Composition {
    /// Whether this is the same composition, and not only an equal one. Costs nothing.
    pub fn is_same(&self, other: &Self) -> bool {
        let layers = |of: &Self| {
            [
                &of.clusters,
                &of.grpc_clusters,
                &of.assignments,
                &of.virtual_hosts,
                &of.grpc_hosts,
                &of.listeners,
                &of.route_configs,
                &of.secrets,
                &of.runtimes,
                &of.extensions,
                &of.scoped_routes,
            ]
            .map(Arc::as_ptr)
        };
        self.complete == other.complete
            && layers(self) == layers(other)
            && Arc::ptr_eq(&self.domains, &other.domains)
            && Arc::ptr_eq(&self.held, &other.held)
            && Arc::ptr_eq(&self.access_logs, &other.access_logs)
    }
}

impl XdsResource {
    /// Serializes a message.
    pub fn new(name: &str, message: &impl Message) -> Self {
        Self::from_body(name.into(), message.encode_to_vec().into())
    }

    /// The Envoy clusters that this piece of routes, route configuration or listener refers to.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        let named = self.refers.as_deref().map(|refers| refers.clusters.iter());
        let own = self.refers.is_none().then_some(&self.name);
        named.into_iter().flatten().chain(own)
    }

    /// A message that is serialized already.
    pub fn from_body(name: Arc<str>, body: Bytes) -> Self {
        Self { version: Version::of(&body), name, body, refers: None }
    }
}

/// Without the body, which may be a secret.
impl fmt::Debug for XdsResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{}", self.name, self.version)
    }
}

fn any<M: Message + prost::Name>(message: &M) -> Any {
    Any { type_url: M::type_url(), value: message.encode_to_vec() }
}
