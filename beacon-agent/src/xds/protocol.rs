//! What state of the world and delta have in common, and the words for what a request was.

use std::{collections::BTreeSet, sync::Arc};

use prost::Message;
use tower_common::view::Layer;
use tower_proto::envoy::{envoy::config::core::v3::Node, google::rpc::Status};

use super::{
    channel::Channel,
    kind::{Mode, ResourceType},
    selection::{Batch, Selection},
};

/// One of the two variants of the protocol. Implemented by types without values.
pub(super) trait Protocol: Send + Sync + 'static {
    /// Which one.
    const MODE: Mode;
    /// The field in which clients name what they want.
    const NAMES_FIELD: &'static str;
    /// What clients send.
    type Request: Message + Default + Send + Sync + 'static;
    /// What they are sent.
    type Response: Message + Send + Sync + 'static;

    /// The node that a request names.
    fn take_node(request: &mut Self::Request) -> Option<Node>;

    /// The type that a request is about.
    fn type_url(request: &Self::Request) -> &str;

    /// Refuses what no client sends that is well.
    fn check(request: &Self::Request, limits: &Limits) -> Result<(), Refusal>;

    /// Takes a request in. `first`: it is the first of its type on this stream.
    fn receive(channel: &mut Channel, request: Self::Request, first: bool) -> Option<Answer>;

    /// Whether a response can say that a resource of this type is gone.
    fn tells_removals(kind: ResourceType) -> bool;

    /// What is to be sent now: answers to what the client asked for, and with `news` these as well.
    fn select(
        channel: &Channel,
        layer: &Layer,
        complete: bool,
        news: Option<&BTreeSet<Arc<str>>>,
    ) -> Option<Selection>;

    /// The message.
    fn response(batch: Batch, identifier: &str) -> Self::Response;
}

/// What a request says of a response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// It is accepted.
    Ack {
        /// Of the response.
        nonce: String,
        /// Of the response.
        version: String,
    },
    /// It is rejected: there is an `error_detail`, whatever versions are named.
    Nack {
        /// Of the response.
        nonce: String,
        /// Of the response.
        version: String,
        /// Why.
        status: Status,
    },
    /// The nonce is of no response that waits for an answer.
    Stale,
}

/// What a request was.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Received {
    /// A request for a type that is served.
    Known {
        /// Which type.
        kind: ResourceType,
        /// What it says of a response, if it says anything.
        answer: Option<Answer>,
        /// Whether everything of the type is wanted now.
        wildcard: bool,
        /// How many names are wanted now.
        names: usize,
    },
    /// The type is not one that is served. The other types on the stream are not affected.
    UnknownType(String),
}

/// How much a stream may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Names of one type.
    pub(super) names: usize,
    /// Bytes of one name.
    pub(super) name_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { names: 16_384, name_bytes: 4096 }
    }
}

/// Why a stream is ended by the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// Who is asking is not known.
    #[error("node is missing; the first request of a stream has to name it")]
    NoNode,
    /// A field of the node is too long.
    #[error("{field} has {bytes} bytes, and may have {limit}")]
    LongNode {
        /// Which field.
        field: &'static str,
        /// What it has.
        bytes: usize,
        /// What it may have.
        limit: usize,
    },
    /// On an aggregated stream nothing else tells the type.
    #[error("type_url is missing; each request on an aggregated stream has to name it")]
    NoTypeUrl,
    /// The stream is of another type.
    #[error("this stream serves {}, and {asked:?} is asked for; use the aggregated service", served.as_str())]
    OtherType {
        /// What the service serves.
        served: ResourceType,
        /// What the request names.
        asked: String,
    },
    /// A name is too long.
    #[error("{field} holds a name of {bytes} bytes; a name may have {limit}")]
    LongName {
        /// In which field.
        field: &'static str,
        /// What it has.
        bytes: usize,
        /// What it may have.
        limit: usize,
    },
    /// Too many names.
    #[error("{field}: {count} names of {} are asked for on one stream; the limit is {limit}", kind.as_str())]
    ManyNames {
        /// In which field.
        field: &'static str,
        /// Of which type.
        kind: ResourceType,
        /// What it comes to.
        count: usize,
        /// What it may come to.
        limit: usize,
    },
    /// Taken for an empty list of names, it would be answered with everything.
    #[error("{field} is not supported; ask by name instead")]
    Locators {
        /// Which field.
        field: &'static str,
    },
    /// gRPC takes silence for absence, and a refusal for a reason to ask another server.
    #[error("this beacon has not loaded its configuration yet; try again, or another server")]
    NotLoaded,
    /// The process ends.
    #[error("this beacon is shutting down; connect again")]
    ShuttingDown,
}

impl Refusal {
    /// Whether it is the client's fault.
    fn is_invalid(&self) -> bool {
        match self {
            Self::NoNode
            | Self::LongNode { .. }
            | Self::NoTypeUrl
            | Self::OtherType { .. }
            | Self::LongName { .. }
            | Self::ManyNames { .. }
            | Self::Locators { .. } => true,
            Self::NotLoaded | Self::ShuttingDown => false,
        }
    }
}

impl From<Refusal> for tonic::Status {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        if refusal.is_invalid() { Self::invalid_argument(message) } else { Self::unavailable(message) }
    }
}

/// Refuses names that are too long.
pub(super) fn check_names<'a>(
    field: &'static str,
    names: impl IntoIterator<Item = &'a String>,
    limits: &Limits,
) -> Result<(), Refusal> {
    let limit = limits.name_bytes;
    match names.into_iter().find(|name| name.len() > limit) {
        Some(name) => Err(Refusal::LongName { field, bytes: name.len(), limit }),
        None => Ok(()),
    }
}
