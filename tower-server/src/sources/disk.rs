//! What a source leaves on disk for the next run of Tower: `ID.snapshot`, its last good state, and
//! `ID.holds`, what its guard holds and has let go since.
//!
//! The snapshot is a cache in protobuf, sealed, with the one before beside it: one that cannot be used is
//! set aside, and the source begins with nothing. The holds are JSON, for people to read. Both are written
//! so that a power cut leaves the old contents or the new ones. All of it blocks; of each file one write at
//! a time.

mod format;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tower_common::durable::{self, Kept};

use super::{guard::Record, model::Saved};

/// The files of one source.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    scope: Arc<str>,
    snapshot: Kept,
    holds: PathBuf,
}

impl Disk {
    /// The files of the source `id` of a scope, in this folder.
    pub(super) fn new(folder: &Path, id: &str, scope: &str) -> Self {
        Self {
            scope: scope.into(),
            snapshot: Kept::new(folder.join(format!("{id}.snapshot"))),
            holds: folder.join(format!("{id}.holds")),
        }
    }

    /// What the last run has left. What cannot be used is set aside, and the log says why.
    pub(super) fn read(&self) -> (Option<Saved>, Record) {
        let found = self.snapshot.load(|file| format::decode(file, &self.scope), |_| true);
        for (path, reason) in found.rejected {
            tracing::error!(path = %path.display(), %reason, "the last good state of a source cannot be used, and is set aside");
        }
        (found.contents, self.read_holds())
    }

    fn read_holds(&self) -> Record {
        let path = &self.holds;
        let reason = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Record::default(),
            Err(error) => error.to_string(),
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(record) => return record,
                Err(error) => error.to_string(),
            },
        };
        let aside = path.with_added_extension("bad");
        // If it cannot even be renamed it is replaced by the next holds.
        let _ = fs::rename(path, &aside);
        tracing::error!(path = %path.display(), aside = %aside.display(), reason, "the holds of a source cannot be used, and are set aside");
        Record::default()
    }

    /// Replaces the snapshot.
    pub(super) fn write_snapshot(&self, saved: &Saved) -> io::Result<()> {
        self.snapshot.write(&format::encode(saved, &self.scope))
    }

    /// Replaces the holds.
    pub(super) fn write_holds(&self, record: &Record) -> io::Result<()> {
        durable::replace(&self.holds, &serde_json::to_vec_pretty(record)?)
    }
}

#[cfg(test)]
mod tests;
