//! A real Envoy.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::{
    http::{self, Caller, Protocol, Reply},
    leash::{Leash, Start},
    log::Log,
    programs,
};

/// From exec to the admin port.
const STARTED: Duration = Duration::from_secs(20);

/// What validation takes at most.
const VALIDATED: Duration = Duration::from_secs(60);

/// A running Envoy, killed when this is dropped.
#[derive(Debug)]
pub struct Envoy {
    /// Asked whether it still runs from methods that only look.
    process: Mutex<Leash>,
    admin: SocketAddr,
    egress: Option<SocketAddr>,
    log: Log,
    /// Last, so that it is removed when the process is gone.
    _folder: TempDir,
}

impl Envoy {
    /// Starts one with this bootstrap, whose admin port should be 0, and returns when the admin port
    /// is known. `egress_port` is where its egress listener will be.
    pub async fn start(name: &str, bootstrap: &str, egress_port: Option<u16>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("tower-envoy-").tempdir();
        let folder = folder.context("cannot make a temporary folder")?;
        let configuration = folder.path().join("bootstrap.yaml");
        std::fs::write(&configuration, bootstrap).context("cannot write the bootstrap")?;
        let admin = folder.path().join("admin");
        let log = Log::new(name, folder.path());
        let mut process = Leash::start(Start {
            program: &programs::envoy()?,
            arguments: &arguments(&configuration, &admin),
            output: log.open()?,
            litter: None,
        })?;
        let admin = process.until(&log, STARTED, "has an admin port", async || read(&admin)).await?;
        let egress = egress_port.map(|port| ([127, 0, 0, 1], port).into());
        Ok(Self { process: Mutex::new(process), admin, egress, log, _folder: folder })
    }

    /// Has an Envoy look at a serialized bootstrap, without starting with it. The error is what it says.
    pub async fn validate(bootstrap: &[u8]) -> Result<()> {
        let folder = tempfile::Builder::new().prefix("tower-envoy-").tempdir();
        let folder = folder.context("cannot make a temporary folder")?;
        let configuration = folder.path().join("bootstrap.pb");
        std::fs::write(&configuration, bootstrap).context("cannot write the bootstrap")?;
        let mut envoy = tokio::process::Command::new(programs::envoy()?);
        envoy.args(["--mode", "validate", "--log-level", "error", "--config-path"]).arg(&configuration);
        let ended = tokio::time::timeout(VALIDATED, envoy.kill_on_drop(true).output());
        let output = ended.await.context("Envoy takes too long")?.context("cannot start Envoy")?;
        let said = [output.stdout, output.stderr].concat();
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&said).trim());
        Ok(())
    }

    /// Where its admin port is.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Where its egress listener is.
    ///
    /// # Panics
    ///
    /// If it was started without an egress port.
    pub fn egress(&self) -> SocketAddr {
        self.egress.expect("an Envoy with an egress port")
    }

    /// A caller through its egress listener.
    ///
    /// # Panics
    ///
    /// If it was started without an egress port.
    pub fn caller(&self, protocol: Protocol) -> Caller<'_> {
        Caller::new(self.egress(), protocol)
    }

    /// Waits until it is live: it has all that it waits for at its start.
    pub async fn wait_ready(&self, deadline: Duration) -> Result<()> {
        let live = async || self.admin_get("/ready").await.map(drop);
        self.process.lock().await.until(&self.log, deadline, "is live", live).await
    }

    /// Asks its admin port, and expects 200.
    pub async fn admin_get(&self, path: &str) -> Result<Reply> {
        http::get(self.admin, Protocol::Http1, "localhost", path).await?.ok()
    }

    /// The value of a counter or gauge, `None` if there is none of this name.
    pub async fn stat(&self, name: &str) -> Result<Option<u64>> {
        let stats = self.admin_get("/stats").await?.body;
        let value = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map(|value| value.trim().parse().context("not a number")).transpose()
    }

    /// All of its configuration, endpoints included.
    pub async fn config_dump(&self) -> Result<Value> {
        self.admin_get("/config_dump?include_eds").await?.json()
    }

    /// Stops it where it is: it reads, answers and notices nothing, and its connections stay open.
    pub async fn freeze(&self) -> Result<()> {
        self.process.lock().await.signal("STOP")
    }

    /// Has it go on.
    pub async fn thaw(&self) -> Result<()> {
        self.process.lock().await.signal("CONT")
    }

    /// All that it has logged.
    pub fn log(&self) -> String {
        self.log.text()
    }
}

/// Envoy does not take `--flag=value`.
fn arguments(configuration: &Path, admin: &Path) -> Vec<String> {
    let configuration = configuration.to_string_lossy();
    let admin = admin.to_string_lossy();
    [
        ["--config-path", &configuration].as_slice(),
        &["--admin-address-path", &admin],
        // Hot restart needs a base id that no other Envoy of this machine has.
        &["--disable-hot-restart"],
        // More than one, because what is right for one worker may be wrong for two.
        &["--concurrency", "2"],
        &["--log-level", "info"],
    ]
    .concat()
    .into_iter()
    .map(str::to_owned)
    .collect()
}

/// The address that Envoy has written, once it is complete.
fn read(path: &Path) -> Result<SocketAddr> {
    let text = std::fs::read_to_string(path).context("no admin address yet")?;
    text.trim().parse().with_context(|| format!("no address: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOTSTRAP: &str = "
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
";

    #[tokio::test]
    async fn it_becomes_live_and_is_gone_when_dropped() -> Result<()> {
        let envoy = Envoy::start("plain", BOOTSTRAP, None).await?;
        envoy.wait_ready(STARTED).await?;
        assert_eq!(envoy.stat("server.live").await?, Some(1));
        assert_eq!(envoy.stat("server.no_such_thing").await?, None);
        assert!(envoy.config_dump().await?.get("configs").is_some());
        let admin = envoy.admin();
        drop(envoy);
        assert!(http::get(admin, Protocol::Http1, "localhost", "/").await.is_err());
        Ok(())
    }

    #[tokio::test]
    async fn a_bad_bootstrap_fails_at_once_with_the_reason() {
        let error = Envoy::start("bad", "admin: {nonsense: true}", None).await;
        let error = format!("{:#}", error.expect_err("it cannot start"));
        assert!(error.contains("has ended") && error.contains("nonsense"), "{error}");
    }
}
