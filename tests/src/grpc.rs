//! gRPC's own client, which needs no proxy: grpcio in a process of its own.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{
    http::{self, Protocol, Tally},
    leash::{Leash, Start},
    log::Log,
    programs,
};

/// From exec to its port; Python and grpcio take a second to load.
const STARTED: Duration = Duration::from_secs(30);

const SCRIPT: &str = include_str!("grpc_client.py");

/// A running client, killed when this is dropped.
#[derive(Debug)]
pub struct GrpcClient {
    _process: Leash,
    address: SocketAddr,
    log: Log,
    /// Last, so that it is removed when the process is gone.
    _folder: TempDir,
}

impl GrpcClient {
    /// Starts one with this bootstrap, as `beacon-agent bootstrap --mode grpc` prints it.
    pub async fn start(bootstrap: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("tower-grpc-").tempdir();
        let folder = folder.context("cannot make a temporary folder")?;
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("client.py"), SCRIPT).context("cannot write the script")?;
        std::fs::write(path("bootstrap.json"), bootstrap).context("cannot write the bootstrap")?;
        let log = Log::new("grpc", folder.path());
        let arguments = ["client.py", "port", "bootstrap.json"].map(|name| path(name).display().to_string());
        let mut process = Leash::start(Start {
            program: &programs::python()?,
            arguments: &arguments,
            output: log.open()?,
            litter: None,
        })?;
        let read = async || {
            let text = std::fs::read_to_string(path("port")).context("no port yet")?;
            text.parse().with_context(|| format!("no address: {text:?}"))
        };
        let address = process.until(&log, STARTED, "has a port", read).await?;
        Ok(Self { _process: process, address, log, _folder: folder })
    }

    /// Calls a target several times, and counts who answers. An error tells the failures.
    pub async fn tally(&self, target: &str, authority: &str, calls: usize) -> Result<Tally> {
        let path = format!("/?target={target}&authority={authority}&calls={calls}");
        let reply = http::get(self.address, Protocol::Http1, "localhost", &path).await?.ok()?.json()?;
        let failures = reply["failures"].to_string();
        ensure!(failures == "{}", "{failures}");
        let answers = reply["answers"].as_object().context("no answers")?.iter();
        let count = |count: &serde_json::Value| count.as_u64().and_then(|count| usize::try_from(count).ok());
        let answers = answers.filter_map(|(name, number)| Some((name.clone(), count(number)?))).collect();
        Ok(Tally { answers, ..Tally::default() })
    }

    /// All that it has logged.
    pub fn log(&self) -> String {
        self.log.text()
    }
}
