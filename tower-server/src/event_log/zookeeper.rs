//! A log of many Towers, in an ensemble. Below its path:
//!
//! | znode | has |
//! |---|---|
//! | `head` | a `LogHead`: whoever replaces it has appended |
//! | `log/<n/1000>/<n>` | entry n |
//! | `ids/<xx>/<hash of a command id>` | the index of its entry, in digits |
//! | `bodies/<xx>/<hash>` | a `StoredBytes`, with its chunks below it |
//! | `checkpoints` | a `Checkpoints`; below it a `StoredBytes` each |
//! | `towers/<run>` | nothing: a Tower that has the log open; ephemeral |
//!
//! An append is one `multi`: it replaces `head`, if that is still the one that was known, and creates the entry
//! and its command id. So any number of Towers append, and no index is used twice or left out. Readers watch
//! `head` alone.
//!
//! `shared` is what is known; `session` keeps in touch; `requests` makes requests through whichever session there is; `append`, and
//! `stored` for bytes of any size, make them.

mod append;
mod requests;
mod session;
mod shared;
mod stored;

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use prost::Message;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower_proto::v1;
use zookeeper_client::Error;

use self::{
    requests::{Failure, PATHS},
    shared::{Known, Shared},
};
use super::{
    Options, Probe, State,
    error::{BackendError, OpenError},
    paths,
};
use crate::sources::spec::Ensemble;

/// How long opening waits beyond the session timeout, which is what a single attempt may take.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

/// The log in an ensemble, as one Tower sees it.
#[derive(Clone)]
pub(super) struct ZooKeeper {
    shared: Arc<Shared>,
    probe: Probe,
    /// Ends the session with the last clone.
    _session: Arc<DropGuard>,
}

impl ZooKeeper {
    /// Opens the log, or makes a new one, and keeps in touch from then on.
    pub(super) async fn open(
        ensemble: &Ensemble,
        options: Options,
        known: Option<v1::LogHead>,
    ) -> Result<Self, OpenError> {
        let log = ensemble.to_string();
        let shared = Arc::new(Shared::new(ensemble.clone(), options.run, known));
        let ended = CancellationToken::new();
        let session = Arc::new(ended.clone().drop_guard());
        let keeping = shared.clone();
        tokio::spawn(async move { ended.run_until_cancelled(session::keep(&keeping)).await });
        let mut state = shared.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Unreachable { .. }));
        let settled = timeout(ensemble.session_timeout + OPEN_PATIENCE, settled).await;
        drop(settled);
        let state = shared.state.borrow().clone();
        match state {
            State::Live => Ok(Self { shared, probe: options.probe, _session: session }),
            State::Unreachable { why, .. } => Err(OpenError::Unavailable { log, why }),
            State::Refused { why } => Err(OpenError::Unusable { log, why }),
        }
    }

    pub(super) fn head(&self) -> v1::LogHead {
        self.known().head
    }

    fn known(&self) -> Known {
        self.shared.known.borrow().clone().unwrap_or_default()
    }

    pub(super) fn newest(&self) -> watch::Receiver<u64> {
        self.shared.newest.subscribe()
    }

    pub(super) fn members(&self) -> watch::Receiver<Vec<String>> {
        self.shared.members.subscribe()
    }

    pub(super) fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    pub(super) fn entry_path(&self, index: u64) -> String {
        self.path(&paths::entry(index))
    }

    /// A path as people find it.
    pub(super) fn path(&self, path: &str) -> String {
        self.shared.path(path)
    }

    /// At most so many entries from this index on, up to the first that is not there.
    pub(super) async fn entries(&self, from: u64, limit: usize) -> Result<Vec<Bytes>, BackendError> {
        let paths: Vec<String> = (from..).take(limit).map(|index| self.path(&paths::entry(index))).collect();
        let mut found = Vec::with_capacity(limit);
        for batch in paths.chunks(PATHS) {
            let mut read = self.shared.read(batch).await?;
            if read.iter().any(Option::is_none) {
                // A server that lags may not have what is known to be there.
                self.shared.sync().await?;
                read = self.shared.read(batch).await?;
            }
            let there = read.into_iter().map_while(|data| data).map(Bytes::from);
            let before = found.len();
            found.extend(there);
            if found.len() - before < batch.len() {
                break;
            }
        }
        Ok(found)
    }

    /// The index of the entry with a command id, as the ensemble knows it now.
    pub(super) async fn index_of(&self, command_id: &str) -> Result<Option<u64>, Failure> {
        self.shared.sync().await?;
        let path = self.path(&paths::id(command_id));
        let Some(data) = self.shared.data(&path).await? else { return Ok(None) };
        let index = str::from_utf8(&data).ok().and_then(|digits| digits.parse().ok());
        index.map(Some).ok_or_else(|| Failure::Answer(format!("{path} is no index")))
    }

    pub(super) async fn checkpoints(&self) -> Result<v1::Checkpoints, BackendError> {
        Ok(self.checkpoints_and_version().await?.0)
    }

    async fn checkpoints_and_version(&self) -> Result<(v1::Checkpoints, i32), BackendError> {
        let path = self.path(paths::CHECKPOINTS);
        let data = self.shared.data_and_version(&path).await?;
        let (data, version) = data.ok_or_else(|| BackendError::Failed(format!("{path} is not there")))?;
        let decoded = v1::Checkpoints::decode(&data[..]);
        let checkpoints =
            decoded.map_err(|error| BackendError::Failed(format!("{path} is damaged: {error}")))?;
        Ok((checkpoints, version))
    }

    /// Sets them if they are still the old ones; tells whether they were.
    pub(super) async fn replace_checkpoints(
        &self,
        old: v1::Checkpoints,
        new: v1::Checkpoints,
    ) -> Result<bool, BackendError> {
        let (found, version) = self.checkpoints_and_version().await?;
        if found != old {
            return Ok(false);
        }
        self.probe.at("checkpoints");
        let replaced = self.shared.set(&self.path(paths::CHECKPOINTS), new.encode_to_vec(), version).await?;
        self.probe.at("checkpoints replaced");
        Ok(replaced)
    }

    /// Changes what the head says besides the newest entry; it must be this log's.
    pub(super) async fn set_head(&self, new: v1::LogHead) -> Result<(), BackendError> {
        let known = self.known();
        self.shared.expect(&new.incarnation);
        self.probe.at("head");
        let replaced = self.shared.set(&self.path(HEAD), new.encode_to_vec(), known.version).await?;
        if !replaced {
            return Err(BackendError::Failed("another process writes to the log as well".to_owned()));
        }
        let new = Known { head: new, version: known.version + 1 };
        self.shared.learn(new).map_err(BackendError::Failed)
    }
}

const HEAD: &str = "head";
const TOWERS: &str = "towers";

/// The folders that are there from the start.
const FOLDERS: [&str; 5] = ["log", "ids", paths::BODIES, paths::CHECKPOINTS, TOWERS];

/// What of a path's folders has to be made.
fn parent(path: &str) -> String {
    PathBuf::from(path).parent().map_or_else(String::new, |parent| parent.display().to_string())
}

/// Whether a server has said this of a znode, so that it is no matter of the connection.
fn is_answer(error: &Error) -> bool {
    matches!(
        error,
        Error::NoNode
            | Error::NodeExists
            | Error::BadVersion
            | Error::NotEmpty
            | Error::NoAuth
            | Error::InvalidAcl
            | Error::BadArguments(_)
            | Error::NoChildrenForEphemerals
            | Error::QuotaExceeded
    )
}
