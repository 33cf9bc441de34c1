//! Who is connected, what each client has, and what it rejected: for operators, and for reports.
//!
//! Nothing is decided by what is here.

mod client;
mod releases;

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tower_common::clock;
use tower_proto::v1;

pub use self::client::{Client, Exchange, Quarantined, Reason, Rejection, SyncState, TypeState};
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

/// The beginning of a message.
pub(super) fn shorten(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES)]
}

#[cfg(test)]
mod tests;
