//! Registering in ZooKeeper, as the frameworks of services do.

use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, SaslOptions, SessionState};

use crate::zookeeper::Login;

/// Long enough to outlive a restart of the server.
const SESSION: Duration = Duration::from_secs(10);

/// Short enough to watch it expire, long enough for a busy machine to keep it alive.
const DOOMED_SESSION: Duration = Duration::from_secs(2);

/// No request takes so long, unless the server is away, and then the test is to know.
const ANSWER: Duration = Duration::from_secs(20);

/// A session with ZooKeeper below one root. All paths are relative to it, and parents are made as
/// needed.
#[derive(Debug)]
pub struct Registry {
    server: String,
    login: Option<Login>,
    root: String,
    client: Client,
}

impl Registry {
    /// A new session below a new root.
    pub(crate) async fn new(server: String, login: Option<Login>) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut registry = Self::unrooted(server, login).await?;
        registry.root = format!("/t-{number}-{}", std::process::id());
        registry.answered(registry.client.mkdir(&registry.root, &PERSISTENT)).await?;
        Ok(registry)
    }

    /// A new session that sees the whole tree.
    pub(crate) async fn unrooted(server: String, login: Option<Login>) -> Result<Self> {
        let client = connect(&server, login.as_ref(), SESSION, Ending::Closed).await?;
        Ok(Self { server, login, root: String::new(), client })
    }

    /// Another session below the same root, with ephemerals of its own.
    pub async fn another_session(&self) -> Result<Self> {
        Ok(self.with(connect(&self.server, self.login.as_ref(), SESSION, Ending::Closed).await?))
    }

    /// As [`Registry::another_session`], but it ends as a host that dies does: when this is dropped,
    /// its ephemerals stay until the server misses it.
    pub async fn doomed_session(&self) -> Result<Self> {
        Ok(self.with(connect(&self.server, self.login.as_ref(), DOOMED_SESSION, Ending::Missed).await?))
    }

    /// The value of Tower's `--discovery` for the services that register here, at
    /// `discovery/{service}/prod`.
    pub fn discovery(&self, format: &str) -> String {
        let Self { server, root, .. } = self;
        format!("zk://{server}{root}/discovery/{{service}}/prod?format={format}")
    }

    /// A path as ZooKeeper knows it.
    pub fn absolute(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    /// Creates a znode that stays.
    pub async fn create(&self, path: &str, data: &[u8]) -> Result<()> {
        self.create_as(path, data, PERSISTENT).await.map(drop)
    }

    /// Creates a znode that stays, and that only those may touch who know this user's password.
    pub async fn create_guarded(&self, path: &str, data: &[u8], user: &Login) -> Result<()> {
        let auth = format!("{}:{}", user.user, user.password);
        let client = Client::connector().with_auth("digest", auth.as_bytes()).connect(&self.server).await?;
        let guarded = self.with(client);
        let options = CreateMode::Persistent.with_acls(Acls::creator_all());
        guarded.create_as(path, data, options).await.map(drop)
    }

    /// Creates a znode that goes with this session.
    pub async fn create_ephemeral(&self, path: &str, data: &[u8]) -> Result<()> {
        self.create_as(path, data, EPHEMERAL).await.map(drop)
    }

    /// Creates a znode that goes with this session, and whose name ends in a number that ZooKeeper
    /// chooses. Returns its path.
    pub async fn create_sequential(&self, prefix: &str, data: &[u8]) -> Result<String> {
        let number = self.create_as(prefix, data, SEQUENTIAL).await?;
        Ok(format!("{prefix}{number}"))
    }

    /// Sets the data of a znode.
    pub async fn set(&self, path: &str, data: &[u8]) -> Result<()> {
        let absolute = self.absolute(path);
        self.answered(self.client.set_data(&absolute, data, None)).await.map(drop)
    }

    /// Reads the data of a znode.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>> {
        Ok(self.answered(self.client.get_data(&self.absolute(path))).await?.0)
    }

    /// The names of the children of a znode, sorted.
    pub async fn children(&self, path: &str) -> Result<Vec<String>> {
        let mut names = self.answered(self.client.list_children(&self.absolute(path))).await?;
        names.sort();
        Ok(names)
    }

    /// Deletes a znode.
    pub async fn delete(&self, path: &str) -> Result<()> {
        self.answered(self.client.delete(&self.absolute(path), None)).await
    }

    /// Deletes a znode and all below it, one by one, as people do by mistake.
    pub async fn delete_all(&self, path: &str) -> Result<()> {
        // Parents stand before their children, so the reverse of the order in which they are found will do.
        let mut paths = vec![path.to_owned()];
        let mut at = 0;
        while let Some(parent) = paths.get(at).cloned() {
            let children = self.children(&parent).await?;
            paths.extend(children.into_iter().map(|child| format!("{parent}/{child}")));
            at += 1;
        }
        for path in paths.iter().rev() {
            self.delete(path).await?;
        }
        Ok(())
    }

    /// Ends the session, as a service that stops in good order does: when this returns, its
    /// ephemerals are gone.
    pub async fn close(self) -> Result<()> {
        let mut state = self.client.state_watcher();
        drop(self.client);
        // The client reports this when the server has answered.
        let closed = async { while state.changed().await != SessionState::Closed {} };
        timeout(ANSWER, closed).await.context("ZooKeeper does not close the session")
    }

    fn with(&self, client: Client) -> Self {
        Self { server: self.server.clone(), login: self.login.clone(), root: self.root.clone(), client }
    }

    async fn create_as(&self, path: &str, data: &[u8], options: CreateOptions<'_>) -> Result<String> {
        let absolute = self.absolute(path);
        if let Some((parent, _)) = absolute.rsplit_once('/') {
            self.answered(self.client.mkdir(parent, &PERSISTENT)).await?;
        }
        let (_, number) = self
            .answered(self.client.create(&absolute, data, &options))
            .await
            .with_context(|| format!("cannot create {absolute}"))?;
        Ok(number.to_string())
    }

    async fn answered<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T> {
        let answer = timeout(ANSWER, request).await;
        Ok(answer.with_context(|| format!("no answer from ZooKeeper within {ANSWER:?}"))??)
    }
}

/// How a session ends when its client is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The client says goodbye.
    Closed,
    /// The client is silent, and the server notices.
    Missed,
}

async fn connect(server: &str, login: Option<&Login>, session: Duration, ending: Ending) -> Result<Client> {
    let mut connector = Client::connector().with_session_timeout(session);
    if let Some(Login { user, password }) = login {
        connector = connector.with_sasl(SaslOptions::digest_md5(user.clone(), password.clone()));
    }
    if ending == Ending::Missed {
        connector = connector.with_detached();
    }
    let client = timeout(ANSWER, connector.connect(server)).await;
    let client = client.with_context(|| format!("no session with ZooKeeper within {ANSWER:?}"))?;
    client.with_context(|| format!("cannot open a session with ZooKeeper at {server}"))
}

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());

const SEQUENTIAL: CreateOptions<'static> = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
