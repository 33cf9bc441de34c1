//! What is received, decoded once however many receive it.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
};

use prost::Message as _;
use tower_common::{
    delivery::Scope,
    resource::{Origin, Resource, ResourceKey},
};
use tower_proto::v1;

use super::{marks::Marks, messages, state::Delivered};

/// Decoded messages are looked through for those that nobody needs any more when there are so many more.
const SWEEP_EVERY: usize = 256;

/// A response of Tower, decoded.
#[derive(Debug)]
pub struct Message {
    /// Which it is, among all that there ever were.
    pub id: u64,
    bytes: Box<[u8]>,
    /// The response, without what is decoded below.
    pub response: v1::WatchResponse,
    /// What is new or changed.
    pub upserts: Vec<Resource>,
    /// What is gone.
    pub removals: Vec<(ResourceKey, Origin)>,
    /// The marks that are in it, by number.
    pub marks: Vec<usize>,
}

impl Message {
    /// What was received, with its prefix.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// All messages that somebody may still need, or receive again.
#[derive(Debug, Default)]
pub struct Contents {
    /// The one that was received last: mostly the next Beacon receives the same.
    last: Option<Rc<Message>>,
    messages: HashMap<u64, Vec<Rc<Message>>>,
    /// By the messages of which they are made.
    deliveries: HashMap<Vec<u64>, Rc<Delivered>>,
    kept: usize,
    next_id: u64,
}

impl Contents {
    /// A message of these bytes, with its prefix.
    ///
    /// # Errors
    /// If it is none, or a resource in it is none.
    pub fn message(&mut self, bytes: &[u8], marks: &Marks) -> Result<Rc<Message>, String> {
        if let Some(last) = self.last.as_ref().filter(|last| *last.bytes == *bytes) {
            return Ok(last.clone());
        }
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.messages.get(&hash).and_then(|all| all.iter().find(|known| *known.bytes == *bytes));
        let message = match known {
            Some(known) => known.clone(),
            None => {
                self.sweep();
                let made = Rc::new(self.decode(bytes, marks)?);
                self.messages.entry(hash).or_default().push(made.clone());
                self.kept += 1;
                made
            }
        };
        self.last = Some(message.clone());
        Ok(message)
    }

    /// The delivery that these messages are.
    ///
    /// # Errors
    /// If there is no begin, or no commit.
    pub fn delivery(&mut self, parts: &[Rc<Message>]) -> Result<Rc<Delivered>, String> {
        let ids: Vec<u64> = parts.iter().map(|part| part.id).collect();
        if let Some(known) = self.deliveries.get(&ids) {
            return Ok(known.clone());
        }
        let first = parts.first().and_then(|part| part.response.begin.as_ref());
        let begin = first.ok_or("a delivery without a begin")?.clone();
        let last = parts.last().and_then(|part| part.response.commit.as_ref());
        let commit = last.ok_or("a delivery without a commit")?.clone();
        let scope = if begin.full {
            Scope::Everything
        } else if begin.bucket_count > 0 {
            Scope::Buckets { count: begin.bucket_count, numbers: begin.full_buckets }
        } else if begin.full_sources.is_empty() {
            Scope::Changes
        } else {
            Scope::Sources(begin.full_sources)
        };
        let mut transaction =
            tower_common::store::Transaction { sources: commit.sources, ..Default::default() };
        for part in parts {
            transaction.upserts.extend_from_slice(&part.upserts);
            transaction.removals.extend_from_slice(&part.removals);
        }
        let made = Rc::new(Delivered {
            id: self.id(),
            scope,
            transaction,
            from: begin.from_revision,
            to: commit.to_revision,
            digest: commit.digest.ok_or("a commit without a digest")?,
        });
        self.deliveries.insert(ids, made.clone());
        Ok(made)
    }

    /// A delivery of nothing but what is said of sources.
    pub fn sources(&mut self, message: &Message, sources: Vec<v1::SourceStatus>) -> Rc<Delivered> {
        // No message has the number 0, so this is the key of no other.
        let key = vec![message.id, 0];
        if let Some(known) = self.deliveries.get(&key).filter(|known| known.transaction.sources == sources) {
            return known.clone();
        }
        let transaction = tower_common::store::Transaction { sources, ..Default::default() };
        let id = self.id();
        let digest = v1::Digest::default();
        let made = Rc::new(Delivered { id, scope: Scope::Changes, transaction, from: 0, to: 0, digest });
        self.deliveries.insert(key, made.clone());
        made
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn decode(&mut self, bytes: &[u8], marks: &Marks) -> Result<Message, String> {
        let mut response =
            v1::WatchResponse::decode(&*messages::body(bytes)?).map_err(|error| error.to_string())?;
        let upserts = std::mem::take(&mut response.upserts);
        let upserts: Result<Vec<_>, _> = upserts.iter().map(|encoded| Resource::decode(encoded)).collect();
        let upserts = upserts.map_err(|error| error.to_string())?;
        let mut removals = Vec::new();
        for removal in std::mem::take(&mut response.removals) {
            let (Some(key), Some(origin)) = (removal.key, removal.origin) else {
                return Err("a removal without a key or an origin".to_owned());
            };
            removals.push((key.into(), origin.into()));
        }
        let marks = marks.found(upserts.iter().map(Resource::key));
        Ok(Message { id: self.id(), bytes: bytes.into(), response, upserts, removals, marks })
    }

    /// Forgets what was made longest ago. Should it come once more, it is decoded once more.
    fn sweep(&mut self) {
        if self.kept < SWEEP_EVERY {
            return;
        }
        self.kept = 0;
        let floor = self.next_id.saturating_sub(8 * SWEEP_EVERY as u64);
        for all in self.messages.values_mut() {
            all.retain(|message| Rc::strong_count(message) > 1 || message.id > floor);
        }
        self.messages.retain(|_, all| !all.is_empty());
        self.deliveries.retain(|_, delivery| Rc::strong_count(delivery) > 1 || delivery.id > floor);
    }
}
