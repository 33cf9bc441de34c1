//! The registry's task: follows the log, publishes what it comes to, and adds commands to it, one at a time.

mod follow;
mod kept;
mod open;
mod submit;

use std::{path::PathBuf, sync::Arc};

use actix::Addr;
use parking_lot::RwLock;
use tokio::sync::{mpsc, watch};
use tower_common::{clock, store::Transaction};
use tower_proto::v1;

use self::kept::Keeper;
use super::{
    handle::{Ask, LogState, Registry, Shared, Status},
    prepare::{Hosts, Preparer},
    publication::{Publication, SOURCE},
    state::State,
};
use crate::{
    event_log::{self, EventLog, OpenError, Target},
    store_actor::{Publish, StoreActor},
};

/// Commands that may wait; more make those who ask wait.
const WAITING: usize = 64;

/// What the registry is made of.
pub struct Options {
    /// Where the log is.
    pub target: Target,
    /// Tower's data folder.
    pub data_dir: PathBuf,
    /// The mesh or region.
    pub scope: String,
    /// The name of this run of Tower.
    pub run: String,
    /// After so many entries a checkpoint is made.
    pub checkpoint_every: u64,
    /// Where what is published goes.
    pub store: Addr<StoreActor>,
    /// Which hosts there are.
    pub hosts: Arc<dyn Hosts>,
}

/// Follows the log.
struct Follower {
    options: Options,
    shared: Arc<Shared>,
    publication: Publication,
    /// Services that have changed and are not published yet.
    dirty: std::collections::BTreeSet<String>,
    /// Why nothing more is folded.
    stopped: Option<String>,
    /// Entries do not follow each other: some were changed, and those before may be among them.
    broken: bool,
    /// What was kept is served in place of a log that cannot be followed.
    frozen: bool,
    /// The entry of the last checkpoint.
    checkpoint: u64,
    /// Whether the whole state has been published.
    published: bool,
    /// What is kept for a start without the log.
    keeper: Keeper,
}

/// Starts the registry on an arbiter of its own. A log that cannot be reached yet is tried again; until it has
/// been read, Beacons wait for it.
///
/// # Errors
/// If the log can never be used: another process has it, or it is something else.
pub async fn start(options: Options) -> Result<Registry, OpenError> {
    // Before anything else: nothing is whole without the log.
    let loading = source("", 0, v1::SourceState::Loading);
    let loading = Transaction { sources: vec![loading], ..Transaction::default() };
    if let Err(error) = options.store.send(Publish(loading)).await {
        tracing::error!(%error, "the store is gone");
    }
    let first = match open(&options).await {
        Ok(log) => Ok(log),
        Err(error @ OpenError::Unavailable { .. }) => Err(error.to_string()),
        Err(error) => return Err(error),
    };
    Ok(spawn(options, first))
}

fn spawn(options: Options, first: Result<EventLog, String>) -> Registry {
    let status = Status {
        state: LogState::Loading,
        reason: first.as_ref().err().cloned().unwrap_or_default(),
        since_unix_ms: clock::unix_millis(),
        incarnation: String::new(),
        index: 0,
        problems: std::collections::BTreeMap::new(),
    };
    let shared = Arc::new(Shared {
        state: RwLock::new(Arc::new(State::default())),
        applied: watch::Sender::new(0),
        status: watch::Sender::new(status),
        log: RwLock::new(first.as_ref().ok().cloned()),
        preparer: Preparer { store: options.store.clone(), hosts: options.hosts.clone() },
        revisions: RwLock::default(),
    });
    let (sender, asks) = mpsc::channel(WAITING);
    let keeper = Keeper::new(&options);
    let follower = Follower {
        publication: Publication::new(&options.scope),
        options,
        shared: shared.clone(),
        dirty: std::collections::BTreeSet::new(),
        stopped: None,
        broken: false,
        frozen: false,
        checkpoint: 0,
        published: false,
        keeper,
    };
    actix::Arbiter::new().spawn(follower.run(first.ok(), asks));
    Registry { shared, asks: sender }
}

/// How the log is, as a source.
fn source(incarnation: &str, index: u64, state: v1::SourceState) -> v1::SourceStatus {
    let position = (state != v1::SourceState::Loading).then(|| v1::Position {
        source: SOURCE.to_owned(),
        incarnation: incarnation.to_owned(),
        index,
    });
    v1::SourceStatus { source: SOURCE.to_owned(), state: state.into(), position, optional: false }
}

async fn open(options: &Options) -> Result<EventLog, OpenError> {
    let run = event_log::Options { run: options.run.clone(), ..event_log::Options::default() };
    EventLog::open(&options.target, &options.data_dir, run).await
}

impl Follower {
    async fn run(mut self, first: Option<EventLog>, mut asks: mpsc::Receiver<Ask>) {
        let log = match first {
            Some(log) => log,
            None => {
                self.serve_kept(None).await;
                let Some(log) = self.open(&mut asks).await else { return };
                *self.shared.log.write() = Some(log.clone());
                log
            }
        };
        self.begin(&log).await;
        let (mut head, mut standing) = (log.head(), log.state());
        loop {
            let again = self.follow(&log).await;
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(ask) => self.answer(&log, ask).await,
                    None => return,
                },
                Ok(()) = head.changed() => {}
                Ok(()) = standing.changed() => {}
                () = tokio::time::sleep(if self.stopped.is_some() { follow::MENDED } else { follow::AGAIN }), if again => {}
                () = self.keeper.due() => self.write_kept(&log),
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
