//! What clients cannot take, on disk: after a restart they are not sent again what they have rejected.
//!
//! The file is sealed, written so that a power cut leaves the old contents or the new ones, and disposable.

use std::{io, path::Path};

use tokio_util::sync::CancellationToken;
use tower_common::durable::Kept;
use tracing::{error, warn};

use super::{Pace, Written};
use crate::xds::{Clients, Memories, MemoryError};

const FILE: &str = "refusals";

/// The file of one Beacon.
#[derive(Debug, Clone)]
pub struct Refusals {
    file: Kept,
    scope: String,
}

impl Refusals {
    /// The file in this folder, of a Beacon of this scope.
    pub fn new(dir: &Path, scope: &str) -> Self {
        Self { file: Kept::new(dir.join(FILE)), scope: scope.to_owned() }
    }

    /// What the last run has left. Returns also what cannot be used, and why; it is set aside, unless another
    /// build or scope may want it.
    pub fn read(&self) -> (Memories, Vec<String>) {
        let found = self.file.load(|file| Memories::decode(file, &self.scope), MemoryError::is_damage);
        let set_aside = found.rejected.into_iter().map(|(path, reason)| {
            let path = path.display();
            error!(%path, %reason, "what clients cannot take is to be found out again");
            format!("{path}: {reason}")
        });
        let set_aside = set_aside.collect();
        (found.contents.unwrap_or_default(), set_aside)
    }

    /// Writes the file whenever there is something new, not too often, and a last time when it is time to stop.
    pub async fn keep(self, clients: Clients, stopping: CancellationToken) {
        let mut pace = Pace::new();
        while pace.due(clients.remembered(), &stopping).await {
            pace.wrote(&self.write(clients.memories()).await);
        }
    }

    async fn write(&self, memories: Memories) -> Written {
        let Self { file, scope } = self.clone();
        let written = tokio::task::spawn_blocking(move || -> (u64, io::Result<()>) {
            let contents = memories.encode(&scope);
            (contents.len() as u64, file.write(&contents))
        });
        let (bytes, written) = written.await.expect("writing does not panic");
        if let Err(failure) = &written {
            warn!(%failure, "what clients cannot take is not on disk");
        }
        Written { bytes, failed: written.is_err() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn it_is_read_again_and_what_is_torn_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(dir.path(), "mesh");
        assert!(refusals.read().1.is_empty(), "there is none yet");
        assert!(!refusals.write(Memories::default()).await.failed);
        assert!(!refusals.write(Memories::default()).await.failed);
        let other = Refusals::new(dir.path(), "other").read().1;
        assert!(other[0].contains("belongs to the scope \"mesh\""), "{other:?}");
        assert!(refusals.read().1.is_empty(), "and it is where it was");

        let path = dir.path().join(FILE);
        let torn = fs::read(&path).unwrap().split_last().unwrap().1.to_vec();
        fs::write(&path, torn).unwrap();
        let set_aside = refusals.read().1;
        assert!(set_aside.len() == 1 && set_aside[0].contains("bytes where"), "{set_aside:?}");
        assert!(dir.path().join("refusals.bad").exists() && !path.exists());
        assert!(refusals.read().1.is_empty());
    }
}
