//! What the two logs have in common, without what is the same for both.

use bytes::Bytes;
use tokio::sync::watch;
use tower_proto::v1;

use super::{
    AppendError, State,
    embedded::Embedded,
    entry::{Link, Sealed},
    error::BackendError,
    zookeeper::ZooKeeper,
};

/// Where a log is kept.
pub(super) enum Backend {
    Embedded(Embedded),
    ZooKeeper(ZooKeeper),
}

impl Backend {
    pub(super) fn head(&self) -> v1::LogHead {
        match self {
            Self::Embedded(log) => log.head(),
            Self::ZooKeeper(log) => log.head(),
        }
    }

    pub(super) fn newest(&self) -> watch::Receiver<u64> {
        match self {
            Self::Embedded(log) => log.newest(),
            Self::ZooKeeper(log) => log.newest(),
        }
    }

    pub(super) fn members(&self) -> watch::Receiver<Vec<String>> {
        match self {
            Self::Embedded(log) => log.members(),
            Self::ZooKeeper(log) => log.members(),
        }
    }

    pub(super) fn state(&self) -> watch::Receiver<State> {
        match self {
            Self::Embedded(log) => log.state(),
            Self::ZooKeeper(log) => log.state(),
        }
    }

    /// Changes what the head says besides the newest entry.
    pub(super) async fn set_head(&self, new: v1::LogHead) -> Result<(), BackendError> {
        match self {
            Self::Embedded(log) => log.set_head(new).await,
            Self::ZooKeeper(log) => log.set_head(new).await,
        }
    }

    /// Finds out about the newest entry now.
    pub(super) async fn refresh(&self) -> Result<(), BackendError> {
        match self {
            Self::Embedded(_) => Ok(()),
            Self::ZooKeeper(log) => Ok(log.read_head().await?),
        }
    }

    pub(super) async fn append(&self, after: Link, entries: Vec<Sealed>) -> Result<u64, AppendError> {
        match self {
            Self::Embedded(log) => log.append(after, entries).await,
            Self::ZooKeeper(log) => log.append(after, entries).await,
        }
    }

    pub(super) async fn index_of(&self, command_id: &str) -> Result<Option<u64>, BackendError> {
        match self {
            Self::Embedded(log) => log.index_of(command_id).await,
            Self::ZooKeeper(log) => Ok(log.index_of(command_id).await?),
        }
    }

    /// At most so many from this index on, up to the first that is not there.
    pub(super) async fn entries(&self, from: u64, limit: usize) -> Result<Vec<Bytes>, BackendError> {
        match self {
            Self::Embedded(log) => log.entries(from, limit).await,
            Self::ZooKeeper(log) => log.entries(from, limit).await,
        }
    }

    pub(super) fn entry_path(&self, index: u64) -> String {
        match self {
            Self::Embedded(log) => log.entry_path(index),
            Self::ZooKeeper(log) => log.entry_path(index),
        }
    }

    /// A path as people find it.
    pub(super) fn path(&self, path: &str) -> String {
        match self {
            Self::Embedded(log) => log.path(path),
            Self::ZooKeeper(log) => log.path(path),
        }
    }

    pub(super) async fn put(&self, path: String, bytes: Bytes) -> Result<(), BackendError> {
        match self {
            Self::Embedded(log) => log.put(path, bytes).await,
            Self::ZooKeeper(log) => log.put(path, bytes).await,
        }
    }

    pub(super) async fn get(&self, path: String, limit: usize) -> Result<Option<Bytes>, BackendError> {
        match self {
            Self::Embedded(log) => log.get(path, limit).await,
            Self::ZooKeeper(log) => log.get(path, limit).await,
        }
    }

    pub(super) async fn list(&self, folder: String) -> Result<Vec<String>, BackendError> {
        match self {
            Self::Embedded(log) => log.list(folder).await,
            Self::ZooKeeper(log) => log.list(folder).await,
        }
    }

    pub(super) async fn delete(&self, path: String) -> Result<(), BackendError> {
        match self {
            Self::Embedded(log) => log.delete(path).await,
            Self::ZooKeeper(log) => log.delete(path).await,
        }
    }

    pub(super) async fn checkpoints(&self) -> Result<v1::Checkpoints, BackendError> {
        match self {
            Self::Embedded(log) => log.checkpoints().await,
            Self::ZooKeeper(log) => log.checkpoints().await,
        }
    }

    /// Sets them if they are still the old ones; tells whether they were.
    pub(super) async fn replace_checkpoints(
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
