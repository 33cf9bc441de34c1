//! `tower-server` as a process.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use http::{
    HeaderValue, Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
    request,
};

use crate::{
    daemon::Daemon,
    http::{self as client, Reply},
    ports::free_address,
};

const GRPC: &str = "grpc";
const HTTP: &str = "http";

/// How to start a Tower.
#[derive(Clone, Debug, Default)]
pub struct TowerOptions {
    /// Each a value of `--discovery`.
    pub discovery: Vec<String>,
    /// Where it keeps its data; its own temporary folder if not given.
    pub data_dir: Option<PathBuf>,
    /// Where it serves Beacons; a free port if not given.
    pub grpc_listen: Option<SocketAddr>,
    /// Where it serves people; a free port if not given.
    pub http_listen: Option<SocketAddr>,
    /// Further flags.
    pub flags: Vec<String>,
}

/// A Tower, killed when this is dropped.
#[derive(Debug)]
pub struct Tower {
    daemon: Daemon,
    data: PathBuf,
}

impl Tower {
    /// Starts one, and returns when it listens, which may be before it is ready.
    pub async fn start(options: TowerOptions) -> Result<Self> {
        let mut data_dir = PathBuf::new();
        let arguments = |folder: &Path| {
            let data = options.data_dir.unwrap_or_else(|| folder.join("data"));
            data_dir.clone_from(&data);
            // Explicit ports, so that they are the same after a restart.
            let grpc = options.grpc_listen.unwrap_or_else(free_address);
            let http = options.http_listen.unwrap_or_else(free_address);
            let mut arguments = vec![
                format!("--data-dir={}", data.display()),
                format!("--grpc-listen={grpc}"),
                format!("--http-listen={http}"),
            ];
            arguments.extend(options.discovery.iter().map(|url| format!("--discovery={url}")));
            arguments.extend(options.flags);
            arguments
        };
        let daemon = Daemon::start("tower-server", &[GRPC, HTTP], arguments).await?;
        Ok(Self { daemon, data: data_dir })
    }

    /// Where Beacons connect.
    pub fn grpc(&self) -> SocketAddr {
        self.daemon.address(GRPC)
    }

    /// Where people and tools connect.
    pub fn http(&self) -> SocketAddr {
        self.daemon.address(HTTP)
    }

    /// Asks its HTTP port, as its admin.
    pub async fn http_get(&self, path: &str) -> Result<Reply> {
        self.ask(Request::get(path), "").await
    }

    /// Posts JSON to its HTTP port, as its admin.
    pub async fn http_post(&self, path: &str, body: &serde_json::Value) -> Result<Reply> {
        self.ask(Request::post(path).header(CONTENT_TYPE, "application/json"), body.to_string()).await
    }

    /// Asks its HTTP port anything, as its admin unless the request says who asks.
    pub async fn ask(&self, request: request::Builder, body: impl Into<Bytes>) -> Result<Reply> {
        let mut request = request.body(body.into())?;
        // One that shares its log with others may have none.
        if let Some(token) = self.admin_token() {
            let bearer = HeaderValue::from_str(&format!("Bearer {token}"))?;
            request.headers_mut().entry(AUTHORIZATION).or_insert(bearer);
        }
        client::send(self.http(), request).await
    }

    /// The token of the first admin, if this Tower has made it.
    pub fn admin_token(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.data.join("admin.token")).ok()?;
        Some(text.trim().to_owned())
    }

    /// The folder with its data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The folder that is its own; its data are in `data`, unless it was told otherwise.
    pub fn folder(&self) -> &Path {
        self.daemon.folder()
    }

    /// The value of a metric; see [`metrics::sum`](crate::metrics::sum).
    pub async fn metric(&self, series: &str) -> Result<Option<f64>> {
        self.daemon.metric(HTTP, series).await
    }

    /// Waits until it is ready.
    pub async fn wait_ready(&self, deadline: Duration) -> Result<()> {
        self.daemon.wait_ok(HTTP, "/readyz", deadline).await
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
