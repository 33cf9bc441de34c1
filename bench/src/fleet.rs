//! What the scenarios with many Beacons have in common: a mesh in ZooKeeper, a Tower that watches it, and the
//! swarm.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustls::{ClientConfig, client::Resumption};
use tempfile::TempDir;
use tower_common::{
    clock,
    tls::{ClientFiles, Reloading, TlsFile},
};
use tower_tests::{Authority, Tower, TowerOptions, ZooKeeper};

use crate::{
    machine::{Process, allow_files},
    mesh::{Mesh, Size},
    swarm::{
        Swarm,
        beacon::DOMAIN,
        connection::{Kind, Target},
    },
};

/// No step of any scenario takes so long, on a machine that can hold it at all.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How many Beacons, and whether by TLS.
#[derive(Debug, Clone, Copy, Args)]
pub struct Beacons {
    /// Beacons
    #[arg(long, default_value_t = 1000)]
    pub beacons: usize,
    /// Connect them by mutual TLS
    #[arg(long)]
    pub tls: bool,
}

/// A mesh, and what is needed to start Towers over it.
#[derive(Debug)]
pub struct Fleet {
    /// What is registered.
    pub mesh: Mesh,
    tls: Option<Secrets>,
    zookeeper: ZooKeeper,
}

/// The files of both ends, with which none of them resumes a session.
#[derive(Debug)]
struct Secrets {
    folder: TempDir,
    flags: Vec<String>,
    client: Arc<ClientConfig>,
}

/// A Tower, and its process.
#[derive(Debug)]
pub struct WatchedTower {
    /// The Tower.
    pub tower: Tower,
    /// Where Beacons connect.
    pub target: Target,
}

impl Fleet {
    /// A mesh of this size, for so many Beacons.
    ///
    /// # Errors
    /// If they are more than this machine allows, or something cannot be started.
    pub async fn new(beacons: Beacons, size: Size) -> Result<Self> {
        allow_files(beacons.beacons)?;
        let zookeeper = ZooKeeper::start().await?;
        let mesh = Mesh::register(&zookeeper, size).await?;
        let tls = beacons.tls.then(Secrets::make).transpose()?;
        Ok(Self { mesh, tls, zookeeper })
    }

    /// A Tower over it that is ready.
    ///
    /// # Errors
    /// If it does not get ready.
    pub async fn tower(&self) -> Result<WatchedTower> {
        // Holds and the ends of old streams are not what is measured.
        let mut flags = vec!["--guard-hold=0s".to_owned(), "--stream-age=24h".to_owned()];
        flags.extend([
            "--log=info,tower_server::fanout=warn".to_owned(),
            "--warn-services=1000000".to_owned(),
        ]);
        flags.extend(self.tls.iter().flat_map(|tls| tls.flags.clone()));
        // As Towers have it that stand beside each other.
        let log = self.mesh.registry.absolute("log");
        flags.push(format!("--event-log=zk://{}{log}", self.zookeeper.connect_string()));
        let discovery = vec![self.mesh.registry.discovery("hostport")];
        let tower = Tower::start(TowerOptions { discovery, flags, ..Default::default() }).await?;
        tower.wait_ready(LIMIT).await?;
        let target = Target { address: tower.grpc(), tls: self.client(), kind: Kind::Tower };
        Ok(WatchedTower { tower, target })
    }

    /// What hosts have, if there is TLS.
    pub fn client(&self) -> Option<Arc<ClientConfig>> {
        self.tls.as_ref().map(|tls| tls.client.clone())
    }

    /// The folder with the files of servers, if there is TLS.
    pub fn secrets(&self) -> Option<&Path> {
        self.tls.as_ref().map(|tls| tls.folder.path())
    }
}

impl WatchedTower {
    /// Its process.
    ///
    /// # Errors
    /// If it does not run.
    pub fn process(&self) -> Result<Process> {
        Process::of_tower(self.tower.grpc())
    }

    /// Connects all Beacons of a swarm, the first before the others, whose disks hold the same.
    ///
    /// # Errors
    /// If they do not all get what Tower has.
    pub async fn fill(&self, swarm: &Swarm) -> Result<()> {
        swarm.connect(0..1, &self.target)?;
        swarm.until_equal(1, LIMIT).await?;
        swarm.restore(1..swarm.count)?;
        swarm.connect(1..swarm.count, &self.target)?;
        swarm.until_equal(swarm.count, LIMIT).await
    }

    /// Waits until it holds the whole mesh, as that is now.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn settled(&self, mesh: &Mesh) -> Result<()> {
        self.until_metric("tower_store_resources", mesh.resources()).await
    }

    /// Waits until Tower knows of exactly so many Beacons.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn until_connected(&self, count: usize) -> Result<()> {
        self.until_metric("tower_beacons_connected", count).await
    }

    async fn until_metric(&self, name: &str, wanted: usize) -> Result<()> {
        let start = clock::monotonic();
        loop {
            let value = self.tower.metric(name).await?.unwrap_or(-1.0);
            if value == wanted as f64 {
                return Ok(());
            }
            ensure!(start.elapsed() < LIMIT, "{name} is {value} and not {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// What was counted between two moments.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// When.
    pub at: Instant,
    /// CPU time of Tower.
    pub cpu: Duration,
    /// Messages that the swarm received.
    pub messages: f64,
    /// Bytes that it received.
    pub bytes: f64,
    /// Bytes of those messages alone.
    pub payload: f64,
    /// Reports that it sent.
    pub reports: f64,
    /// CPU time of the swarm.
    pub swarm_cpu: Duration,
}

impl Counted {
    /// All that there is so far.
    pub fn now(tower: Process, swarm: &Swarm) -> Self {
        Self {
            at: clock::monotonic(),
            cpu: tower.cpu(),
            messages: swarm.board.messages.load(Relaxed) as f64,
            bytes: swarm.board.bytes.load(Relaxed) as f64,
            payload: swarm.board.payload.load(Relaxed) as f64,
            reports: swarm.board.reports.load(Relaxed) as f64,
            swarm_cpu: Process::own().cpu_of_thread(crate::swarm::THREAD),
        }
    }

    /// What came since.
    pub fn since(self, before: Self) -> Span {
        Span {
            seconds: self.at.duration_since(before.at).as_secs_f64(),
            cpu: self.cpu.saturating_sub(before.cpu).as_secs_f64(),
            messages: self.messages - before.messages,
            bytes: self.bytes - before.bytes,
            payload: self.payload - before.payload,
            reports: self.reports - before.reports,
            swarm_cpu: self.swarm_cpu.saturating_sub(before.swarm_cpu).as_secs_f64(),
        }
    }
}

/// The difference of two [`Counted`]; times in seconds.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs, reason = "as in `Counted`")]
pub struct Span {
    pub seconds: f64,
    pub cpu: f64,
    pub messages: f64,
    pub bytes: f64,
    pub payload: f64,
    pub reports: f64,
    pub swarm_cpu: f64,
}

impl std::ops::AddAssign for Span {
    fn add_assign(&mut self, more: Self) {
        self.seconds += more.seconds;
        self.cpu += more.cpu;
        self.messages += more.messages;
        self.bytes += more.bytes;
        self.payload += more.payload;
        self.reports += more.reports;
        self.swarm_cpu += more.swarm_cpu;
    }
}

impl Secrets {
    /// One certificate is for all hosts of the swarm, by a wildcard: what a handshake costs does not depend on
    /// the names.
    fn make() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let authority = Authority::new("bench")?;
        let flags = authority.issue(folder.path(), &["tower", "127.0.0.1"])?.tower();
        let hosts = folder.path().join("hosts");
        std::fs::create_dir(&hosts)?;
        authority.issue(&hosts, &[&format!("*.{DOMAIN}")])?;
        let file = |flag: &'static str, name: &str| TlsFile::new(flag, hosts.join(name));
        let files = ClientFiles {
            ca: file("ca", "ca.pem"),
            identity: Some((file("cert", "cert.pem"), file("key", "key.pem"))),
        };
        let made = Reloading::new(files).current().map_err(anyhow::Error::msg);
        let mut client = (*made.context("the swarm's TLS files cannot be used")?.grpc).clone();
        client.resumption = Resumption::disabled();
        Ok(Self { folder, flags, client: client.into() })
    }
}
