//! Reading and writing the tables and files of a log.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::watch;
use tower_proto::v1;

use super::{
    files::{self, Files},
    store::Store,
};
use crate::event_log::{
    FORMAT, MAX_ENTRY_BYTES, Options, Probe, State,
    entry::{Link, Sealed, to_hash},
    error::{AppendError, BackendError, OpenError},
    new_incarnation, paths,
};

/// Entries above this size are in files: sled rewrites a page of entries for each new one, and puts pages
/// that are too large into files that it does not sync.
pub(super) const MAX_INLINE_BYTES: usize = 16 << 10;

pub(super) const INLINE: u8 = 0;
pub(super) const IN_FILE: u8 = 1;

/// The names of single values.
pub(super) const HEAD: &str = "head";
pub(super) const CHECKPOINTS: &str = "checkpoints";

/// The log in a folder. All that it does blocks.
pub(super) struct Inner {
    pub(super) folder: PathBuf,
    pub(super) files: Files,
    pub(super) store: Store,
    pub(super) probe: Probe,
    /// Whoever has it writes.
    pub(super) writer: Mutex<Writer>,
    pub(super) newest: watch::Sender<u64>,
    pub(super) members: watch::Sender<Vec<String>>,
    pub(super) state: watch::Sender<State>,
    /// As long as it is open nobody else has the folder.
    _lock: File,
}

#[derive(Default)]
pub(super) struct Writer {
    pub(super) head: v1::LogHead,
    /// A write has failed, and what is on disk has to be looked at.
    in_doubt: bool,
}

impl Inner {
    pub(super) fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        let log = || folder.display().to_string();
        let unavailable =
            |error: &dyn ToString| OpenError::Unavailable { log: log(), why: error.to_string() };
        files::make(folder).map_err(|error| unavailable(&error))?;
        let lock = lock(folder)?;
        let store = Store::open(&folder.join("sled")).map_err(|error| unavailable(&error))?;
        let files = Files::new(folder.to_owned());
        let inner = Self {
            folder: folder.to_owned(),
            files,
            store,
            probe: options.probe,
            writer: Mutex::default(),
            newest: watch::Sender::new(0),
            members: watch::Sender::new(
                Some(options.run).filter(|run| !run.is_empty()).into_iter().collect(),
            ),
            state: watch::Sender::new(State::Live),
            _lock: lock,
        };
        let head = inner.find_head().map_err(|error| unavailable(&error))?;
        if head.format != FORMAT {
            let why = format!("it has format {}, and this build reads format {FORMAT}", head.format);
            return Err(OpenError::Unusable { log: log(), why });
        }
        inner.newest.send_replace(head.index);
        inner.writer.lock().head = head;
        Ok(inner)
    }

    /// What the tables say, completed by what a crash has left out.
    fn find_head(&self) -> Result<v1::LogHead, BackendError> {
        let mut head: v1::LogHead = self.decoded(HEAD)?;
        if head.format == 0 {
            head = v1::LogHead { format: FORMAT, incarnation: new_incarnation(), ..head };
            self.write_head(&head)?;
            tracing::info!(folder = %self.folder.display(), incarnation = head.incarnation, "a new event log");
        }
        if let Some((index, value)) = self.store.last()? {
            let bytes = self.unspilled(&value)?;
            head.index = index;
            head.hash = Bytes::copy_from_slice(blake3::hash(&bytes).as_bytes());
            // What cannot be decoded is for readers to refuse, with everything that follows.
            if let Ok(entry) = v1::LogEntry::decode(bytes) {
                let id = blake3::hash(entry.command_id.as_bytes());
                if self.store.index_of(&id)?.is_none() {
                    self.store.set_index_of(&id, index)?;
                    self.store.sync()?;
                }
            }
        }
        Ok(head)
    }

    pub(super) fn append(&self, after: &Link, entries: &[Sealed]) -> Result<u64, AppendError> {
        let mut writer = self.writer.lock();
        if writer.in_doubt {
            self.store.sync()?;
            writer.head = self.find_head()?;
            writer.in_doubt = false;
            self.newest.send_replace(writer.head.index);
        }
        for entry in entries {
            let id = blake3::hash(entry.command_id.as_bytes());
            if let Some(index) = self.store.index_of(&id)? {
                return Ok(index);
            }
        }
        if writer.head.index != after.index {
            return Err(AppendError::Conflict { head: writer.head.index });
        }
        let Some(last) = entries.last() else { return Ok(after.index) };
        writer.in_doubt = true;
        self.write(entries).map_err(|error| AppendError::Unknown(error.to_string()))?;
        writer.in_doubt = false;
        let link = last.link();
        writer.head.index = link.index;
        writer.head.hash = link.previous();
        self.newest.send_replace(link.index);
        Ok(link.index)
    }

    fn write(&self, entries: &[Sealed]) -> Result<(), BackendError> {
        for entry in entries {
            self.write_one(entry)?;
        }
        self.probe.at("sync");
        self.store.sync()?;
        self.probe.at("synced");
        Ok(())
    }

    fn write_one(&self, entry: &Sealed) -> Result<(), BackendError> {
        if entry.bytes.len() > MAX_INLINE_BYTES {
            let hash = blake3::hash(&entry.bytes);
            self.probe.at("entry in a file");
            self.files.put(&paths::large_entry(&hash), &entry.bytes)?;
            self.probe.at("entry");
            self.store.set_entry(entry.index, &[&[IN_FILE], &hash.as_bytes()[..]].concat())?;
        } else {
            self.probe.at("entry");
            self.store.set_entry(entry.index, &[&[INLINE], &entry.bytes[..]].concat())?;
        }
        self.probe.at("command id");
        self.store.set_index_of(&blake3::hash(entry.command_id.as_bytes()), entry.index)
    }

    pub(super) fn entries(&self, from: u64, limit: usize) -> Result<Vec<Bytes>, BackendError> {
        self.store.entries(from, limit)?.iter().map(|value| self.unspilled(value)).collect()
    }

    /// The bytes of an entry; none, which no entry has, if they are damaged.
    fn unspilled(&self, value: &Bytes) -> Result<Bytes, BackendError> {
        match value.split_first() {
            Some((&INLINE, _)) => Ok(value.slice(1..)),
            Some((&IN_FILE, hash)) => {
                let Some(hash) = to_hash(hash) else { return Ok(Bytes::new()) };
                Ok(self.files.get(&paths::large_entry(&hash), MAX_ENTRY_BYTES)?.unwrap_or_default())
            }
            _ => Ok(Bytes::new()),
        }
    }

    pub(super) fn decoded<M: Message + Default>(&self, name: &str) -> Result<M, BackendError> {
        let Some(value) = self.store.value(name)? else { return Ok(M::default()) };
        M::decode(value).map_err(|error| BackendError::Failed(format!("its {name} is damaged: {error}")))
    }

    pub(super) fn write_head(&self, head: &v1::LogHead) -> Result<(), BackendError> {
        self.probe.at("head");
        // The newest entry is the last one in its table, and nowhere else.
        let fixed = v1::LogHead { index: 0, hash: Bytes::new(), ..head.clone() };
        self.store.set_value(HEAD, &fixed.encode_to_vec())?;
        self.store.sync()
    }
}

/// Locks the folder as long as the file is open.
fn lock(folder: &Path) -> Result<File, OpenError> {
    let path = folder.join("lock");
    let unavailable = |error: &io::Error| OpenError::Unavailable {
        log: folder.display().to_string(),
        why: error.to_string(),
    };
    let file = File::options().create(true).append(true).open(&path).map_err(|error| unavailable(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: folder.display().to_string() }),
        Err(TryLockError::Error(error)) => Err(unavailable(&error)),
    }
}
