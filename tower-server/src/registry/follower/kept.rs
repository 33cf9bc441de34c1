//! What a Tower keeps on its own disk of a log that is elsewhere, so that it can serve when it starts and the
//! log is out of reach. A log in the data folder is as near as that.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use prost::Message;
use tower_common::{
    clock,
    durable::Kept,
    resource::Resource,
    sealed::{Kind, SealError},
    store::Transaction,
};
use tower_proto::v1;
use tracing::{error, warn};

use super::{EventLog, Follower, LogState, Options, Target, source};
use crate::registry::{publication::Publication, state::State};

/// The file, in the data folder.
const FILE: &str = "registry.snapshot";

const KIND: Kind = Kind { magic: b"TOWERREG", format: 1 };

/// It is written no more often than this, and no more than a tenth of the time.
const OFTEN: Duration = Duration::from_secs(5);

/// Writes the file when it is time.
pub(super) struct Keeper {
    /// None if nothing is to be kept.
    file: Option<Kept>,
    scope: String,
    /// The entry that was published last, and the one that is in the file.
    published: u64,
    written: u64,
    /// The next write is not before this.
    not_before: Instant,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
enum KeptError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Sealed(#[from] SealError),
    #[error("{0}")]
    Content(String),
}

/// What is in the file.
struct Found {
    incarnation: String,
    state: State,
    publication: Publication,
}

impl Keeper {
    pub(super) fn new(options: &Options) -> Self {
        let file = || Kept::new(options.data_dir.join(PathBuf::from(FILE)));
        Self {
            file: matches!(options.target, Target::ZooKeeper(_)).then(file),
            scope: options.scope.clone(),
            published: 0,
            written: 0,
            not_before: clock::monotonic(),
        }
    }

    /// This entry has been published.
    pub(super) fn note(&mut self, index: u64) {
        self.published = index;
    }

    /// Waits until the file is to be written.
    pub(super) async fn due(&self) {
        if self.file.is_none() || self.written == self.published {
            return std::future::pending().await;
        }
        tokio::time::sleep(self.not_before.saturating_duration_since(clock::monotonic())).await;
    }

    fn load(&self) -> Option<Found> {
        let decode = |file: &[u8]| decode(KIND.open(file)?, &self.scope);
        let found = self.file.as_ref()?.load(decode, |error| !matches!(error, KeptError::Io(_)));
        for (path, reason) in found.rejected {
            error!(path = %path.display(), %reason, "what was kept of the event log cannot be used, and is set aside");
        }
        found.contents
    }
}

fn decode(payload: &[u8], scope: &str) -> Result<Found, KeptError> {
    let content = |error: &dyn std::fmt::Display| KeptError::Content(error.to_string());
    let kept = v1::RegistrySnapshot::decode(payload).map_err(|error| content(&error))?;
    if kept.scope != scope {
        return Err(KeptError::Content(format!("it is of the scope {:?}", kept.scope)));
    }
    let resources = kept.resources.iter().map(|resource| Resource::decode(resource));
    let resources: Vec<Resource> = resources.collect::<Result<_, _>>().map_err(|error| content(&error))?;
    Ok(Found {
        incarnation: kept.incarnation,
        state: State::from_checkpoint(&kept.state).map_err(|error| content(&error))?,
        publication: Publication::of(scope, &resources).map_err(KeptError::Content)?,
    })
}

impl Follower {
    /// Serves what was kept, until the log can be read. Of a log that was opened, only if that is more than what
    /// could be folded. Returns whether it is served.
    pub(super) async fn serve_kept(&mut self, of: Option<&EventLog>) -> bool {
        let Some(found) = self.keeper.load() else { return false };
        let index = found.state.index();
        if let Some(log) = of {
            let folded = self.shared.state.read().index();
            if found.incarnation != log.incarnation() || index < folded {
                return false;
            }
        }
        warn!(index, "the event log cannot be read; what was published of it before is served");
        self.publication = found.publication;
        *self.shared.state.write() = Arc::new(found.state);
        let upserts = self.publication.resources().cloned().collect();
        let sources = vec![source(&found.incarnation, index, v1::SourceState::Stale)];
        if !self.send(Transaction { upserts, sources, ..Transaction::default() }).await {
            return false;
        }
        self.shared.status.send_modify(|status| {
            status.state = LogState::Stale;
            status.since_unix_ms = clock::unix_millis();
            status.incarnation = found.incarnation;
            status.index = index;
        });
        self.shared.applied.send_replace(index);
        true
    }

    /// Writes the file. What fails is tried again with the next entry.
    pub(super) fn write_kept(&mut self, log: &EventLog) {
        let begun = clock::monotonic();
        let keeper = &mut self.keeper;
        let Some(file) = &keeper.file else { return };
        let kept = v1::RegistrySnapshot {
            scope: keeper.scope.clone(),
            incarnation: log.incarnation().to_owned(),
            state: self.shared.state.read().to_checkpoint().into(),
            resources: self.publication.resources().map(|resource| resource.encoded().clone()).collect(),
        };
        let sealed = KIND.seal(|bytes| bytes.extend(kept.encode_to_vec()));
        if let Err(error) = file.write(&sealed) {
            warn!(%error, "what was published of the event log cannot be kept");
        }
        keeper.written = keeper.published;
        let took = begun.elapsed();
        keeper.not_before = clock::monotonic() + OFTEN.max(took * 9);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        registry::{
            Command, Registry,
            commands::{Activate, Plan, Upload},
            permission::TOWER,
            testing::{by, issue, options, store, until},
        },
        store_actor::Describe,
    };

    const DOCUMENT: &str = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {name: web, owner: t}\n";

    async fn activate(registry: &Registry) {
        registry.submit(issue("admin", "admin"), by(TOWER, "")).await.unwrap();
        let upload = Upload { service: "web".into(), file: String::new(), text: DOCUMENT.into() };
        registry.submit(Command::Upload(upload), by("admin", "")).await.unwrap();
        let plan = Plan { at_once: true, ..Plan::default() };
        let activate = Activate { service: "web".into(), version: 1, plan, again: false };
        registry.submit(Command::Activate(activate), by("admin", "")).await.unwrap();
    }

    /// A file of the state and resources of a log, as a Tower with a log elsewhere writes it.
    async fn kept(data_dir: &std::path::Path) -> (Vec<u8>, String) {
        let registry = crate::registry::start(options(data_dir, &store())).await.unwrap();
        activate(&registry).await;
        let log = registry.log().unwrap();
        let state = registry.state();
        let mut publication = Publication::new("");
        let mut bundles = crate::registry::publication::Bundles::new();
        for wanted in publication.wanted(&state, "web") {
            bundles.insert(wanted.release, Ok(log.body(&wanted.bundle).await.unwrap()));
        }
        publication.update(&state, "web", &bundles, &mut Transaction::default());
        let snapshot = v1::RegistrySnapshot {
            scope: String::new(),
            incarnation: log.incarnation().to_owned(),
            state: state.to_checkpoint().into(),
            resources: publication.resources().map(|resource| resource.encoded().clone()).collect(),
        };
        (KIND.seal(|bytes| bytes.extend(snapshot.encode_to_vec())), log.incarnation().to_owned())
    }

    #[actix::test]
    async fn what_was_kept_is_served_stale_until_the_log_is_back() {
        let dir = tempfile::tempdir().unwrap();
        let (file, incarnation) = kept(dir.path()).await;
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join(FILE), file).unwrap();
        let store = store();
        let mut options = options(elsewhere.path(), &store);
        // Nobody listens there.
        options.target = "zk://127.0.0.1:1/tower".parse().unwrap();
        let registry = crate::registry::follower::spawn(options, Err("it is out of reach".into()));
        let status = until(&registry, |status| status.state == LogState::Stale).await;
        assert_eq!((&status.incarnation, status.index), (&incarnation, 3));
        let summary = store.send(Describe).await.unwrap();
        assert!(summary.complete && summary.resources > 1, "{summary:?}");
        assert_eq!(registry.read(|state| state.service("web").unwrap().versions.len()), 1);
        let refused = registry.submit(issue("other", "viewer"), by("admin", "")).await.unwrap_err();
        assert!(refused.to_string().contains("nothing can be changed"), "{refused}");
    }

    #[test]
    fn what_is_torn_or_of_another_scope_is_not_used() {
        let empty = v1::RegistrySnapshot { scope: "eu".into(), ..Default::default() }.encode_to_vec();
        assert!(decode(&empty, "eu").is_ok());
        let other = decode(&empty, "us").map(|_| ()).unwrap_err().to_string();
        assert_eq!(other, "it is of the scope \"eu\"");
        assert!(decode(&[0xff], "eu").is_err());
    }
}
