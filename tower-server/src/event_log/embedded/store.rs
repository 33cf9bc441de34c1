//! The one place that knows sled: entries by index, indexes by command id, and a few single values.
//!
//! sled's flush asks Linux to write the pages of its file, and leaves out the file's metadata and the disk's own
//! cache, so a power cut could still take what was flushed. So the file is synced as well.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use crate::event_log::error::BackendError;

/// sled's own default is a gigabyte.
const CACHE_BYTES: u64 = 32 << 20;

/// Tables on disk.
pub(super) struct Store {
    entries: sled::Tree,
    ids: sled::Tree,
    values: sled::Tree,
    database: sled::Db,
    file: File,
}

impl Store {
    /// Opens, or makes, the tables in this folder, which nobody else has open.
    pub(super) fn open(folder: &Path) -> Result<Self, BackendError> {
        let database = sled::Config::new().path(folder).cache_capacity(CACHE_BYTES).open().map_err(failed)?;
        let tree = |name: &str| database.open_tree(name).map_err(failed);
        let (entries, ids, values) = (tree("entries")?, tree("ids")?, tree("values")?);
        let file = File::open(data_file(folder))?;
        Ok(Self { entries, ids, values, database, file })
    }

    /// The newest entry.
    pub(super) fn last(&self) -> Result<Option<(u64, Bytes)>, BackendError> {
        let Some((key, value)) = self.entries.last().map_err(failed)? else { return Ok(None) };
        Ok(Some((number(&key)?, copy(&value))))
    }

    /// At most so many entries from this index on, as far as there are no gaps.
    pub(super) fn entries(&self, from: u64, limit: usize) -> Result<Vec<Bytes>, BackendError> {
        let mut found = Vec::new();
        for (item, expected) in self.entries.range(from.to_be_bytes()..).zip(from..).take(limit) {
            let (key, value) = item.map_err(failed)?;
            if number(&key)? != expected {
                break;
            }
            found.push(copy(&value));
        }
        Ok(found)
    }

    /// Sets an entry. Lasts once [`Store::sync`] has returned, as all that is set here does.
    pub(super) fn set_entry(&self, index: u64, value: &[u8]) -> Result<(), BackendError> {
        self.entries.insert(index.to_be_bytes(), value).map(drop).map_err(failed)
    }

    /// The index of the entry with the command id that has this hash.
    pub(super) fn index_of(&self, id: &blake3::Hash) -> Result<Option<u64>, BackendError> {
        self.ids.get(id.as_bytes()).map_err(failed)?.map(|value| number(&value)).transpose()
    }

    /// Sets that index.
    pub(super) fn set_index_of(&self, id: &blake3::Hash, index: u64) -> Result<(), BackendError> {
        self.ids.insert(id.as_bytes(), &index.to_be_bytes()).map(drop).map_err(failed)
    }

    /// A single value.
    pub(super) fn value(&self, name: &str) -> Result<Option<Bytes>, BackendError> {
        Ok(self.values.get(name).map_err(failed)?.map(|value| copy(&value)))
    }

    /// Sets it.
    pub(super) fn set_value(&self, name: &str, value: &[u8]) -> Result<(), BackendError> {
        self.values.insert(name, value).map(drop).map_err(failed)
    }

    /// Makes all that was set survive a power cut.
    pub(super) fn sync(&self) -> Result<(), BackendError> {
        self.database.flush().map_err(failed)?;
        Ok(self.file.sync_data()?)
    }
}

/// Where sled keeps what it has not spilled.
fn data_file(folder: &Path) -> PathBuf {
    folder.join("db")
}

fn copy(value: &sled::IVec) -> Bytes {
    Bytes::copy_from_slice(value)
}

fn number(bytes: &[u8]) -> Result<u64, BackendError> {
    let bytes = bytes.try_into().map_err(|_| BackendError::Failed("an index is damaged".to_owned()))?;
    Ok(u64::from_be_bytes(bytes))
}

fn failed(error: sled::Error) -> BackendError {
    match error {
        sled::Error::Io(error) => error.into(),
        error => BackendError::Failed(error.to_string()),
    }
}
