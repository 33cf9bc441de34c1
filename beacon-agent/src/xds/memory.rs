//! What is remembered of clients beyond their streams: what they cannot take.
//!
//! Without it a client that reconnects would be sent what it rejected, reject it again, and nothing would
//! be known of what it accepted before. A client is known by its node id and its build: another build may
//! be able to take it. It is lost when the Beacon restarts; then it is found out again.

use std::collections::BTreeMap;

use super::{kind::ResourceType, triage::Triage};

/// Clients that are remembered. The one that said nothing new for the longest time is forgotten beyond.
const MAX_CLIENTS: usize = 256;

/// What one client cannot take.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// Resources, by type.
    pub(super) resources: BTreeMap<ResourceType, Triage>,
    /// Services' routes.
    pub(super) pieces: Triage,
}

/// What all clients cannot take.
#[derive(Debug, Default)]
pub(super) struct Memories {
    by_client: BTreeMap<(String, String), (u64, Memory)>,
    changes: u64,
}

impl Memories {
    /// What is known of a client.
    pub(super) fn recall(&self, node_id: &str, user_agent: &str) -> Memory {
        let known = self.by_client.get(&(node_id.to_owned(), user_agent.to_owned()));
        known.map(|(_, memory)| memory.clone()).unwrap_or_default()
    }

    /// Notes what a stream has found out, about the types that it is about.
    pub(super) fn note(&mut self, node_id: &str, user_agent: &str, news: Memory) {
        self.changes += 1;
        let key = (node_id.to_owned(), user_agent.to_owned());
        let (change, memory) = self.by_client.entry(key).or_default();
        *change = self.changes;
        memory.resources.extend(news.resources);
        if !news.pieces.is_idle() {
            memory.pieces = news.pieces;
        }
        if self.by_client.len() > MAX_CLIENTS {
            let oldest = self.by_client.iter().min_by_key(|(_, (change, _))| *change);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.by_client.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tower_common::view::XdsResource;

    use super::*;
    use crate::xds::triage::{Split, Suspects};

    fn memory() -> Memory {
        let mut triage = Triage::default();
        let bad = XdsResource::from_body("a".into(), "bad".to_owned().into());
        let suspects = Suspects { resources: vec![bad], certain: true };
        triage.reject(suspects, "no", Split::Halves, |_| None);
        Memory { resources: [(ResourceType::Cluster, triage)].into(), pieces: Triage::default() }
    }

    #[test]
    fn a_client_is_its_node_and_its_build() {
        let mut memories = Memories::default();
        memories.note("n", "envoy 1.40.0", memory());
        assert_eq!(memories.recall("n", "envoy 1.40.0").resources.len(), 1);
        assert!(memories.recall("n", "envoy 1.41.0").resources.is_empty());
        assert!(memories.recall("m", "envoy 1.40.0").resources.is_empty());
        memories.note("n", "envoy 1.40.0", Memory::default());
        assert_eq!(memories.recall("n", "envoy 1.40.0").resources.len(), 1, "another type's stream");
    }

    #[test]
    fn it_is_bounded() {
        let mut memories = Memories::default();
        for number in 0..=MAX_CLIENTS {
            memories.note(&number.to_string(), "", memory());
        }
        assert_eq!(memories.by_client.len(), MAX_CLIENTS);
        assert!(memories.recall("0", "").resources.is_empty());
    }
}
