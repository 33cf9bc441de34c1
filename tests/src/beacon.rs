//! `beacon-agent` as a process, and the Envoys that it serves.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{
    daemon::{self, Daemon},
    envoy::Envoy,
    http::Reply,
    ports::{free_address, free_port},
};

const XDS: &str = "xds";
const ADMIN: &str = "admin";

/// Many times what a new Envoy needs from its first request to its first listener.
const SERVED: Duration = Duration::from_secs(20);

/// How to start a Beacon.
#[derive(Clone, Debug, Default)]
pub struct BeaconOptions {
    /// The Towers, each as `host:port`.
    pub tower: Vec<String>,
    /// The name of its host; `beacon` if empty.
    pub node_id: String,
    /// That it is to find its name itself.
    pub unnamed: bool,
    /// The zone of its host.
    pub zone: Option<String>,
    /// The egress address of an Envoy that does not choose one; a free port if not given.
    pub egress_listen: Option<SocketAddr>,
    /// Where it serves Envoys; a free port if not given.
    pub xds_listen: Option<SocketAddr>,
    /// Where it serves operators; a free port if not given.
    pub admin_listen: Option<SocketAddr>,
    /// Where it keeps its snapshot; its own temporary folder if not given.
    pub data_dir: Option<PathBuf>,
    /// Further flags.
    pub flags: Vec<String>,
}

impl BeaconOptions {
    /// A Beacon of this Tower, all else as usual.
    pub fn of(tower: SocketAddr) -> Self {
        Self { tower: vec![tower.to_string()], ..Self::default() }
    }
}

/// The variant of xDS that an Envoy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Changes only, all types on one stream.
    Delta,
    /// The state of the world, each time, all types on one stream.
    Sotw,
    /// Changes only, a stream for each type.
    DeltaPerType,
    /// The state of the world, a stream for each type.
    SotwPerType,
}

impl Mode {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Delta, Self::Sotw, Self::DeltaPerType, Self::SotwPerType];

    /// Those with one stream, on which changes come in order.
    pub const AGGREGATED: [Self; 2] = [Self::Delta, Self::Sotw];

    /// As `beacon-agent bootstrap --mode` names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Sotw => "sotw",
            Self::DeltaPerType => "delta-per-type",
            Self::SotwPerType => "sotw-per-type",
        }
    }
}

/// What an Envoy's bootstrap is to say.
#[derive(Clone, Debug)]
pub struct BootstrapOptions {
    /// The variant of xDS.
    pub mode: Mode,
    /// The name of the Envoy.
    pub node_id: String,
    /// The Unix socket of the Beacon, if it is to be used.
    pub socket: Option<PathBuf>,
    /// The port of its egress listener; the Beacon's choice if not given.
    pub egress_port: Option<u16>,
}

/// A Beacon, killed when this is dropped.
#[derive(Debug)]
pub struct Beacon {
    daemon: Daemon,
}

impl Beacon {
    /// Starts one, and returns when it listens, which may be before it can serve.
    pub async fn start(options: BeaconOptions) -> Result<Self> {
        let arguments = |folder: &Path| {
            let data = options.data_dir.unwrap_or_else(|| folder.join("data"));
            // Explicit ports, so that they are the same after a restart.
            let xds = options.xds_listen.unwrap_or_else(free_address);
            let admin = options.admin_listen.unwrap_or_else(free_address);
            let egress = options.egress_listen.unwrap_or_else(free_address);
            let node_id = if options.node_id.is_empty() { "beacon" } else { &options.node_id };
            let mut arguments = vec![
                format!("--tower={}", options.tower.join(",")),
                format!("--data-dir={}", data.display()),
                format!("--xds-listen={xds}"),
                format!("--admin-listen={admin}"),
                format!("--egress-listen={egress}"),
            ];
            arguments.extend((!options.unnamed).then(|| format!("--node-id={node_id}")));
            arguments.extend(options.zone.map(|zone| format!("--zone={zone}")));
            arguments.extend(options.flags);
            arguments
        };
        Ok(Self { daemon: Daemon::start("beacon-agent", &[XDS, ADMIN], arguments).await? })
    }

    /// Where Envoys connect.
    pub fn xds(&self) -> SocketAddr {
        self.daemon.address(XDS)
    }

    /// Where operators and tools connect.
    pub fn admin(&self) -> SocketAddr {
        self.daemon.address(ADMIN)
    }

    /// The folder that is its own; its data are in `data`, unless it was told otherwise.
    pub fn folder(&self) -> &Path {
        self.daemon.folder()
    }

    /// Asks its admin port.
    pub async fn http_get(&self, path: &str) -> Result<Reply> {
        self.daemon.http_get(ADMIN, path).await
    }

    /// The value of a metric; see [`metrics::sum`](crate::metrics::sum).
    pub async fn metric(&self, series: &str) -> Result<Option<f64>> {
        self.daemon.metric(ADMIN, series).await
    }

    /// Waits until it can serve.
    pub async fn wait_ready(&self, deadline: Duration) -> Result<()> {
        self.daemon.wait_ok(ADMIN, "/ready", deadline).await
    }

    /// The bootstrap of an Envoy that this Beacon is to serve, as `beacon-agent bootstrap` prints it.
    /// The Envoy's admin port is one that the system chooses.
    pub async fn bootstrap(&self, options: &BootstrapOptions) -> Result<String> {
        let xds = self.xds().to_string();
        let egress = options.egress_port.map(|port| port.to_string());
        let socket = options.socket.as_ref().map(|path| path.display().to_string());
        let mut arguments = vec!["bootstrap", "--admin-port", "0"];
        match &socket {
            Some(path) => arguments.extend(["--xds-socket", path]),
            None => arguments.extend(["--xds-address", &xds]),
        }
        arguments.extend(["--mode", options.mode.name(), "--node-id", &options.node_id]);
        if let Some(port) = &egress {
            arguments.extend(["--egress-port", port]);
        }
        let output = daemon::run("beacon-agent", &arguments).await?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}", output.status, complaint.trim());
        String::from_utf8(output.stdout).context("the bootstrap is not text")
    }

    /// The bootstrap of gRPC's own client.
    pub async fn grpc_bootstrap(&self, node_id: &str) -> Result<String> {
        self.grpc_bootstrap_at(["--xds-address", &self.xds().to_string()], node_id).await
    }

    /// The same for one that comes by the Unix socket.
    pub async fn grpc_bootstrap_by(&self, socket: &Path, node_id: &str) -> Result<String> {
        self.grpc_bootstrap_at(["--xds-socket", &socket.display().to_string()], node_id).await
    }

    async fn grpc_bootstrap_at(&self, [flag, place]: [&str; 2], node_id: &str) -> Result<String> {
        let arguments = ["bootstrap", "--mode", "grpc", "--node-id", node_id, flag, place];
        let output = daemon::run("beacon-agent", &arguments).await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        String::from_utf8(output.stdout).context("the bootstrap is not text")
    }

    /// A new Envoy with a name and an egress port of its own, served by this Beacon: when this
    /// returns, it has all that it waits for at its start.
    pub async fn envoy(&self, mode: Mode) -> Result<Envoy> {
        self.connect(mode, None, 2).await
    }

    /// The same with one worker. Each balances for itself and counts a little later what others do, so that
    /// exact counts take one.
    pub async fn envoy_of_one_worker(&self, mode: Mode) -> Result<Envoy> {
        self.connect(mode, None, 1).await
    }

    /// The same, but it connects to the Beacon's Unix socket.
    pub async fn envoy_at(&self, socket: &Path, mode: Mode) -> Result<Envoy> {
        self.connect(mode, Some(socket.to_owned()), 2).await
    }

    async fn connect(&self, mode: Mode, socket: Option<PathBuf>, workers: u8) -> Result<Envoy> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let node_id = format!("envoy-{number}-{}", mode.name());
        // The listener's port is part of what the Beacon sends, so it must be known before.
        let egress_port = Some(free_port());
        let options = BootstrapOptions { mode, node_id, socket, egress_port };
        let bootstrap = self.bootstrap(&options).await?;
        let envoy = Envoy::start_with_workers(&options.node_id, &bootstrap, egress_port, workers).await?;
        envoy.wait_ready(SERVED).await?;
        Ok(envoy)
    }

    /// All that it has logged, over all its runs.
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Kills it, as a power cut would.
    pub fn kill(&mut self) {
        self.daemon.kill();
    }

    /// Asks it to stop, and waits until it has.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        self.daemon.terminate().await
    }

    /// Starts it again if it does not run, on the same ports and data.
    pub async fn restart(&mut self) -> Result<()> {
        self.daemon.restart().await
    }
}
