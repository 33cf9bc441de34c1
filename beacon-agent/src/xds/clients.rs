//! Who is connected, what each client has, and what it rejected: for operators, and for reports.
//!
//! Nothing is decided by what is here.

mod releases;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tower_common::clock;
use tower_proto::v1;

use self::releases::StreamStandings;
pub use self::releases::{ReleaseState, ReleaseStatus, ReleaseTrouble};
use super::{
    dump::Asking,
    kind::{Mode, ResourceType, Scope},
    memory::{Memories, Memory},
    node::Identity,
    peer::Peer,
    protocol::{Answer, Received},
    selection::Batch,
    standing::Changes,
    triage::Refused,
};

/// How much of a rejection's message is kept.
const MESSAGE_BYTES: usize = 4096;

/// All connected clients. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Clients {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    streams: Mutex<Streams>,
    memories: Mutex<Memories>,
    remembered: Notify,
    asking: Asking,
    changed: watch::Sender<u64>,
    standings: Mutex<BTreeMap<u64, StreamStandings>>,
    standings_changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Streams {
    opened: u64,
    by_number: BTreeMap<u64, Client>,
}

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

/// A connected client: it is listed as long as this exists.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    stream: u64,
    node_id: String,
    user_agent: String,
}

impl Default for Clients {
    fn default() -> Self {
        Self::new()
    }
}

impl Clients {
    /// Nobody is connected, and nothing is known of anybody.
    pub fn new() -> Self {
        Self::remembering(Memories::default())
    }

    /// Nobody is connected, but this is known of who was.
    pub fn remembering(memories: Memories) -> Self {
        let changed = watch::Sender::new(0);
        Self {
            shared: Arc::new(Shared {
                streams: Mutex::default(),
                memories: Mutex::new(memories),
                remembered: Notify::new(),
                asking: Asking::default(),
                changed,
                standings: Mutex::default(),
                standings_changed: watch::Sender::new(0),
            }),
        }
    }

    /// Everyone who is connected, in the order in which the streams began.
    pub fn snapshot(&self) -> Vec<Client> {
        self.shared.streams.lock().by_number.values().cloned().collect()
    }

    /// What a Beacon tells Tower of its clients: what was accepted last, and what was rejected since.
    pub fn reports(&self) -> Vec<v1::ClientReport> {
        self.shared.streams.lock().by_number.values().map(Client::report).collect()
    }

    /// By which all streams can be asked what their clients were sent.
    pub(super) fn asking(&self) -> &Asking {
        &self.shared.asking
    }

    /// Notified of every change: streams that begin and end, what is sent, accepted and rejected. The
    /// value says nothing.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// What clients cannot take, beyond their streams.
    pub fn memories(&self) -> Memories {
        self.shared.memories.lock().clone()
    }

    /// Waits until that has changed since it was waited for last.
    pub async fn remembered(&self) {
        self.shared.remembered.notified().await;
    }

    /// Notified when clients have accepted or rejected something of a release, and of streams that begin and
    /// end. The value says nothing.
    pub fn release_changes(&self) -> watch::Receiver<u64> {
        self.shared.standings_changed.subscribe()
    }

    pub(super) fn connect(&self, identity: &Identity, mode: Mode, scope: Scope, peer: Peer) -> Connection {
        let mut streams = self.shared.streams.lock();
        streams.opened += 1;
        let stream = streams.opened;
        let client = Client {
            stream,
            node_id: identity.node_id.clone(),
            cluster: identity.cluster.clone(),
            user_agent: identity.user_agent.clone(),
            peer,
            scope,
            mode,
            egress: identity.view.egress,
            complaint: identity.complaint.clone(),
            since: clock::unix_millis(),
            types: BTreeMap::new(),
            quarantined: Vec::new(),
        };
        streams.by_number.insert(stream, client);
        drop(streams);
        self.shared.notify();
        let standings = StreamStandings::new(&identity.node_id, identity.is_grpc());
        self.shared.change_standings(|streams| drop(streams.insert(stream, standings)));
        let (node_id, user_agent) = (identity.node_id.clone(), identity.user_agent.clone());
        Connection { shared: self.shared.clone(), stream, node_id, user_agent }
    }
}

impl Client {
    fn report(&self) -> v1::ClientReport {
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

impl Connection {
    /// Which stream this is.
    pub(super) fn stream(&self) -> u64 {
        self.stream
    }

    pub(super) fn received(&self, received: &Received) {
        let Received::Known { kind, answer, wildcard, names } = received else { return };
        let is_new = |streams: &BTreeMap<u64, StreamStandings>| {
            streams.get(&self.stream).is_some_and(|stream| !stream.types.contains(kind))
        };
        if is_new(&self.shared.standings.lock()) {
            self.shared.change_standings(|streams| {
                if let Some(stream) = streams.get_mut(&self.stream) {
                    stream.types.insert(*kind);
                }
            });
        }
        self.change(*kind, |state| {
            state.requests += 1;
            state.wildcard = *wildcard;
            state.names = *names;
            match answer {
                Some(Answer::Ack { nonce, version }) => {
                    state.accepted = Some(Exchange::new(version, nonce));
                    state.rejected = None;
                    state.answered(nonce, SyncState::Accepted);
                }
                Some(Answer::Nack { nonce, version, status }) => {
                    state.rejected = Some(Rejection {
                        response: Exchange::new(version, nonce),
                        message: shorten(&status.message).to_owned(),
                        reason: Reason::of(&status.message),
                    });
                    state.answered(nonce, SyncState::Rejected);
                }
                Some(Answer::Stale) | None => {}
            }
        });
    }

    pub(super) fn sent(&self, batch: &Batch) {
        self.change(batch.kind, |state| {
            state.state = SyncState::Waiting;
            state.sent = Some(Exchange::new(&batch.version.to_string(), &batch.nonce.to_string()));
        });
    }

    /// What the client has of the host's releases has changed.
    pub(super) fn standings(&self, changes: Changes) {
        self.shared.change_standings(|streams| {
            if let Some(stream) = streams.get_mut(&self.stream) {
                stream.change(changes);
            }
        });
    }

    /// What the client could not take on its streams before this one.
    pub(super) fn recall(&self) -> Memory {
        self.shared.memories.lock().recall(&self.node_id, &self.user_agent)
    }

    /// What the client cannot take has changed.
    pub(super) fn quarantined(&self, quarantined: &[Quarantined], memory: Memory) {
        self.shared.memories.lock().note(&self.node_id, &self.user_agent, memory);
        self.shared.remembered.notify_one();
        if let Some(client) = self.shared.streams.lock().by_number.get_mut(&self.stream) {
            client.quarantined = quarantined.to_vec();
        }
        self.shared.notify();
    }

    fn change(&self, kind: ResourceType, change: impl FnOnce(&mut TypeState)) {
        if let Some(client) = self.shared.streams.lock().by_number.get_mut(&self.stream) {
            change(client.types.entry(kind).or_default());
        }
        self.shared.notify();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.streams.lock().by_number.remove(&self.stream);
        self.shared.notify();
        self.shared.change_standings(|streams| drop(streams.remove(&self.stream)));
    }
}

impl Shared {
    fn notify(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn change_standings(&self, change: impl FnOnce(&mut BTreeMap<u64, StreamStandings>)) {
        change(&mut self.standings.lock());
        self.standings_changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl TypeState {
    /// An answer to an older response says nothing of the newest.
    fn answered(&mut self, nonce: &str, state: SyncState) {
        if self.sent.as_ref().is_none_or(|sent| sent.nonce == nonce) {
            self.state = state;
        }
    }
}

impl Quarantined {
    fn report(&self) -> v1::Quarantined {
        let Self { name, version, message, .. } = self;
        v1::Quarantined { name: name.clone(), version: version.clone(), error: message.clone() }
    }

    pub(super) fn new(kind: ResourceType, refused: &Refused) -> Self {
        Self {
            r#type: kind,
            name: refused.name.to_string(),
            version: refused.version.to_string(),
            message: refused.message.to_string(),
        }
    }
}

impl Exchange {
    fn new(version: &str, nonce: &str) -> Self {
        Self { version: version.to_owned(), nonce: nonce.to_owned(), at: clock::unix_millis() }
    }
}

impl Reason {
    /// Reads an Envoy's message. There is nothing else to tell by: the code is the same for both.
    pub(super) fn of(message: &str) -> Self {
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

/// The beginning of a message.
pub(super) fn shorten(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES)]
}

#[cfg(test)]
mod tests;
