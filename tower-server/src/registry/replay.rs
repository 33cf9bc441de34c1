//! What was, when: by folding the log again.

use super::{fold::FoldError, state::State};
use crate::event_log::{EventLog, ReadError};

/// So many entries are read at once.
const BATCH: usize = 1_000;

/// A moment of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After the entry with this index.
    Index(u64),
    /// At this time, in milliseconds since 1970: before the first entry that is later.
    Time(u64),
}

/// Why the past cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An entry does not fold.
    #[error(transparent)]
    Fold(#[from] FoldError),
}

/// The state as it was then, of a log whose last entry to be looked at is `last`.
///
/// # Errors
/// If the log cannot be read, or does not fold.
pub async fn state_at(log: &EventLog, at: At, last: u64) -> Result<State, ReplayError> {
    let mut state = State::default();
    loop {
        let entries = log.read(state.index() + 1, BATCH).await?;
        let found = entries.len();
        for entry in entries {
            let over = match at {
                At::Index(index) => entry.index > index,
                At::Time(time_ms) => entry.time_ms > time_ms,
            };
            if over || entry.index > last {
                return Ok(state);
            }
            state.apply(&entry)?;
        }
        if found == 0 {
            return Ok(state);
        }
    }
}
