//! What can go wrong with a log. Each error of an append says whether the entry is in the log.

use std::io;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be reached at the moment. Trying again may help.
    #[error("{log} cannot be reached: {why}")]
    Unavailable {
        /// The log, as it was configured.
        log: String,
        /// What each server, or the disk, says.
        why: String,
    },
    /// Another process has it open.
    #[error("{path} is in use by another process; two Towers cannot share an embedded log")]
    Locked {
        /// The folder.
        path: String,
    },
    /// It is there, and cannot be used.
    #[error("{log} cannot be used: {why}")]
    Unusable {
        /// The log, as it was configured.
        log: String,
        /// What is wrong, and what to do.
        why: String,
    },
}

/// Why an entry was not appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Not in the log: somebody else has appended first.
    #[error("the log has gone on to entry {head}")]
    Conflict {
        /// The newest entry's index.
        head: u64,
    },
    /// Not in the log: it cannot be written to at the moment.
    #[error("the event log cannot be written to: {0}")]
    Unavailable(String),
    /// Perhaps in the log. Appending the same command id again tells, once the log can be reached.
    #[error("the event log does not say whether the entry was appended: {0}")]
    Unknown(String),
    /// Not in the log: it does not fit.
    #[error("{what} has {bytes} bytes, and {limit} are allowed")]
    TooLarge {
        /// The entry, or a body.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The largest that is taken.
        limit: usize,
    },
    /// Not in the log: it has no usable command id.
    #[error("a command id has 1 to {limit} bytes, and this one has {bytes}")]
    CommandId {
        /// Its size.
        bytes: usize,
        /// The largest that is taken.
        limit: usize,
    },
    /// Not in the log, which is not what it was, or is damaged: it is only read from now on.
    #[error("the event log takes no entries: {0}")]
    Refused(String),
}

impl AppendError {
    /// Whether the entry is certainly not in the log.
    pub fn is_not_applied(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }
}

/// Why something of a log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It cannot be reached at the moment. Trying again may help.
    #[error("the event log cannot be read: {0}")]
    Unavailable(String),
    /// An entry is not one, or does not follow the one before it. Nothing from it on is to be believed.
    #[error("entry {index} at {path} is refused: {problem}")]
    Entry {
        /// Which one.
        index: u64,
        /// Where it is kept.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A body or a checkpoint is not there, or is not what its name says.
    #[error("{path} is refused: {problem}")]
    Bytes {
        /// Where it is kept, or should be.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// What the disk or the ensemble says to a request that is none of an append.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BackendError {
    /// It cannot be told whether it was done.
    #[error("{0}")]
    Doubt(String),
    /// It was not done.
    #[error("{0}")]
    Failed(String),
}

impl From<io::Error> for BackendError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<BackendError> for ReadError {
    fn from(error: BackendError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// What was asked was not to write an entry.
impl From<BackendError> for AppendError {
    fn from(error: BackendError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
