//! A server of ours as a process: started with flags, found by what it logs, restarted in place.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Output},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use crate::{
    http::{self, Protocol, Reply},
    leash::{Leash, Start},
    log::Log,
    metrics, poll, programs,
};

/// From exec to sockets; generous, for debug builds on machines that do other things too.
const STARTED: Duration = Duration::from_secs(20);

/// Longer than the drain that SIGTERM begins.
const STOPPED: Duration = Duration::from_secs(30);

/// No command of ours that ends by itself takes so long.
const COMMAND: Duration = Duration::from_secs(20);

/// A running server, or one that was stopped and can run again.
#[derive(Debug)]
pub struct Daemon {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    /// The services whose sockets it binds, by the name that it logs.
    services: &'static [&'static str],
    addresses: BTreeMap<String, SocketAddr>,
    process: Option<Leash>,
    log: Log,
    /// Last, so that it is removed when the process is gone.
    folder: TempDir,
}

impl Daemon {
    /// Starts `name` with `arguments`, and returns when all of its `services` listen.
    ///
    /// `arguments` is given the folder that is the server's own, where its data may go.
    pub async fn start(
        name: &'static str,
        services: &'static [&'static str],
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir();
        let folder = folder.context("cannot make a temporary folder")?;
        let mut arguments = arguments(folder.path());
        arguments.extend(["--log-format", "json"].map(str::to_owned));
        let mut daemon = Self {
            name,
            program: programs::ours(name)?,
            arguments,
            services,
            addresses: BTreeMap::new(),
            process: None,
            log: Log::new(name, folder.path()),
            folder,
        };
        daemon.restart().await?;
        Ok(daemon)
    }

    /// Where one of its services listens.
    ///
    /// # Panics
    ///
    /// If it has no such service: [`Daemon::start`] has waited for all of them.
    pub fn address(&self, service: &str) -> SocketAddr {
        self.addresses[service]
    }

    /// The folder that is its own.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it, as a power cut would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Asks it to stop, and waits until it has.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().with_context(|| format!("{} does not run", self.name))?;
        process.terminate()?;
        let status = process.wait(STOPPED).await;
        status.with_context(|| format!("{} does not stop\n{}", self.name, self.log.tail()))
    }

    /// Starts it again if it does not run, with the arguments that it had.
    pub async fn restart(&mut self) -> Result<()> {
        if self.process.is_some() {
            return Ok(());
        }
        let mark = self.log.mark();
        let mut process = Leash::start(Start {
            program: &self.program,
            arguments: &self.arguments,
            output: self.log.open()?,
            litter: None,
        })?;
        let listens = async || {
            let addresses = listening(&self.log.text_after(mark));
            for service in self.services {
                ensure!(addresses.contains_key(*service), "no log line that {service} listens");
            }
            Ok(addresses)
        };
        self.addresses = process.until(&self.log, STARTED, "listens", listens).await?;
        self.process = Some(process);
        Ok(())
    }

    /// All that it has logged, over all its runs.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Asks one of its services over HTTP.
    pub async fn http_get(&self, service: &str, path: &str) -> Result<Reply> {
        http::get(self.address(service), Protocol::Http1, "localhost", path).await
    }

    /// Posts JSON to one of its services, over HTTP/1.1.
    pub async fn http_post(&self, service: &str, path: &str, body: &Value) -> Result<Reply> {
        http::post(self.address(service), path, body).await
    }

    /// The value of a metric; see [`metrics::sum`].
    pub async fn metric(&self, service: &str, series: &str) -> Result<Option<f64>> {
        let exposition = self.http_get(service, "/metrics").await?.ok()?.body;
        Ok(metrics::sum(&exposition, series))
    }

    /// Waits until a path answers 200.
    pub async fn wait_ok(&self, service: &str, path: &str, deadline: Duration) -> Result<()> {
        let what = format!("{}'s {path} is 200", self.name);
        let answers =
            poll::until(deadline, what, async || self.http_get(service, path).await?.ok().map(drop));
        answers.await.with_context(|| self.log.tail())
    }
}

/// Runs one of our programs until it ends by itself.
pub async fn run(name: &str, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(programs::ours(name)?);
    command.args(arguments).stdin(std::process::Stdio::null()).kill_on_drop(true);
    for variable in programs::variables_to_hide() {
        command.env_remove(variable);
    }
    let output = timeout(COMMAND, command.output()).await;
    let output = output.with_context(|| format!("{name} {arguments:?} does not end"))?;
    output.with_context(|| format!("cannot run {name}"))
}

/// The addresses in the lines that a server logs when it has bound a socket.
fn listening(log: &str) -> BTreeMap<String, SocketAddr> {
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let fields = line.get("fields")?;
        if fields.get("message")? != "listening" {
            return None;
        }
        let service = fields.get("service")?.as_str()?.to_owned();
        let address = fields.get("address")?.as_str()?.parse().ok()?;
        Some((service, address))
    };
    // The last line may be half written: it is no JSON yet, and is read whole the next time.
    log.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_log() {
        let log = concat!(
            r#"{"level":"INFO","fields":{"message":"starting"}}"#,
            "\n",
            r#"{"level":"INFO","fields":{"message":"listening","service":"grpc","address":"127.0.0.1:40123"}}"#,
            "\nnot JSON\n",
            r#"{"level":"INFO","fields":{"message":"listening","service":"ht"#,
        );
        let addresses = listening(log);
        assert_eq!(addresses.len(), 1);
        assert_eq!(addresses["grpc"], SocketAddr::from(([127, 0, 0, 1], 40123)));
    }
}
