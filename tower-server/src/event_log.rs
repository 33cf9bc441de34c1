//! The event log: one totally ordered log of what was decided, from which all else is folded.
//!
//! - [`target`]: what `--event-log` says
//! - `embedded`: a log of one Tower, in its data folder
//! - `zookeeper`: a log of many Towers, in an ensemble

//! - `entry`: entries as bytes, each naming the hash of the one before it
//! - `checkpoint`: what was folded, so that not all has to be folded again
//! - [`archive`]: a log as a file; [`command`]: that, for people

//!
//! Whoever appends says which entry was the newest that he knew; if it is not any more, he is told. A command
//! id is in the log at most once: appending it again tells where it is.
//!
//! What is not here: what entries mean. An entry that does not fold is the folder's to refuse.

pub mod archive;
mod checkpoint;
pub mod command;
mod embedded;
mod entry;
mod error;
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

pub use self::{
    checkpoint::Checkpoint,
    error::{AppendError, OpenError, ReadError},
    probe::Probe,
    references::references,
    target::Target,
};
use self::{
    embedded::Embedded,
    entry::{Link, Sealed},
    error::BackendError,
    zookeeper::ZooKeeper,
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
    /// The newest entry that was read or appended. From there on nothing that is rewritten goes unnoticed.
    verified: Mutex<Link>,
}

enum Backend {
    Embedded(Embedded),
    ZooKeeper(ZooKeeper),
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
        let log = Self::open_any(target, data_dir, options).await?;
        if log.0.backend.head().importing {
            let why = "an import into it has not ended; run the import again".to_owned();
            return Err(OpenError::Unusable { log: target.to_string(), why });
        }
        Ok(log)
    }

    /// Also one that an import has not finished.
    async fn open_any(target: &Target, data_dir: &Path, options: Options) -> Result<Self, OpenError> {
        let backend = match target {
            Target::Embedded => Backend::Embedded(Embedded::open(&data_dir.join(FOLDER), options).await?),
            Target::ZooKeeper(ensemble) => Backend::ZooKeeper(ZooKeeper::open(ensemble, options).await?),
        };
        let incarnation = backend.head().incarnation;
        Ok(Self(Arc::new(Inner { backend, incarnation, verified: Mutex::new(Link::START) })))
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

impl Backend {
    fn head(&self) -> v1::LogHead {
        match self {
            Self::Embedded(log) => log.head(),
            Self::ZooKeeper(log) => log.head(),
        }
    }

    fn newest(&self) -> watch::Receiver<u64> {
        match self {
            Self::Embedded(log) => log.newest(),
            Self::ZooKeeper(log) => log.newest(),
        }
    }

    fn members(&self) -> watch::Receiver<Vec<String>> {
        match self {
            Self::Embedded(log) => log.members(),
            Self::ZooKeeper(log) => log.members(),
        }
    }

    fn state(&self) -> watch::Receiver<State> {
        match self {
            Self::Embedded(log) => log.state(),
            Self::ZooKeeper(log) => log.state(),
        }
    }

    /// Changes what the head says besides the newest entry.
    async fn set_head(&self, new: v1::LogHead) -> Result<(), BackendError> {
        match self {
            Self::Embedded(log) => log.set_head(new).await,
            Self::ZooKeeper(log) => log.set_head(new).await,
        }
    }

    async fn append(&self, after: Link, entries: Vec<Sealed>) -> Result<u64, AppendError> {
        match self {
            Self::Embedded(log) => log.append(after, entries).await,
            Self::ZooKeeper(log) => log.append(after, entries).await,
        }
    }

    async fn index_of(&self, command_id: &str) -> Result<Option<u64>, BackendError> {
        match self {
            Self::Embedded(log) => log.index_of(command_id).await,
            Self::ZooKeeper(log) => Ok(log.index_of(command_id).await?),
        }
    }

    /// At most so many from this index on, up to the first that is not there.
    async fn entries(&self, from: u64, limit: usize) -> Result<Vec<Bytes>, BackendError> {
        match self {
            Self::Embedded(log) => log.entries(from, limit).await,
            Self::ZooKeeper(log) => log.entries(from, limit).await,
        }
    }

    fn entry_path(&self, index: u64) -> String {
        match self {
            Self::Embedded(log) => log.entry_path(index),
            Self::ZooKeeper(log) => log.entry_path(index),
        }
    }

    /// A path as people find it.
    fn path(&self, path: &str) -> String {
        match self {
            Self::Embedded(log) => log.path(path),
            Self::ZooKeeper(log) => log.path(path),
        }
    }

    async fn put(&self, path: String, bytes: Bytes) -> Result<(), BackendError> {
        match self {
            Self::Embedded(log) => log.put(path, bytes).await,
            Self::ZooKeeper(log) => log.put(path, bytes).await,
        }
    }

    async fn get(&self, path: String, limit: usize) -> Result<Option<Bytes>, BackendError> {
        match self {
            Self::Embedded(log) => log.get(path, limit).await,
            Self::ZooKeeper(log) => log.get(path, limit).await,
        }
    }

    async fn list(&self, folder: String) -> Result<Vec<String>, BackendError> {
        match self {
            Self::Embedded(log) => log.list(folder).await,
            Self::ZooKeeper(log) => log.list(folder).await,
        }
    }

    async fn delete(&self, path: String) -> Result<(), BackendError> {
        match self {
            Self::Embedded(log) => log.delete(path).await,
            Self::ZooKeeper(log) => log.delete(path).await,
        }
    }

    async fn checkpoints(&self) -> Result<v1::Checkpoints, BackendError> {
        match self {
            Self::Embedded(log) => log.checkpoints().await,
            Self::ZooKeeper(log) => log.checkpoints().await,
        }
    }

    /// Sets them if they are still the old ones; tells whether they were.
    async fn replace_checkpoints(
        &self,
        old: v1::Checkpoints,
        new: v1::Checkpoints,
    ) -> Result<bool, BackendError> {
        match self {
            Self::Embedded(log) => log.replace_checkpoints(old, new).await,
            Self::ZooKeeper(log) => log.replace_checkpoints(old, new).await,
        }
    }
}
