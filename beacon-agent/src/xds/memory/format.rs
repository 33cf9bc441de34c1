//! The bytes of what is remembered of clients.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use tower_common::{
    resource::Version,
    sealed::{Kind, SealError},
    view::{References, XdsResource},
};
use tower_proto::envoy::envoy::config::{
    cluster::v3::Cluster,
    listener::v3::Listener,
    route::v3::{RouteConfiguration, VirtualHost},
};

use super::{MAX_CLIENTS, Memories};
use crate::xds::{
    kind::ResourceType,
    triage::{Refused, Triage},
};

const KIND: Kind = Kind { magic: b"TOWRREFU", format: 1 };

/// A larger file is neither written nor read.
const MAX_FILE_BYTES: usize = 4 << 20;

/// What a client accepted last is kept with what it refused since, because leaving it out may be to take it away
/// from the client. A refusal with more of it is not kept.
const MAX_INSTEAD_BYTES: usize = 64 << 10;

/// How much of a client's message is kept.
const MAX_MESSAGE_BYTES: usize = 512;

/// Why a file is not what is remembered of clients.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// It is not whole, or something else.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// It is too large.
    #[error("it has {0} bytes, more than {MAX_FILE_BYTES}")]
    Large(usize),
    /// Its payload does not decode.
    #[error("its payload cannot be decoded: {0}")]
    Payload(#[from] prost::DecodeError),
    /// A content hash is none.
    #[error("the version of {name:?} in it has {bytes} bytes instead of 16")]
    Version {
        /// Of which resource.
        name: String,
        /// What it has.
        bytes: usize,
    },
    /// It is another mesh's.
    #[error("it belongs to the scope {actual:?}, and this process to {expected:?}")]
    Scope {
        /// This process's scope.
        expected: String,
        /// The file's scope.
        actual: String,
    },
}

impl MemoryError {
    /// Whether the file is of no use to anybody.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Read(_) | Self::Scope { .. } | Self::Seal(SealError::Format { .. }) => false,
            Self::Seal(_) | Self::Large(_) | Self::Payload(_) | Self::Version { .. } => true,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct State {
    #[prost(string, tag = "1")]
    scope: String,
    /// Who said something new last goes last.
    #[prost(message, repeated, tag = "2")]
    clients: Vec<ClientState>,
}

#[derive(Clone, PartialEq, Message)]
struct ClientState {
    #[prost(string, tag = "1")]
    node_id: String,
    #[prost(string, tag = "2")]
    user_agent: String,
    /// The oldest first.
    #[prost(message, repeated, tag = "3")]
    refused: Vec<RefusedState>,
}

#[derive(Clone, PartialEq, Message)]
struct RefusedState {
    /// Empty for a service's routes.
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(bytes = "vec", tag = "3")]
    version: Vec<u8>,
    #[prost(string, tag = "4")]
    message: String,
    #[prost(bytes = "bytes", optional, tag = "5")]
    instead: Option<Bytes>,
}

/// The bytes of a file.
pub(super) fn encode(memories: &Memories, scope: &str) -> Vec<u8> {
    let mut clients: Vec<_> = memories.by_client.iter().collect();
    clients.sort_by_key(|(_, (change, _))| std::cmp::Reverse(*change));
    let mut room = MAX_FILE_BYTES / 2;
    let mut state = State { scope: scope.to_owned(), clients: Vec::new() };
    for ((node_id, user_agent), (_, memory)) in clients {
        let of_type = |(kind, triage): (&ResourceType, &Triage)| {
            triage.refused().filter_map(|refused| RefusedState::of(kind.url(), refused)).collect::<Vec<_>>()
        };
        // No private key gets into a file of ours.
        let kept = memory.resources.iter().filter(|(kind, _)| **kind != ResourceType::Secret);
        let pieces = memory.pieces.refused().filter_map(|refused| RefusedState::of("", refused));
        let client = ClientState {
            node_id: node_id.clone(),
            user_agent: user_agent.clone(),
            refused: kept.flat_map(of_type).chain(pieces).collect(),
        };
        let bytes = client.encoded_len();
        if !client.refused.is_empty() && bytes <= room {
            room -= bytes;
            state.clients.push(client);
        }
    }
    state.clients.reverse();
    KIND.seal(|file| state.encode(file).expect("a vector has room"))
}

/// Reads the bytes of a file.
pub(super) fn decode(file: &[u8], scope: &str) -> Result<Memories, MemoryError> {
    if file.len() > MAX_FILE_BYTES {
        return Err(MemoryError::Large(file.len()));
    }
    decode_payload(KIND.open(file)?, scope)
}

fn decode_payload(payload: &[u8], scope: &str) -> Result<Memories, MemoryError> {
    let state = State::decode(payload)?;
    if state.scope != scope {
        return Err(MemoryError::Scope { expected: scope.to_owned(), actual: state.scope });
    }
    let mut memories = Memories::default();
    let superfluous = state.clients.len().saturating_sub(MAX_CLIENTS);
    for client in state.clients.into_iter().skip(superfluous) {
        let memory = memories.latest((client.node_id, client.user_agent));
        for refused in client.refused {
            let kind = ResourceType::from_url(&refused.type_url);
            let triage = match kind {
                Some(kind) => memory.resources.entry(kind).or_default(),
                None if refused.type_url.is_empty() => &mut memory.pieces,
                // Another build's.
                None => continue,
            };
            triage.refuse(refused.into_refused(kind)?);
        }
    }
    Ok(memories)
}

impl RefusedState {
    fn of(type_url: &str, refused: &Refused) -> Option<Self> {
        let instead = refused.instead.as_ref().map(|instead| instead.body.clone());
        if instead.as_ref().is_some_and(|body| body.len() > MAX_INSTEAD_BYTES) {
            return None;
        }
        let message = &refused.message[..refused.message.floor_char_boundary(MAX_MESSAGE_BYTES)];
        Some(Self {
            type_url: type_url.to_owned(),
            name: refused.name.to_string(),
            version: refused.version.0.to_vec(),
            message: message.to_owned(),
            instead,
        })
    }

    /// `kind`: `None` for a service's routes.
    fn into_refused(self, kind: Option<ResourceType>) -> Result<Refused, MemoryError> {
        let bytes = self.version.len();
        let Ok(version) = self.version.try_into() else {
            return Err(MemoryError::Version { name: self.name, bytes });
        };
        let name: Arc<str> = self.name.into();
        Ok(Refused {
            version: Version(version),
            message: self.message.into(),
            instead: self.instead.map(|body| XdsResource {
                refers: refers(kind, &name, &body).map(Arc::new),
                ..XdsResource::from_body(name.clone(), body)
            }),
            name,
        })
    }
}

/// What a body refers to, which goes with it wherever it is composed.
fn refers(kind: Option<ResourceType>, name: &str, body: &Bytes) -> Option<References> {
    match kind {
        None => {
            let found = References::of_virtual_host(&VirtualHost::decode(body.clone()).ok()?);
            let own = found.clusters.iter().map(|cluster| &**cluster).eq([name]);
            // A piece that does not say refers to its own.
            (!own).then_some(found)
        }
        Some(ResourceType::Cluster) => {
            let found = References::of_cluster(&Cluster::decode(body.clone()).ok()?).ok()?;
            (found != References::default()).then_some(found)
        }
        Some(ResourceType::Listener) => References::of_listener(&Listener::decode(body.clone()).ok()?).ok(),
        Some(ResourceType::Route) => {
            Some(References::of_routes(&RouteConfiguration::decode(body.clone()).ok()?))
        }
        Some(
            ResourceType::Secret
            | ResourceType::Runtime
            | ResourceType::Endpoint
            | ResourceType::Extension
            | ResourceType::ScopedRoute,
        ) => None,
    }
}

#[cfg(test)]
mod tests;
