//! One stream of a client, for operators and for reports.

use std::{collections::BTreeMap, net::SocketAddr};

use serde::Serialize;
use tower_common::clock;
use tower_proto::v1;

use crate::xds::{
    kind::{Mode, ResourceType, Scope},
    peer::Peer,
    triage::Refused,
};

/// One stream of a client. A client may have several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Client {
    /// Tells the streams of this process apart.
    pub stream: u64,
    /// Who it says it is.
    pub node_id: String,
    /// The cluster that it says it belongs to.
    pub cluster: String,
    /// Its program and version.
    pub user_agent: String,
    /// Where it is connected from.
    pub peer: Peer,
    /// All types on one stream, or which one.
    pub scope: Scope,
    /// The variant of the protocol.
    pub mode: Mode,
    /// Where it is told to listen for calls that leave the host.
    pub egress: SocketAddr,
    /// What of its metadata is ignored, and why.
    pub complaint: Option<String>,
    /// When the stream began, in milliseconds since the Unix epoch.
    pub since: u64,
    /// The types that it has asked for.
    pub types: BTreeMap<ResourceType, TypeState>,
    /// What of that which is served now it cannot take.
    pub quarantined: Vec<Quarantined>,
}

/// One type on one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TypeState {
    /// Whether everything is wanted.
    pub wildcard: bool,
    /// How many names are wanted, besides.
    pub names: usize,
    /// Requests so far.
    pub requests: u64,
    /// What became of the newest response.
    pub state: SyncState,
    /// The newest response.
    pub sent: Option<Exchange>,
    /// The newest response that was accepted.
    pub accepted: Option<Exchange>,
    /// The rejection that no acceptance has followed.
    pub rejected: Option<Rejection>,
}

/// Content that a client cannot take, found out by trying. It has what it accepted last in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quarantined {
    /// Of which type; a service's routes are of `rds`.
    pub r#type: ResourceType,
    /// The resource, or the service whose routes these are.
    pub name: String,
    /// Its content hash.
    pub version: String,
    /// What the client says.
    pub message: String,
}

/// What became of the newest response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncState {
    /// There was none.
    #[default]
    Silent,
    /// It is not answered. An Envoy says nothing of clusters while one is warming: that is not acceptance.
    Waiting,
    /// It was accepted.
    Accepted,
    /// It was rejected.
    Rejected,
}

/// A response, and when something became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// Its `version_info`, or `system_version_info`.
    pub version: String,
    /// Its nonce.
    pub nonce: String,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
}

/// A response that was rejected (NACK).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// What was rejected, and when.
    #[serde(flatten)]
    pub response: Exchange,
    /// What the client says.
    pub message: String,
    /// Whose fault that is.
    pub reason: Reason,
}

/// Whose fault a rejection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The content's: every client would reject it.
    Content,
    /// The host's: a port is taken, a file is missing. The same content may be accepted later.
    Host,
}

impl Client {
    pub(super) fn report(&self) -> v1::ClientReport {
        let types = self.types.iter().map(|(kind, state)| {
            let version = |exchange: &Option<Exchange>| {
                exchange.as_ref().map(|exchange| exchange.version.clone()).unwrap_or_default()
            };
            // What is kept from the client is a rejection that stands, also if all else was accepted since.
            let kept = self.quarantined.iter().filter(|kept| kept.r#type == *kind);
            let quarantined: Vec<v1::Quarantined> = kept.map(Quarantined::report).collect();
            let standing =
                quarantined.first().map(|q| (q.version.clone(), format!("{}: {}", q.name, q.error)));
            let rejected = state.rejected.as_ref();
            let rejected = rejected.map(|r| (r.response.version.clone(), r.message.clone()));
            let (rejected_version, error) = standing.or(rejected).unwrap_or_default();
            v1::TypeReport {
                type_url: kind.url().to_owned(),
                accepted_version: version(&state.accepted),
                rejected_version,
                error,
                sent_version: version(&state.sent),
                host: state.rejected.as_ref().is_some_and(|rejected| rejected.reason == Reason::Host),
                quarantined,
            }
        });
        v1::ClientReport { node_id: self.node_id.clone(), types: types.collect() }
    }
}

impl TypeState {
    /// An answer to an older response says nothing of the newest.
    pub(super) fn answered(&mut self, nonce: &str, state: SyncState) {
        if self.sent.as_ref().is_none_or(|sent| sent.nonce == nonce) {
            self.state = state;
        }
    }
}

impl Quarantined {
    pub(super) fn report(&self) -> v1::Quarantined {
        let Self { name, version, message, .. } = self;
        v1::Quarantined { name: name.clone(), version: version.clone(), error: message.clone() }
    }

    pub(in crate::xds) fn new(kind: ResourceType, refused: &Refused) -> Self {
        Self {
            r#type: kind,
            name: refused.name.to_string(),
            version: refused.version.to_string(),
            message: refused.message.to_string(),
        }
    }
}

impl Exchange {
    pub(super) fn new(version: &str, nonce: &str) -> Self {
        Self { version: version.to_owned(), nonce: nonce.to_owned(), at: clock::unix_millis() }
    }
}

impl Reason {
    /// Reads an Envoy's message. There is nothing else to tell by: the code is the same for both.
    pub(in crate::xds) fn of(message: &str) -> Self {
        const HOST: [&str; 5] = [
            "Address already in use",
            "Permission denied",
            "Cannot assign requested address",
            "Invalid path: ",
            "unable to read file",
        ];
        if HOST.iter().any(|text| message.contains(text)) { Self::Host } else { Self::Content }
    }
}
