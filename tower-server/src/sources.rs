//! Sources: where Tower learns which endpoints services have.
//!
//! - [`spec`]: what `--discovery` says
//! - `zookeeper`, `files`: reading, each in a task of its own that feeds the source's actor
//! - [`format`], [`address`]: what registrations look like
//! - `model`: what a source knows and has published, as plain logic
//! - `actor`: the shell around the model; `resolver`: host names
//! - [`report`], [`metrics`]: what is seen of a source from outside
//!
//! What is not here: what a view makes of the endpoints, and which of two sources wins.

mod actor;
pub mod address;
mod files;
pub mod format;
pub mod metrics;
mod model;
pub mod report;
mod resolver;
pub mod spec;
mod vital;
mod zookeeper;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use actix::{Addr, Arbiter, Context, Recipient};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use self::{
    actor::{Describe, MAILBOX, SourceActor, Stop},
    model::Model,
    vital::vital,
};
pub use self::{
    metrics::Metrics,
    report::SourceReport,
    spec::{SourceKind, SourceSpec, SpecError, parse, parse_all},
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

    /// Ends the source. What it published stays.
    pub async fn stop(&self) {
        // An error says that it has ended already.
        let _ = self.actor.send(Stop).await;
    }
}

/// Starts the sources, which publish to `store` from then on: first of all that they are loading. They share
/// a thread, so that neither a large reading delays the store, nor the store a reading.
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
            let model = Model::new(scope, spec.id.clone(), spec.optional, lost_after);
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
