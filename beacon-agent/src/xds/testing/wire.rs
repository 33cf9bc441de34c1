//! A client's side of both variants: requests to send, and responses to read.

use std::{collections::BTreeSet, fmt::Debug};

use prost::Message;
use tower_proto::envoy::{
    envoy::{
        config::{
            cluster::v3::Cluster,
            core::v3::TypedExtensionConfig,
            endpoint::v3::ClusterLoadAssignment,
            listener::v3::Listener,
            route::v3::{RouteConfiguration, ScopedRouteConfiguration},
        },
        extensions::transport_sockets::tls::v3::Secret,
        service::{
            discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest},
            runtime::v3::Runtime,
        },
    },
    google::{protobuf::Any, rpc::Status},
};

use crate::xds::{
    delta::Delta,
    kind::{Mode, ResourceType},
    protocol::Protocol,
    sotw::Sotw,
};

/// What a client wants to say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::xds) struct Say {
    /// Names to add; `*` is the wildcard.
    pub(in crate::xds) add: Vec<String>,
    /// Names to take away.
    pub(in crate::xds) remove: Vec<String>,
    /// The nonce; `None` is what a good client would send.
    pub(in crate::xds) nonce: Option<String>,
    /// Reject the response.
    pub(in crate::xds) reject: bool,
    /// With this message, if it is not empty.
    pub(in crate::xds) message: String,
    /// Names that the client has from an earlier stream (delta).
    pub(in crate::xds) initial: Vec<String>,
}

/// What a client has read.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::xds) struct Read {
    pub(in crate::xds) kind: ResourceType,
    pub(in crate::xds) nonce: String,
    pub(in crate::xds) version: String,
    /// Name, and content as [`describe`] puts it.
    pub(in crate::xds) resources: Vec<(String, String)>,
    pub(in crate::xds) removed: Vec<String>,
    pub(in crate::xds) identifier: String,
}

/// What a client remembers of one type on one stream.
#[derive(Debug, Clone, Default)]
pub(in crate::xds) struct Memory {
    /// What it wants.
    pub(in crate::xds) names: BTreeSet<String>,
    /// The newest nonce that it has read.
    pub(in crate::xds) nonce: String,
    /// The version that it has accepted last.
    pub(in crate::xds) version: String,
}

/// A variant of the protocol, from the client's side.
pub(in crate::xds) trait Wire: Protocol<Request: Clone, Response: Debug> {
    fn request(kind: ResourceType, memory: &mut Memory, say: Say) -> Self::Request;
    fn read(response: Self::Response) -> Read;
}

impl Wire for Sotw {
    fn request(kind: ResourceType, memory: &mut Memory, say: Say) -> Self::Request {
        memory.names.extend(say.add);
        memory.names.retain(|name| !say.remove.contains(name));
        DiscoveryRequest {
            type_url: kind.url().to_owned(),
            resource_names: memory.names.iter().cloned().collect(),
            version_info: memory.version.clone(),
            response_nonce: say.nonce.unwrap_or_else(|| memory.nonce.clone()),
            error_detail: error(say.reject, &say.message),
            ..Default::default()
        }
    }

    fn read(response: Self::Response) -> Read {
        let kind = ResourceType::from_url(&response.type_url).expect("a known type");
        Read {
            kind,
            nonce: response.nonce,
            version: response.version_info,
            resources: response.resources.iter().map(|any| describe(kind, any)).collect(),
            removed: Vec::new(),
            identifier: response.control_plane.expect("a control plane").identifier,
        }
    }
}

impl Wire for Delta {
    fn request(kind: ResourceType, memory: &mut Memory, say: Say) -> Self::Request {
        memory.names.extend(say.add.iter().cloned());
        memory.names.retain(|name| !say.remove.contains(name) || say.add.contains(name));
        let initial = say.initial.into_iter().map(|name| (name, "of an earlier stream".to_owned()));
        DeltaDiscoveryRequest {
            type_url: kind.url().to_owned(),
            resource_names_subscribe: say.add,
            resource_names_unsubscribe: say.remove,
            initial_resource_versions: initial.collect(),
            response_nonce: match (say.nonce, say.reject) {
                (Some(nonce), _) => nonce,
                (None, true) => memory.nonce.clone(),
                (None, false) => String::new(),
            },
            error_detail: error(say.reject, &say.message),
            ..Default::default()
        }
    }

    fn read(response: Self::Response) -> Read {
        let kind = ResourceType::from_url(&response.type_url).expect("a known type");
        let read = response.resources.iter().map(|resource| {
            let described = describe(kind, resource.resource.as_ref().expect("a body"));
            assert_eq!(resource.name, described.0);
            assert!(!resource.version.is_empty());
            described
        });
        Read {
            kind,
            resources: read.collect(),
            nonce: response.nonce,
            version: response.system_version_info,
            removed: response.removed_resources,
            identifier: response.control_plane.expect("a control plane").identifier,
        }
    }
}

/// A resource's name, and its content in a few characters: revisions, the pieces of routes, a port.
fn describe(kind: ResourceType, any: &Any) -> (String, String) {
    assert_eq!(any.type_url, kind.url());
    let body = any.value.as_slice();
    match kind {
        ResourceType::Cluster => {
            let cluster = Cluster::decode(body).unwrap();
            (cluster.name, cluster.connect_timeout.unwrap().seconds.to_string())
        }
        ResourceType::Endpoint => {
            let assignment = ClusterLoadAssignment::decode(body).unwrap();
            let factor = assignment.policy.unwrap().overprovisioning_factor.unwrap();
            (assignment.cluster_name, factor.value.to_string())
        }
        ResourceType::Secret => (Secret::decode(body).unwrap().name, "1".to_owned()),
        ResourceType::Runtime => (Runtime::decode(body).unwrap().name, "1".to_owned()),
        ResourceType::Extension => (TypedExtensionConfig::decode(body).unwrap().name, "1".to_owned()),
        ResourceType::ScopedRoute => (ScopedRouteConfiguration::decode(body).unwrap().name, "1".to_owned()),
        ResourceType::Listener => {
            let listener = Listener::decode(body).unwrap();
            let revision = Some(listener.stat_prefix).filter(|revision| !revision.is_empty());
            (listener.name, revision.unwrap_or_else(|| "1".to_owned()))
        }
        ResourceType::Route => {
            let routes = RouteConfiguration::decode(body).unwrap();
            if routes.virtual_hosts.is_empty() {
                return (routes.name, "1".to_owned());
            }
            let ours = routes.virtual_hosts.iter().skip(1);
            let pieces = ours.map(|host| match host.domains[1].as_str() {
                "1" => host.name.clone(),
                revision => format!("{}:{revision}", host.name),
            });
            (routes.name, format!("({})", pieces.collect::<Vec<_>>().join(",")))
        }
    }
}

fn error(reject: bool, message: &str) -> Option<Status> {
    let message = if message.is_empty() { "rejected by the test" } else { message };
    reject.then(|| Status { code: 13, message: message.to_owned(), ..Default::default() })
}

/// The variant's name, for messages.
pub(in crate::xds) fn name<P: Protocol>() -> &'static str {
    match P::MODE {
        Mode::Sotw => "sotw",
        Mode::Delta => "delta",
    }
}
