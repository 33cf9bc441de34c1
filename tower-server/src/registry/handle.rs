//! The registry, as the rest of Tower sees it. Cheap to clone.

use std::sync::Arc;

use parking_lot::RwLock;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tower_common::document::{Document, Finding, World};
use tower_proto::v1;

use super::{
    commands::Command,
    prepare::{Draft, Preparer, Revisions, Source},
    refusal::Refusal,
    replay::{self, At},
    state::State,
};
use crate::event_log::{EventLog, ReadError};

/// The registry.
#[derive(Clone)]
pub struct Registry {
    pub(super) shared: Arc<Shared>,
    pub(super) asks: mpsc::Sender<Ask>,
}

/// What the registry's task and its handles have in common.
pub(super) struct Shared {
    pub(super) state: RwLock<Arc<State>>,
    /// The index of the last entry that is applied and published.
    pub(super) applied: watch::Sender<u64>,
    pub(super) status: watch::Sender<Status>,
    pub(super) log: RwLock<Option<EventLog>>,
    pub(super) preparer: Preparer,
    /// The revision of the store by which the assignments of services were published, for those that have
    /// changed since the start.
    pub(super) revisions: RwLock<std::collections::BTreeMap<String, u64>>,
}

/// How the registry is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Whether the log is followed.
    pub state: LogState,
    /// Why it is not; empty if it is.
    pub reason: String,
    /// Since when the state is so, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// Which log it is; empty if it was never read.
    pub incarnation: String,
    /// The last entry that is applied.
    pub index: u64,
    /// Services that are not published as they should be, and why.
    pub problems: std::collections::BTreeMap<String, String>,
}

/// Whether the log is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogState {
    /// It has not been read yet.
    Loading,
    /// It is.
    Live,
    /// It cannot be read, or does not fold: what was read of it before stands, and nothing can be changed.
    Stale,
}

/// Who asks, and how.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Who.
    pub actor: v1::Actor,
    /// What makes the command one, however often it comes; empty makes it a new one.
    pub command_id: String,
    /// Why.
    pub reason: String,
    /// The etag that the command was made for.
    pub if_match: Option<u64>,
}

/// What has come of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The entry that it became; of a command that had nothing to do, the last one.
    pub index: u64,
    /// Its events.
    pub events: Vec<v1::Event>,
    /// What there is to say besides; empty if there is nothing.
    pub note: String,
    /// The version that the command is about.
    pub version: Option<u64>,
    /// The activation that it is about.
    pub activation: Option<String>,
    /// What is remarkable about the document in it; no errors.
    pub findings: Vec<Finding>,
    /// The command had come before, and this is what came of it then.
    pub repeated: bool,
}

/// Why a command has come to nothing, or perhaps not.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SubmitError {
    /// It is wrong, not allowed, or the state of things is against it. Nothing has changed.
    #[error("{0}")]
    Refused(Refusal),
    /// The log cannot be written to at the moment. Nothing has changed.
    #[error("nothing can be changed at the moment: {0}")]
    Unavailable(String),
    /// Perhaps it is in the log. Asking again with the same command id tells.
    #[error("it cannot be told whether this has happened: {0}; ask again with the same command id")]
    Unknown(String),
    /// Tower has failed. Nothing has changed.
    #[error("Tower has failed: {0}")]
    Failed(String),
}

impl From<Refusal> for SubmitError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A command on its way to the registry's task.
pub(super) struct Ask {
    pub(super) command: Command,
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Result<Answer, SubmitError>>,
}

impl Registry {
    /// Looks at the state. While this runs nothing is applied, so it is to be short. Cheaper than
    /// [`Registry::state`], which makes the next entry copy the state.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.read())
    }

    /// The state as it is now, which stays as it is.
    pub fn state(&self) -> Arc<State> {
        self.shared.state.read().clone()
    }

    /// The last entry that is applied, and the BLAKE3 hash of the state's checkpoint, in hexadecimal: the same on
    /// every Tower.
    pub fn digest(&self) -> (u64, String) {
        let state = self.state();
        (state.index(), blake3::hash(&state.to_checkpoint()).to_hex().to_string())
    }

    /// Carries out a command. The answer comes when its entry is in the log, applied, and published.
    ///
    /// # Errors
    /// See [`SubmitError`].
    pub async fn submit(&self, command: Command, request: Request) -> Result<Answer, SubmitError> {
        let (answer, answered) = oneshot::channel();
        let stopping = || SubmitError::Unavailable("Tower is stopping".to_owned());
        self.asks.send(Ask { command, request, answer }).await.map_err(|_| stopping())?;
        // Whatever ends the task while the command is being carried out may have appended it.
        let unknown = |_| SubmitError::Unknown("Tower is stopping".to_owned());
        answered.await.map_err(unknown)?
    }

    /// The index of the last entry that is applied and published, and its changes.
    pub fn applied(&self) -> watch::Receiver<u64> {
        self.shared.applied.subscribe()
    }

    /// How the registry is, and its changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.shared.status.subscribe()
    }

    /// Applied entries from this index on, at most `limit`, and perhaps fewer.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn entries(&self, from: u64, limit: usize) -> Result<Vec<v1::LogEntry>, ReadError> {
        let applied = *self.shared.applied.borrow();
        let ahead = usize::try_from((applied + 1).saturating_sub(from.max(1))).unwrap_or(usize::MAX);
        if ahead == 0 {
            return Ok(Vec::new());
        }
        self.log()?.read(from, limit.min(ahead)).await
    }

    /// The body that has this hash: a document, or a bundle.
    ///
    /// # Errors
    /// If it cannot be read, or is not there.
    pub async fn body(&self, hash: &[u8]) -> Result<bytes::Bytes, ReadError> {
        self.log()?.body(hash).await
    }

    /// The state as it was then, by folding the log again.
    ///
    /// # Errors
    /// If the log cannot be read, or does not fold.
    pub async fn state_at(&self, at: At) -> Result<State, replay::ReplayError> {
        replay::state_at(&self.log()?, at, *self.shared.applied.borrow()).await
    }

    /// What a document of a service would come to with the newest parts of platform and security, without
    /// anything being changed.
    ///
    /// # Errors
    /// If it is no document of that service, or cannot be read. What else is wrong is among its findings.
    pub async fn draft(&self, service: &str, source: &Source) -> Result<Draft, SubmitError> {
        let (log, state) = (self.log()?, self.state());
        let revisions = Revisions::latest(&state, service);
        self.shared.preparer.draft(&log, &state, service, source, &revisions).await
    }

    /// What is known of the services that a document of a service refers to.
    ///
    /// # Errors
    /// If the log or the store cannot be read.
    pub async fn world(
        &self,
        state: &State,
        service: &str,
        document: &Document,
    ) -> Result<World, SubmitError> {
        self.shared.preparer.world(&self.log()?, state, service, document).await
    }

    /// The Towers that share the log, by the names of their runs.
    pub fn members(&self) -> Vec<String> {
        let log = self.shared.log.read();
        log.as_ref().map(|log| log.members().borrow().clone()).unwrap_or_default()
    }

    /// The revision of the store from which on a Beacon knows a service's present assignment.
    pub fn revision_of(&self, service: &str) -> u64 {
        self.shared.revisions.read().get(service).copied().unwrap_or(0)
    }

    /// The log.
    ///
    /// # Errors
    /// If it was never opened, because it is out of reach.
    pub fn log(&self) -> Result<EventLog, ReadError> {
        let log = self.shared.log.read().clone();
        log.ok_or_else(|| ReadError::Unavailable(self.shared.status.borrow().reason.clone()))
    }
}
