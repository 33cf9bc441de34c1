//! Who could not connect, and why.

use std::{
    collections::VecDeque,
    fmt,
    net::{IpAddr, SocketAddr},
};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family},
};
use serde::Serialize;
use tonic::Status;
use tower_common::clock;
use tracing::warn;

/// Refusals that are remembered; the oldest is forgotten first.
const REMEMBERED: usize = 50;

/// What is remembered of a text that the other end may have chosen.
const TEXT_CHARS: usize = 300;

/// Of all connections.
#[derive(Debug, Default)]
pub struct Refusals {
    last: Mutex<VecDeque<Refusal>>,
    counts: Family<Labels, Counter>,
}

/// The same refusal of the same host, once or more often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Where.
    pub stage: Stage,
    /// The other host.
    pub peer: Option<IpAddr>,
    /// The node that it says it is, once it has said so.
    pub node_id: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// When last, in milliseconds since the Unix epoch.
    pub last_unix_ms: u64,
}

/// How far a connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, EncodeLabelValue)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// To the TLS handshake.
    Handshake,
    /// To the hello of a stream.
    Hello,
}

/// The label of the counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Labels {
    /// How far the connection came.
    pub stage: Stage,
}

impl Refusals {
    /// Notes a handshake that failed.
    pub fn handshake(&self, peer: Option<SocketAddr>, reason: &str) {
        self.note(Stage::Handshake, peer, "", reason);
    }

    /// Notes a hello that was answered so.
    pub fn hello(&self, peer: Option<SocketAddr>, node_id: &str, status: &Status) {
        self.note(Stage::Hello, peer, node_id, status.message());
    }

    /// The last ones, the newest first.
    pub fn list(&self) -> Vec<Refusal> {
        self.last.lock().iter().cloned().collect()
    }

    /// How many there were.
    pub fn counts(&self) -> &Family<Labels, Counter> {
        &self.counts
    }

    fn note(&self, stage: Stage, peer: Option<SocketAddr>, node_id: &str, reason: &str) {
        let cut = |text: &str| text.chars().take(TEXT_CHARS).collect::<String>();
        let (node_id, reason) = (cut(node_id), cut(reason));
        warn!(?stage, ?peer, node = node_id, reason, "a connection is refused");
        self.counts.get_or_create(&Labels { stage }).inc();
        let peer = peer.map(|peer| peer.ip());
        let mut last = self.last.lock();
        let same = |refusal: &Refusal| {
            (refusal.stage, refusal.peer) == (stage, peer)
                && (&refusal.node_id, &refusal.reason) == (&node_id, &reason)
        };
        // Those who are refused come again and again: they take one place.
        let known = last.iter().position(same).and_then(|at| last.remove(at));
        let count = known.map_or(0, |refusal| refusal.count) + 1;
        last.truncate(REMEMBERED - 1);
        last.push_front(Refusal { stage, peer, node_id, reason, count, last_unix_ms: clock::unix_millis() });
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(f, "{peer}")?,
            None => f.write_str("an unknown host")?,
        }
        if !self.node_id.is_empty() {
            write!(f, " ({})", self.node_id.escape_debug())?;
        }
        write!(f, ": {}", self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_refusal_takes_one_place_and_all_places_are_bounded() {
        let refusals = Refusals::default();
        let peer = |port| Some(SocketAddr::from(([10, 0, 0, 1], port)));
        refusals.handshake(peer(1), "unknown CA");
        refusals.hello(peer(2), "host-1", &Status::permission_denied("no"));
        refusals.handshake(peer(3), "unknown CA");
        let list = refusals.list();
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].count, list[0].to_string().as_str()), (2, "10.0.0.1: unknown CA"));
        assert_eq!(list[1].to_string(), "10.0.0.1 (host-1): no");
        for number in 0..1000 {
            refusals.handshake(None, &number.to_string());
        }
        assert_eq!(refusals.list().len(), REMEMBERED);
        assert_eq!(refusals.counts().get_or_create(&Labels { stage: Stage::Handshake }).get(), 1002);
    }
}
