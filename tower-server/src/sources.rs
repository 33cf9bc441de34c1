//! Sources: where Tower learns which endpoints services have.
//!
//! - [`spec`]: what `--discovery` says
//! - `zookeeper`, `files`: reading, each in a task of its own that feeds the source's actor
//! - [`format`], [`address`]: what registrations look like
//! - `model`: what a source knows and has published, as plain logic
//! - `disk`: what the next run of Tower begins with
//! - `guard`: what is registered no more, and stays for a while all the same
//! - `actor`: the shell around the model; `resolver`: host names
//! - [`report`], [`metrics`]: what is seen of a source from outside
//!
//! What is not here: what a view makes of the endpoints, and which of two sources wins.

mod actor;
pub mod address;
mod disk;
mod files;
pub mod format;
mod guard;
pub mod metrics;
mod model;
pub mod report;
mod resolver;
pub mod spec;
mod vital;
pub(crate) mod zookeeper;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use actix::{Addr, Arbiter, Context, Recipient};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

pub(crate) use self::model::check_service_name;
pub use self::{
    actor::OperatorError,
    metrics::Metrics,
    model::{AdoptError, BadServiceName, Position},
    report::SourceReport,
    spec::{SourceKind, SourceSpec, SpecError, parse, parse_all},
};
use self::{
    actor::{Adopt, Describe, MAILBOX, Release, SourceActor, Stop},
    disk::Disk,
    guard::{Now, Policy},
    model::Model,
    vital::vital,
};
use crate::store_actor::Publish;

/// A folder that cannot be read for so long is lost.
const FOLDER_LOST_AFTER: Duration = Duration::from_secs(30);

/// So much of what was read may wait for the actor.
const FEED: usize = 4;

/// A source at work.
#[derive(Debug, Clone)]
pub struct SourceHandle {
    spec: SourceSpec,
    actor: Addr<SourceActor>,
}

/// Why the sources cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("folder {} cannot be made: {error}", path.display())]
pub struct StartError {
    path: PathBuf,
    #[source]
    error: io::Error,
}

impl SourceHandle {
    /// The id of the source.
    pub fn id(&self) -> &str {
        &self.spec.id
    }

    /// The source, as it is now. One that was stopped is lost, and says so.
    pub async fn describe(&self) -> SourceReport {
        match self.actor.send(Describe).await {
            Ok(report) => report,
            Err(_) => SourceReport::stopped(&self.spec),
        }
    }

    /// Lets go what a hold holds; tells how many endpoints those are. `from` and `reason` are for the log.
    ///
    /// # Errors
    /// If there is no such hold, or the disk does not keep that it is released.
    pub async fn release(&self, hold: &str, from: &str, reason: &str) -> Result<usize, OperatorError> {
        let message = Release { hold: hold.to_owned(), from: from.to_owned(), reason: reason.to_owned() };
        self.actor.send(message).await.unwrap_or(Err(OperatorError::Stopped))
    }

    /// Believes what the source has in quarantine, if it has this incarnation; tells the position from now
    /// on. `from` and `reason` are for the log.
    ///
    /// # Errors
    /// If there is nothing to adopt, or something else, or the disk does not keep what was adopted.
    pub async fn adopt(
        &self,
        incarnation: &str,
        from: &str,
        reason: &str,
    ) -> Result<Position, OperatorError> {
        let message =
            Adopt { incarnation: incarnation.to_owned(), from: from.to_owned(), reason: reason.to_owned() };
        self.actor.send(message).await.unwrap_or(Err(OperatorError::Stopped))
    }

    /// Ends the source. What it published stays, and is on disk as far as the disk allows.
    pub async fn stop(&self) {
        // An error says that it has ended already.
        let _ = self.actor.send(Stop).await;
    }
}

/// Starts the sources, which publish to `store` from then on: first of all that they are loading. What
/// shrinks beyond the limit is held for `guard_hold`. They share a thread, so that neither a large reading delays the store, nor the store a reading.
///
/// What the last run has kept of a source is published at once, as stale.
///
/// # Errors
/// If the folder `sources` of the data folder cannot be made.
///
/// # Panics
/// If no actix system is running.
pub fn start(
    specs: Vec<SourceSpec>,
    scope: &str,
    data_dir: &Path,
    guard_hold: Duration,
    store: Recipient<Publish>,
    metrics: Metrics,
) -> Result<Vec<SourceHandle>, StartError> {
    let scope = tower_common::canonical_scope(scope);
    let records = data_dir.join("sources");
    std::fs::create_dir_all(&records).map_err(|error| StartError { path: records.clone(), error })?;
    let arbiter = Arbiter::new();
    let handles = specs
        .into_iter()
        .map(move |spec| {
            let lost_after = match &spec.kind {
                SourceKind::ZooKeeper(zookeeper) => zookeeper.session_timeout,
                SourceKind::Files(_) => FOLDER_LOST_AFTER,
            };
            let policy = Policy {
                hold: guard_hold,
                settle: guard::SETTLE,
                window: lost_after * guard::WINDOW_SESSIONS,
            };
            let mut model = Model::new(scope, spec.id.clone(), spec.optional, lost_after, policy);
            let disk = Disk::new(&records, &spec.id, scope);
            let (saved, record) = disk.read();
            if let Some(saved) = &saved {
                let (id, endpoints, position) = (&spec.id, saved.endpoints.len(), &saved.position);
                tracing::info!(source = %id, endpoints, ?position, "a source begins with its last good state");
            }
            model.restore(saved, &record, Now::read());
            let (feed, input) = mpsc::channel(FEED);
            let reading = CancellationToken::new();
            let (sender, mailbox) = actix::dev::channel::channel(MAILBOX);
            let handle = SourceHandle { spec: spec.clone(), actor: Addr::new(sender) };
            let record = records.join(format!("{}.json", spec.id));
            let kind = spec.kind.clone();
            let actor = SourceActor::new(
                spec,
                model,
                ReceiverStream::new(input),
                store.clone(),
                metrics.clone(),
                disk,
                reading.clone().drop_guard(),
            );
            arbiter.spawn_fn(move || {
                let context = Context::with_receiver(mailbox);
                actix::spawn(vital("source", context.into_future(actor)));
                actix::spawn(vital("reader of a source", async move {
                    let read = async {
                        match kind {
                            SourceKind::ZooKeeper(spec) => zookeeper::run(spec, feed).await,
                            SourceKind::Files(spec) => files::run(spec, record, feed).await,
                        }
                    };
                    reading.run_until_cancelled(read).await;
                }));
            });
            handle
        })
        .collect();
    Ok(handles)
}

#[cfg(test)]
mod tests;
