//! What a Tower remembers of a log in an ensemble from one run to the next: which one it is, and how far it was.
//! So an ensemble that was set up anew, or went back in time, while no Tower looked is not taken for the log.

use std::path::{Path, PathBuf};

use prost::Message;
use tokio::task::spawn_blocking;
use tower_common::{durable, sealed::Kind};
use tower_proto::v1;

use super::{OpenError, Target};

const KIND: Kind = Kind { magic: b"TOWERLOG", format: 1 };

/// Its name in Tower's data folder.
const FILE: &str = "event-log.seen";

/// The memory of one Tower, which has a single log.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    path: PathBuf,
    log: String,
}

impl Memory {
    pub(super) fn new(data_dir: &Path, target: &Target) -> Self {
        Self { path: data_dir.join(FILE), log: target.to_string() }
    }

    /// What is known of this log. Of another one nothing is.
    pub(super) async fn recall(&self) -> Option<v1::LogHead> {
        let path = self.path.clone();
        let file = spawn_blocking(move || std::fs::read(path)).await.ok()?.ok()?;
        let payload = KIND.open(&file).map_err(|error| error.to_string());
        let seen =
            payload.and_then(|payload| v1::LogSeen::decode(payload).map_err(|error| error.to_string()));
        match seen {
            Ok(seen) if seen.log == self.log => seen.head,
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), error, "what is known of the event log is lost");
                None
            }
        }
    }

    pub(super) async fn keep(&self, head: v1::LogHead) {
        let (path, log) = (self.path.clone(), self.log.clone());
        let seen = v1::LogSeen { log, head: Some(head) };
        let file = KIND.seal(|file| file.extend_from_slice(&seen.encode_to_vec()));
        let kept = spawn_blocking(move || durable::replace(&path, &file)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(path = %self.path.display(), %error, "what is known of the event log cannot be kept");
        }
    }

    /// Adds what to do, if this memory is why.
    pub(super) fn explain(&self, error: OpenError) -> OpenError {
        match error {
            OpenError::Unusable { log, why } if self.path.exists() => {
                let why = format!("{why}; if that is meant, remove {}", self.path.display());
                OpenError::Unusable { log, why }
            }
            error => error,
        }
    }
}
