//! Where logs are, and what is written into them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytes::Bytes;
use tempfile::TempDir;
use tower_proto::v1;
use tower_server::event_log::{EventLog, OpenError, Options, Probe, Target};
use tower_tests::{Registry, ZooKeeper};

/// A place for a log, empty at first.
pub(super) struct Place {
    pub(super) target: Target,
    pub(super) shared: Option<Shared>,
    folder: TempDir,
}

/// What a log in ZooKeeper stands in.
pub(super) struct Shared {
    pub(super) registry: Registry,
}

impl Place {
    pub(super) fn embedded() -> Result<Self> {
        Ok(Self { target: Target::Embedded, shared: None, folder: tempfile::tempdir()? })
    }

    pub(super) async fn zookeeper() -> Result<Self> {
        // It runs until this process ends.
        Self::in_server(&*ZooKeeper::shared().await?).await
    }

    /// In a server of one's own.
    pub(super) async fn in_server(server: &ZooKeeper) -> Result<Self> {
        let registry = server.root().await?;
        let target = url(&server.connect_string(), &registry).parse()?;
        Ok(Self { target, shared: Some(Shared { registry }), folder: tempfile::tempdir()? })
    }

    /// One of each kind.
    pub(super) async fn each() -> Result<[Self; 2]> {
        Ok([Self::embedded()?, Self::zookeeper().await?])
    }

    pub(super) fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    pub(super) async fn open(&self) -> Result<EventLog> {
        self.try_open("tower-1", Probe::default()).await.context("the log opens")
    }

    /// As another Tower. A log that is embedded has one only.
    pub(super) async fn open_as(&self, run: &str) -> Result<EventLog> {
        Ok(self.try_open(run, Probe::default()).await?)
    }

    pub(super) async fn try_open(&self, run: &str, probe: Probe) -> Result<EventLog, OpenError> {
        let options = Options { run: run.to_owned(), probe };
        EventLog::open(&self.target, self.data_dir(), options).await
    }

    /// The same place, for a process of its own.
    pub(super) fn arguments(&self) -> (String, PathBuf) {
        let target = match &self.target {
            Target::Embedded => "embedded".to_owned(),
            Target::ZooKeeper(ensemble) => format!("{ensemble}?session_timeout=2s"),
        };
        (target, self.data_dir().to_owned())
    }
}

/// The value of `--event-log` for a log below this root.
pub(super) fn url(server: &str, registry: &Registry) -> String {
    format!("zk://{server}{}", registry.absolute("tower"))
}

/// An entry of a command with this id.
pub(super) fn entry(id: impl Into<String>) -> v1::LogEntry {
    v1::LogEntry { command_id: id.into(), command: "test".to_owned(), ..Default::default() }
}

/// An entry that refers to a body.
pub(super) fn with_body(id: &str, body: &Bytes) -> v1::LogEntry {
    let made = v1::ReleaseMade { bundle: hash(body), ..Default::default() };
    let event = v1::Event { service: "web".to_owned(), event: Some(v1::event::Event::ReleaseMade(made)) };
    v1::LogEntry { events: vec![event], ..entry(id) }
}

pub(super) fn hash(body: &Bytes) -> Bytes {
    Bytes::copy_from_slice(blake3::hash(body).as_bytes())
}

/// Bytes that differ from one seed to another.
pub(super) fn body(seed: u64, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes.into()
}

/// All entries, in the batches in which they are given.
pub(super) async fn all(log: &EventLog) -> Result<Vec<v1::LogEntry>> {
    let mut entries = Vec::new();
    loop {
        let next = entries.len() as u64 + 1;
        let more = log.read(next, usize::MAX).await?;
        if more.is_empty() {
            return Ok(entries);
        }
        entries.extend(more);
    }
}

impl Place {
    /// The names of the checkpoints that are kept.
    pub(super) async fn checkpoints(&self) -> Result<Vec<String>> {
        let Some(Shared { registry, .. }) = &self.shared else {
            let folder = std::fs::read_dir(self.data_dir().join("log/checkpoints"))?;
            let mut names = folder
                .map(|file| Ok(file?.file_name().to_string_lossy().into_owned()))
                .collect::<Result<Vec<_>>>()?;
            names.sort();
            return Ok(names);
        };
        registry.children("tower/checkpoints").await
    }

    /// Changes a byte of it.
    pub(super) async fn damage_newest_checkpoint(&self) -> Result<()> {
        let names = self.checkpoints().await?;
        let name = names.last().context("no checkpoint")?;
        match &self.shared {
            None => {
                let path = self.data_dir().join("log/checkpoints").join(name);
                let mut bytes = std::fs::read(&path)?;
                *bytes.last_mut().context("an empty checkpoint")? ^= 1;
                Ok(std::fs::write(path, bytes)?)
            }
            Some(Shared { registry, .. }) => {
                let path = format!("tower/checkpoints/{name}");
                let mut bytes = registry.get(&path).await?;
                *bytes.last_mut().context("an empty checkpoint")? ^= 1;
                registry.set(&path, &bytes).await
            }
        }
    }
}
