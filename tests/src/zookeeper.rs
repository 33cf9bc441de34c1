//! A real ZooKeeper server.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::OnceCell,
    time::timeout,
};

use crate::{
    authority::Authority,
    leash::{Leash, Start},
    log::Log,
    ports, programs,
    registry::Registry,
};

/// The JVM takes a second or two; on a machine that does other things too, several.
const STARTED: Duration = Duration::from_secs(60);

/// Many times what a server that does answer needs.
const ANSWER: Duration = Duration::from_millis(500);

/// A standalone server on a port of its own, with a data folder of its own.
#[derive(Debug)]
pub struct ZooKeeper {
    port: u16,
    login: Option<Login>,
    data: PathBuf,
    arguments: Vec<String>,
    /// Only for a server that nobody will drop.
    litter: Option<PathBuf>,
    server: Option<Leash>,
    log: Log,
    /// Last, so that it is removed when the server is gone.
    _folder: Option<TempDir>,
}

/// Whom a server lets in by SASL.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl ZooKeeper {
    /// The one that all tests of this process share, each below its own [`ZooKeeper::root`]. It runs
    /// until the process ends.
    pub async fn shared() -> Result<Arc<Self>> {
        static SHARED: OnceCell<Arc<ZooKeeper>> = OnceCell::const_new();
        let shared = SHARED.get_or_try_init(async || {
            // Statics are not dropped: the leash ends the server and removes its folder.
            let folder = temporary_folder()?.keep();
            let mut zookeeper = Self::prepare(&folder)?;
            zookeeper.litter = Some(folder);
            zookeeper.restart().await?;
            anyhow::Ok(Arc::new(zookeeper))
        });
        shared.await.cloned()
    }

    /// A server of one's own, to kill and restart.
    pub async fn start() -> Result<Self> {
        let folder = temporary_folder()?;
        let mut zookeeper = Self::prepare(folder.path())?;
        zookeeper._folder = Some(folder);
        zookeeper.restart().await?;
        Ok(zookeeper)
    }

    /// A server that lets in who logs in by SASL, and on a port of its own who does that by TLS with a
    /// certificate of this authority. Returns that port, too.
    pub async fn start_secured(authority: &Authority, login: Login) -> Result<(Self, u16)> {
        let folder = temporary_folder()?;
        let mut zookeeper = Self::prepare(folder.path())?;
        let secure_port = ports::free_port();
        zookeeper.secure(folder.path(), secure_port, authority, &login)?;
        zookeeper.login = Some(login);
        zookeeper._folder = Some(folder);
        zookeeper.restart().await?;
        Ok((zookeeper, secure_port))
    }

    /// Where it listens, as `host:port`.
    pub fn connect_string(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A new session, rooted in a new and empty znode that no other test knows.
    pub async fn root(&self) -> Result<Registry> {
        Registry::new(self.connect_string(), self.login.clone()).await
    }

    /// A new session that sees the whole tree, for a server of one's own.
    pub async fn unrooted(&self) -> Result<Registry> {
        Registry::unrooted(self.connect_string(), self.login.clone()).await
    }

    /// Kills it as a power cut would.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Copies what it has written to a folder, which [`ZooKeeper::roll_back`] takes. It must not run.
    pub fn back_up(&self, to: &Path) -> Result<()> {
        ensure!(self.server.is_none(), "a server that runs cannot be copied");
        copy(&self.data, to)
    }

    /// Replaces all that it has written by a copy, or by nothing. It must not run.
    pub fn roll_back(&self, to: Option<&Path>) -> Result<()> {
        ensure!(self.server.is_none(), "the data of a server that runs cannot be replaced");
        std::fs::remove_dir_all(&self.data).context("cannot remove ZooKeeper's data")?;
        to.map_or(Ok(()), |from| copy(from, &self.data))
    }

    /// Starts it again if it does not run, on the same port and data.
    pub async fn restart(&mut self) -> Result<()> {
        if self.server.is_some() {
            return Ok(());
        }
        let mut server = Leash::start(Start {
            program: "java".as_ref(),
            arguments: &self.arguments,
            output: self.log.open()?,
            litter: self.litter.as_deref(),
        })?;
        let port = self.port;
        server.until(&self.log, STARTED, "serves", async || serves(port).await).await?;
        self.server = Some(server);
        Ok(())
    }

    fn prepare(folder: &Path) -> Result<Self> {
        let port = ports::free_port();
        let configuration = folder.join("zoo.cfg");
        let data = folder.join("data");
        let text = configuration_text(port, &data.to_string_lossy());
        std::fs::write(&configuration, text).context("cannot write ZooKeeper's configuration")?;
        let options = [
            "-Xmx256m",
            // Quick to start, and frugal with threads: there may be several of these.
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp",
        ];
        let mut arguments: Vec<String> = options.map(str::to_owned).into();
        arguments.push(programs::zookeeper_class_path()?);
        arguments.push("org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned());
        arguments.push(configuration.to_string_lossy().into_owned());
        let log = Log::new("zookeeper", folder);
        Ok(Self { port, login: None, data, arguments, litter: None, server: None, log, _folder: None })
    }

    fn secure(&mut self, folder: &Path, port: u16, authority: &Authority, login: &Login) -> Result<()> {
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {name}"))?;
            anyhow::Ok(path.display().to_string())
        };
        let server = authority.sign(&["zookeeper", "127.0.0.1"])?;
        let identity = file("server.pem", &format!("{}{}", server.key, server.certificate))?;
        let ca = file("ca.pem", authority.certificate())?;
        let jaas = format!(
            "Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_{}=\"{}\"; }};\n",
            login.user, login.password
        );
        let jaas = file("jaas.conf", &jaas)?;
        let configuration = folder.join("zoo.cfg");
        let mut text = std::fs::read_to_string(&configuration)?;
        text.push_str(&format!(
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             secureClientPort={port}\n\
             secureClientPortAddress=127.0.0.1\n\
             ssl.keyStore.location={identity}\n\
             ssl.keyStore.type=PEM\n\
             ssl.trustStore.location={ca}\n\
             ssl.trustStore.type=PEM\n\
             ssl.clientAuth=need\n\
             authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
             enforce.auth.enabled=true\n\
             enforce.auth.schemes=sasl\n"
        ));
        std::fs::write(&configuration, text)?;
        self.arguments.insert(0, format!("-Djava.security.auth.login.config={jaas}"));
        Ok(())
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

fn temporary_folder() -> Result<TempDir> {
    tempfile::Builder::new().prefix("tower-zookeeper-").tempdir().context("cannot make a temporary folder")
}

/// Sessions expire in steps of `tickTime`: a short one lets tests see an expiry soon. The bounds of
/// the session timeout would follow from it, and are set so that nobody's wish is cut short.
///
/// `forceSync=no` leaves out fsync. What a killed server wrote is with the kernel, so tests that kill
/// it lose nothing; only a power cut would.
fn configuration_text(port: u16, data: &str) -> String {
    format!(
        "tickTime=500\n\
         minSessionTimeout=1000\n\
         maxSessionTimeout=60000\n\
         dataDir={data}\n\
         clientPort={port}\n\
         clientPortAddress=127.0.0.1\n\
         maxClientCnxns=0\n\
         forceSync=no\n\
         admin.enableServer=false\n\
         4lw.commands.whitelist=srvr\n"
    )
}

/// Whether it answers, and does so as a server that has loaded its data.
async fn serves(port: u16) -> Result<()> {
    // Asked in the moment between binding its port and opening its database, ZooKeeper 3.8 throws a
    // NullPointerException, and leaves the connection open without an answer.
    timeout(ANSWER, ask(port)).await.unwrap_or_else(|_| bail!("it does not answer"))
}

async fn ask(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"srvr").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure!(answer.contains("Mode: standalone"), "it answers: {}", answer.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn data_survive_a_kill_and_ephemerals_their_session_only() -> Result<()> {
        let mut zookeeper = ZooKeeper::start().await?;
        let registry = zookeeper.root().await?;
        let session = registry.another_session().await?;
        registry.create("kept/here", b"data").await?;
        session.create_ephemeral("members/one", b"").await?;
        zookeeper.kill();
        zookeeper.restart().await?;
        assert_eq!(registry.get("kept/here").await?, b"data");
        assert_eq!(registry.children("members").await?, ["one"]);
        session.close().await?;
        assert!(registry.children("members").await?.is_empty());
        Ok(())
    }

    #[tokio::test]
    async fn a_lost_session_expires() -> Result<()> {
        let registry = ZooKeeper::shared().await?.root().await?;
        let session = registry.doomed_session().await?;
        session.create_ephemeral("members/one", b"").await?;
        drop(session);
        assert_eq!(registry.children("members").await?, ["one"]);
        crate::eventually(Duration::from_secs(10), "the member is gone", async || {
            ensure!(registry.children("members").await?.is_empty(), "it is still there");
            Ok(())
        })
        .await;
        Ok(())
    }
}
