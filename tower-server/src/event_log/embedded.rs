//! A log of one Tower, in its data folder: small things in tables, large ones in files beside them.
//!
//! An append writes in this order: bodies, the entry, where its command id leads to; then all of it is synced,
//! and only then is it acknowledged. An entry that a crash has parted from its command id is met when the log
//! is opened: only the newest one can be.

mod files;
mod inner;
mod store;

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use prost::Message;
use tokio::{sync::watch, task::spawn_blocking};
use tower_proto::v1;

use self::inner::{CHECKPOINTS, Inner};
use super::{
    Options, State,
    entry::{Link, Sealed},
    error::{AppendError, BackendError, OpenError},
};

/// The log in a folder, open for this process alone.
#[derive(Clone)]
pub(super) struct Embedded(Arc<Inner>);

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

#[cfg(test)]
mod tests;
