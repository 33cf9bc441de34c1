//! Checkpoints: what was folded up to an entry, so that a start needs that and what came after it. Two are
//! kept, in case the newer one turns out to be unusable.

use bytes::Bytes;
use tower_proto::v1;

use super::{
    EventLog, MAX_CHECKPOINT_BYTES, ReadError,
    entry::{Link, to_hash},
    error::{AppendError, BackendError},
    paths,
};

/// A folded state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last entry that went in.
    pub index: u64,
    /// The state, as it was given.
    pub state: Bytes,
}

impl EventLog {
    /// Keeps what was folded up to the entry with this index, and the checkpoint before it. One that is not
    /// newer than what is kept is dropped.
    ///
    /// # Errors
    /// If the log cannot be written to, has no such entry, or the state is too large.
    pub async fn save_checkpoint(&self, index: u64, state: Bytes) -> Result<(), AppendError> {
        if state.len() > MAX_CHECKPOINT_BYTES {
            let bytes = state.len();
            return Err(AppendError::TooLarge { what: "a checkpoint", bytes, limit: MAX_CHECKPOINT_BYTES });
        }
        let backend = &self.0.backend;
        let Some(link) = self.link(index).await?.filter(|_| index > 0) else {
            return Err(AppendError::Refused(format!("there is no entry {index} to make a checkpoint of")));
        };
        let hash = blake3::hash(&state);
        let new = v1::Checkpoint {
            index,
            entry: link.previous(),
            state: Bytes::copy_from_slice(hash.as_bytes()),
            length: state.len() as u64,
        };
        let kept = loop {
            let old = backend.checkpoints().await?;
            if old.latest.as_ref().is_some_and(|latest| latest.index >= index) {
                break old;
            }
            backend.put(paths::checkpoint(index, &hash), state.clone()).await?;
            let both = v1::Checkpoints { latest: Some(new.clone()), previous: old.latest.clone() };
            if backend.replace_checkpoints(old, both.clone()).await? {
                break both;
            }
        };
        self.remember().await;
        self.tidy(&kept).await.unwrap_or_else(|error| {
            // The next checkpoint tries again.
            tracing::warn!(%error, "an old checkpoint cannot be removed");
        });
        Ok(())
    }

    /// Removes states that are older than both that are kept. Newer ones may be on their way.
    async fn tidy(&self, kept: &v1::Checkpoints) -> Result<(), BackendError> {
        let oldest = kept.previous.as_ref().or(kept.latest.as_ref()).map_or(0, |checkpoint| checkpoint.index);
        for name in self.0.backend.list(paths::CHECKPOINTS.to_owned()).await? {
            if paths::index_of_checkpoint(&name).is_some_and(|index| index < oldest) {
                self.0.backend.delete(format!("{}/{name}", paths::CHECKPOINTS)).await?;
            }
        }
        Ok(())
    }

    /// The newest checkpoint that can be used; none if there is none. What is read from its index on is known
    /// to follow it.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn latest_checkpoint(&self) -> Result<Option<Checkpoint>, ReadError> {
        let both = self.0.backend.checkpoints().await?;
        for checkpoint in [both.latest, both.previous].into_iter().flatten() {
            match self.usable(&checkpoint).await {
                Ok((found, link)) => {
                    self.verified(link);
                    return Ok(Some(found));
                }
                Err(error @ ReadError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    tracing::error!(index = checkpoint.index, %error, "a checkpoint cannot be used, and an older one is");
                }
            }
        }
        Ok(None)
    }

    async fn usable(&self, checkpoint: &v1::Checkpoint) -> Result<(Checkpoint, Link), ReadError> {
        let index = checkpoint.index;
        let refused = |problem: &str| ReadError::Bytes {
            path: format!("{}, of entry {index}", self.0.backend.path(paths::CHECKPOINTS)),
            problem: problem.to_owned(),
        };
        let hash = to_hash(&checkpoint.state).ok_or_else(|| refused("the hash of its state is damaged"))?;
        let link = Link::from_parts(index, &checkpoint.entry)
            .filter(|link| link.index > 0)
            .ok_or_else(|| refused("the hash of its entry is damaged"))?;
        if index > *self.0.backend.newest().borrow() {
            return Err(refused("the log does not have that entry"));
        }
        let state = self.bytes(&paths::checkpoint(index, &hash), &hash, MAX_CHECKPOINT_BYTES).await?;
        Ok((Checkpoint { index, state }, link))
    }
}
