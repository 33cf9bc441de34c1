//! What is remembered of clients beyond their streams: what they cannot take.
//!
//! Without it a client that reconnects would be sent what it rejected, reject it again, and nothing would
//! be known of what it accepted before. A client is known by its node id and its build: another build may
//! be able to take it. It is kept on disk, too, as far as there is room, and is all the same disposable: what
//! is lost is found out again.

mod format;

use std::collections::BTreeMap;

pub use self::format::MemoryError;

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
#[derive(Debug, Clone, Default)]
pub struct Memories {
    by_client: BTreeMap<(String, String), (u64, Memory)>,
    changes: u64,
}

impl Memories {
    /// The bytes of a file that keeps it for this scope: of what was found out last as much as there is room
    /// for, and no secrets.
    pub fn encode(&self, scope: &str) -> Vec<u8> {
        format::encode(self, scope)
    }

    /// Reads the bytes of such a file.
    ///
    /// # Errors
    /// If they are not a whole one of this scope, in the format that this build reads.
    pub fn decode(file: &[u8], scope: &str) -> Result<Self, MemoryError> {
        format::decode(file, scope)
    }

    /// What is known of a client.
    pub(super) fn recall(&self, node_id: &str, user_agent: &str) -> Memory {
        let known = self.by_client.get(&(node_id.to_owned(), user_agent.to_owned()));
        known.map(|(_, memory)| memory.clone()).unwrap_or_default()
    }

    /// Notes what a stream has found out, about the types that it is about.
    pub(super) fn note(&mut self, node_id: &str, user_agent: &str, news: Memory) {
        let memory = self.latest((node_id.to_owned(), user_agent.to_owned()));
        memory.resources.extend(news.resources);
        if !news.pieces.is_idle() {
            memory.pieces = news.pieces;
        }
        self.forget_oldest();
    }

    /// What is known of a client, which becomes the one that said something new last.
    fn latest(&mut self, client: (String, String)) -> &mut Memory {
        self.changes += 1;
        let (change, memory) = self.by_client.entry(client).or_default();
        *change = self.changes;
        memory
    }

    fn forget_oldest(&mut self) {
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
