//! A log of one Tower, in its data folder: small things in tables, large ones in files beside them.
//!
//! An append writes in this order: bodies, the entry, where its command id leads to; then all of it is synced,
//! and only then is it acknowledged. An entry that a crash has parted from its command id is met when the log
//! is opened: only the newest one can be.

mod files;
mod store;

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;
use tokio::{sync::watch, task::spawn_blocking};
use tower_proto::v1;

use self::{files::Files, store::Store};
use super::{
    FORMAT, MAX_ENTRY_BYTES, Options, Probe, State,
    entry::{Link, Sealed},
    error::{AppendError, BackendError, OpenError},
    paths,
};

/// Entries above this size are in files: sled rewrites a page of entries for each new one, and puts pages
/// that are too large into files that it does not sync.
const MAX_INLINE_BYTES: usize = 16 << 10;

const INLINE: u8 = 0;
const IN_FILE: u8 = 1;

/// The names of single values.
const HEAD: &str = "head";
const CHECKPOINTS: &str = "checkpoints";

/// The log in a folder, open for this process alone.
#[derive(Clone)]
pub(super) struct Embedded(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    files: Files,
    store: Store,
    probe: Probe,
    /// Whoever has it writes.
    writer: Mutex<Writer>,
    newest: watch::Sender<u64>,
    members: watch::Sender<Vec<String>>,
    state: watch::Sender<State>,
    /// As long as it is open nobody else has the folder.
    _lock: File,
}

#[derive(Default)]
struct Writer {
    head: v1::LogHead,
    /// A write has failed, and what is on disk has to be looked at.
    in_doubt: bool,
}

impl Embedded {
    /// Opens the log in this folder, or makes a new one.
    pub(super) async fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        let folder = folder.to_owned();
        let log = folder.display().to_string();
        let opened = spawn_blocking(move || Inner::open(&folder, options)).await;
        let opened = opened.map_err(|error| OpenError::Unavailable { log, why: error.to_string() })?;
        Ok(Self(Arc::new(opened?)))
    }

    pub(super) fn head(&self) -> v1::LogHead {
        self.0.writer.lock().head.clone()
    }

    pub(super) fn newest(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    /// This Tower alone.
    pub(super) fn members(&self) -> watch::Receiver<Vec<String>> {
        self.0.members.subscribe()
    }

    pub(super) fn state(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }

    pub(super) async fn index_of(&self, command_id: &str) -> Result<Option<u64>, BackendError> {
        let id = blake3::hash(command_id.as_bytes());
        self.blocking(move |inner| inner.store.index_of(&id)).await
    }

    /// Appends all of these after `after`, or none.
    pub(super) async fn append(&self, after: Link, entries: Vec<Sealed>) -> Result<u64, AppendError> {
        let inner = self.0.clone();
        let appended = spawn_blocking(move || inner.append(&after, &entries)).await;
        appended.unwrap_or_else(|error| Err(AppendError::Unknown(error.to_string())))
    }

    /// At most so many entries from this index on, up to the first that is not there.
    pub(super) async fn entries(&self, from: u64, limit: usize) -> Result<Vec<Bytes>, BackendError> {
        self.blocking(move |inner| inner.entries(from, limit)).await
    }

    pub(super) fn entry_path(&self, index: u64) -> String {
        format!("{}, entry {index}", self.0.folder.display())
    }

    pub(super) fn path(&self, path: &str) -> String {
        self.0.files.path(path).display().to_string()
    }

    pub(super) async fn put(&self, path: String, bytes: Bytes) -> Result<(), BackendError> {
        self.blocking(move |inner| {
            if inner.files.has(&path, bytes.len()) {
                return Ok(());
            }
            inner.probe.at("file");
            Ok(inner.files.put(&path, &bytes)?)
        })
        .await
    }

    pub(super) async fn get(&self, path: String, limit: usize) -> Result<Option<Bytes>, BackendError> {
        self.blocking(move |inner| Ok(inner.files.get(&path, limit)?)).await
    }

    pub(super) async fn list(&self, folder: String) -> Result<Vec<String>, BackendError> {
        self.blocking(move |inner| Ok(inner.files.list(&folder)?)).await
    }

    pub(super) async fn delete(&self, path: String) -> Result<(), BackendError> {
        self.blocking(move |inner| {
            inner.probe.at("deletion of a file");
            Ok(inner.files.delete(&path)?)
        })
        .await
    }

    pub(super) async fn checkpoints(&self) -> Result<v1::Checkpoints, BackendError> {
        self.blocking(|inner| inner.decoded(CHECKPOINTS)).await
    }

    /// Sets them if they are still the old ones; tells whether they were.
    pub(super) async fn replace_checkpoints(
        &self,
        old: v1::Checkpoints,
        new: v1::Checkpoints,
    ) -> Result<bool, BackendError> {
        self.blocking(move |inner| {
            let _writer = inner.writer.lock();
            if inner.decoded::<v1::Checkpoints>(CHECKPOINTS)? != old {
                return Ok(false);
            }
            inner.probe.at("checkpoints");
            inner.store.set_value(CHECKPOINTS, &new.encode_to_vec())?;
            inner.store.sync()?;
            inner.probe.at("checkpoints synced");
            Ok(true)
        })
        .await
    }

    /// Changes what the head says besides the newest entry.
    pub(super) async fn set_head(&self, new: v1::LogHead) -> Result<(), BackendError> {
        self.blocking(move |inner| {
            let mut writer = inner.writer.lock();
            inner.write_head(&new)?;
            writer.head = new;
            Ok(())
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let inner = self.0.clone();
        let done = spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|error| Err(BackendError::Doubt(error.to_string())))
    }
}

impl Inner {
    fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
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
            head = v1::LogHead { format: FORMAT, incarnation: super::new_incarnation(), ..head };
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

    fn append(&self, after: &Link, entries: &[Sealed]) -> Result<u64, AppendError> {
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

    fn entries(&self, from: u64, limit: usize) -> Result<Vec<Bytes>, BackendError> {
        self.store.entries(from, limit)?.iter().map(|value| self.unspilled(value)).collect()
    }

    /// The bytes of an entry; none, which no entry has, if they are damaged.
    fn unspilled(&self, value: &Bytes) -> Result<Bytes, BackendError> {
        match value.split_first() {
            Some((&INLINE, _)) => Ok(value.slice(1..)),
            Some((&IN_FILE, hash)) => {
                let Some(hash) = super::entry::to_hash(hash) else { return Ok(Bytes::new()) };
                Ok(self.files.get(&paths::large_entry(&hash), MAX_ENTRY_BYTES)?.unwrap_or_default())
            }
            _ => Ok(Bytes::new()),
        }
    }

    fn decoded<M: Message + Default>(&self, name: &str) -> Result<M, BackendError> {
        let Some(value) = self.store.value(name)? else { return Ok(M::default()) };
        M::decode(value).map_err(|error| BackendError::Failed(format!("its {name} is damaged: {error}")))
    }

    fn write_head(&self, head: &v1::LogHead) -> Result<(), BackendError> {
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

#[cfg(test)]
mod tests;
