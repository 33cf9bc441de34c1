//! The event log: one totally ordered log of what was decided, from which all else is folded.
//!
//! - [`target`]: what `--event-log` says
//! - `embedded`: a log of one Tower, in its data folder
//! - `zookeeper`: a log of many Towers, in an ensemble
//! - `entry`: entries as bytes, each naming the hash of the one before it
//! - `memory`: what a Tower knows of a log before it has asked
//! - `checkpoint`: what was folded, so that not all has to be folded again
//! - [`archive`]: a log as a file; [`command`]: that, for people
//!
//! Whoever appends says which entry was the newest that he knew; if it is not any more, he is told. A command
//! id is in the log at most once: appending it again tells where it is.
//!
//! What is not here: what entries mean. An entry that cannot be folded is for whoever folds to refuse.

pub mod archive;
mod backend;
mod checkpoint;
pub mod command;
mod embedded;
mod entry;
mod error;
mod memory;
mod paths;
mod probe;
mod references;
pub mod target;
mod zookeeper;

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use rand::Rng;
use tokio::sync::watch;
use tower_proto::v1;

use self::{
    backend::Backend,
    embedded::Embedded,
    entry::{Link, Sealed},
    error::BackendError,
    memory::Memory,
    zookeeper::ZooKeeper,
};
pub use self::{
    checkpoint::Checkpoint,
    error::{AppendError, OpenError, ReadError},
    probe::Probe,
    references::references,
    target::Target,
};

/// Of what is kept. A build that knows another one only refuses.
const FORMAT: u32 = 1;

/// Larger entries are not taken: a request to ZooKeeper has at most a megabyte.
pub const MAX_ENTRY_BYTES: usize = 512 << 10;

/// Larger bodies are not taken.
pub const MAX_BODY_BYTES: usize = 64 << 20;

/// Longer command ids are not taken.
pub const MAX_COMMAND_ID_BYTES: usize = 256;

/// Larger folded states are not taken.
const MAX_CHECKPOINT_BYTES: usize = 1 << 30;

/// So many entries are read at once, at most.
const MAX_READ: usize = 1_000;

/// The folder of an embedded log, in Tower's data folder.
pub const FOLDER: &str = "log";

/// An open log. Clones are the same log.
#[derive(Clone)]
pub struct EventLog(Arc<Inner>);

struct Inner {
    backend: Backend,
    incarnation: String,
    memory: Memory,
    /// The newest entry that was read or appended. From there on nothing that is rewritten goes unnoticed.
    verified: Mutex<Link>,
}

/// What a log is opened with, besides where it is.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Who this Tower is among those that share the log: unique to this run. Empty for who is none.
    pub run: String,
    /// Is told of writes.
    pub probe: Probe,
}

/// Whether a log can be read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It can.
    Live,
    /// It cannot at the moment. What was read of it stands.
    Unreachable {
        /// Why.
        why: String,
        /// Since when, in milliseconds since 1970.
        since_ms: u64,
    },
    /// It is not the log that was opened any more: replaced, or older than it was. This process takes nothing
    /// of it any longer.
    Refused {
        /// What was found.
        why: String,
    },
}

impl EventLog {
    /// Opens a log, or makes a new one where there is none. Of an ensemble that cannot be reached this is an
    /// error after a while, and trying again is up to the caller.
    ///
    /// # Errors
    /// If it cannot be reached, is in use, or cannot be used.
    pub async fn open(target: &Target, data_dir: &Path, options: Options) -> Result<Self, OpenError> {
        let memory = Memory::new(data_dir, target);
        let known = match target {
            Target::Embedded => None,
            Target::ZooKeeper(_) => memory.recall().await,
        };
        let opened = Self::open_any(target, data_dir, options, known).await;
        let log = opened.map_err(|error| memory.explain(error))?;
        if log.0.backend.head().importing {
            let why = "an import into it has not ended; run the import again".to_owned();
            return Err(OpenError::Unusable { log: target.to_string(), why });
        }
        log.remember().await;
        Ok(log)
    }

    /// Also one that an import has not finished. It must continue what is known of it, if anything is.
    async fn open_any(
        target: &Target,
        data_dir: &Path,
        options: Options,
        known: Option<v1::LogHead>,
    ) -> Result<Self, OpenError> {
        let backend = match target {
            Target::Embedded => Backend::Embedded(Embedded::open(&data_dir.join(FOLDER), options).await?),
            Target::ZooKeeper(ensemble) => {
                Backend::ZooKeeper(ZooKeeper::open(ensemble, options, known).await?)
            }
        };
        let incarnation = backend.head().incarnation;
        let memory = Memory::new(data_dir, target);
        Ok(Self(Arc::new(Inner { backend, incarnation, memory, verified: Mutex::new(Link::START) })))
    }

    /// Keeps in mind how far the log is, for the next run of this Tower.
    async fn remember(&self) {
        if matches!(self.0.backend, Backend::ZooKeeper(_)) {
            self.0.memory.keep(self.0.backend.head()).await;
        }
    }

    /// Which log this is. Indexes of another incarnation do not compare.
    pub fn incarnation(&self) -> &str {
        &self.0.incarnation
    }

    /// The index of the newest entry, 0 if there is none. It changes with what this Tower appends, before it
    /// is acknowledged, and with what others do.
    pub fn head(&self) -> watch::Receiver<u64> {
        self.0.backend.newest()
    }

    /// The Towers that have this log open, by [`Options::run`], sorted.
    pub fn members(&self) -> watch::Receiver<Vec<String>> {
        self.0.backend.members()
    }

    /// Whether it can be read and written.
    pub fn state(&self) -> watch::Receiver<State> {
        self.0.backend.state()
    }

    /// Appends an entry after the one with index `at_head`, and tells its index. Index and previous hash of
    /// the entry are set here. `bodies` are what it refers to by hash; they are there before it is.
    ///
    /// If the command id is in the log already, nothing is appended, and the index is the one that it has
    /// there; that it is not `at_head + 1` tells.
    ///
    /// # Errors
    /// If it was not appended, or this cannot be told; see [`AppendError`].
    pub async fn append(
        &self,
        at_head: u64,
        entry: v1::LogEntry,
        bodies: &[Bytes],
    ) -> Result<u64, AppendError> {
        let bytes = entry.command_id.len();
        if !(1..=MAX_COMMAND_ID_BYTES).contains(&bytes) {
            return Err(AppendError::CommandId { bytes, limit: MAX_COMMAND_ID_BYTES });
        }
        if let Some(body) = bodies.iter().find(|body| body.len() > MAX_BODY_BYTES) {
            return Err(AppendError::TooLarge { what: "a body", bytes: body.len(), limit: MAX_BODY_BYTES });
        }
        let backend = &self.0.backend;
        if at_head > *backend.newest().borrow() {
            // Whoever says so has heard of it before the watch did.
            backend.refresh().await?;
        }
        let newest = *backend.newest().borrow();
        let after = if at_head == newest { self.link(at_head).await? } else { None };
        let Some(after) = after else {
            return match backend.index_of(&entry.command_id).await? {
                Some(index) => Ok(index),
                None => Err(AppendError::Conflict { head: newest }),
            };
        };
        let entry = Sealed::new(entry, &after);
        if entry.bytes.len() > MAX_ENTRY_BYTES {
            let bytes = entry.bytes.len();
            return Err(AppendError::TooLarge { what: "an entry", bytes, limit: MAX_ENTRY_BYTES });
        }
        for body in bodies {
            backend.put(paths::body(&blake3::hash(body)), body.clone()).await?;
        }
        let link = entry.link();
        let index = backend.append(after, vec![entry]).await?;
        if index == link.index {
            self.verified(link);
        }
        Ok(index)
    }

    /// Entries from this index on, in their order: at most `limit`, perhaps fewer, and none only if there are
    /// none. Each is known to follow the one before it. Those before an entry that is refused are returned
    /// without it; asked for again from there on, the error says what is wrong.
    ///
    /// # Errors
    /// If the log cannot be read, or the first of them is refused.
    pub async fn read(&self, from: u64, limit: usize) -> Result<Vec<v1::LogEntry>, ReadError> {
        let (kept, _) = self.read_kept(from, limit).await?;
        Ok(kept.into_iter().map(|(entry, _)| entry).collect())
    }

    /// As [`EventLog::read`], with the bytes of each entry, and what follows the last one.
    async fn read_kept(
        &self,
        from: u64,
        limit: usize,
    ) -> Result<(Vec<(v1::LogEntry, Bytes)>, Link), ReadError> {
        let from = from.max(1);
        let Some(mut link) = self.link(from - 1).await? else { return Ok((Vec::new(), Link::START)) };
        let ahead = self.0.backend.newest().borrow().saturating_sub(from - 1);
        let limit = limit.min(MAX_READ).min(usize::try_from(ahead).unwrap_or(usize::MAX));
        let mut kept = Vec::with_capacity(limit);
        let found = self.0.backend.entries(from, limit).await?;
        let missing = found.len() < limit;
        let mut fault = None;
        for bytes in found {
            match entry::open(&bytes, &link) {
                Ok((entry, next)) => {
                    kept.push((entry, bytes));
                    link = next;
                }
                Err(problem) => {
                    fault = Some(problem);
                    break;
                }
            }
        }
        if fault.is_none() && missing {
            fault = Some("it is not there, and later ones are".to_owned());
        }
        match fault {
            Some(problem) if kept.is_empty() => {
                let index = link.index + 1;
                Err(ReadError::Entry { index, path: self.0.backend.entry_path(index), problem })
            }
            _ => {
                self.verified(link);
                Ok((kept, link))
            }
        }
    }

    /// Where the entry with this index is kept, as people find it.
    pub fn path_of(&self, index: u64) -> String {
        self.0.backend.entry_path(index)
    }

    /// The body that has this hash.
    ///
    /// # Errors
    /// If it cannot be read, is not there, or is something else.
    pub async fn body(&self, hash: &[u8]) -> Result<Bytes, ReadError> {
        let Some(hash) = entry::to_hash(hash) else {
            let problem = format!("a hash has 32 bytes, and this one has {}", hash.len());
            return Err(ReadError::Bytes { path: paths::BODIES.to_owned(), problem });
        };
        self.bytes(&paths::body(&hash), &hash, MAX_BODY_BYTES).await
    }

    /// Bytes that are kept under their hash.
    async fn bytes(&self, path: &str, hash: &blake3::Hash, limit: usize) -> Result<Bytes, ReadError> {
        let backend = &self.0.backend;
        let refused = |problem: String| ReadError::Bytes { path: backend.path(path), problem };
        match backend.get(path.to_owned(), limit).await? {
            None => Err(refused("it is not there".to_owned())),
            Some(bytes) if blake3::hash(&bytes) != *hash => {
                Err(refused(format!("its {} bytes are not what its name says", bytes.len())))
            }
            Some(bytes) => Ok(bytes),
        }
    }

    /// What the entry after `index` has to follow; none if there is no such entry.
    async fn link(&self, index: u64) -> Result<Option<Link>, BackendError> {
        if index == 0 {
            return Ok(Some(Link::START));
        }
        let verified = *self.0.verified.lock();
        if verified.index == index {
            return Ok(Some(verified));
        }
        if index > *self.0.backend.newest().borrow() {
            return Ok(None);
        }
        let found = self.0.backend.entries(index, 1).await?;
        Ok(found.first().map(|bytes| Link { index, hash: Some(blake3::hash(bytes)) }))
    }

    fn verified(&self, link: Link) {
        let mut verified = self.0.verified.lock();
        if link.index >= verified.index {
            *verified = link;
        }
    }
}

/// The name of a new log.
fn new_incarnation() -> String {
    let random: u128 = rand::rng().random();
    format!("{random:032x}")
}
