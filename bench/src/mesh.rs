//! A mesh of many services, registered in a real ZooKeeper.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use tower_common::clock;
use tower_tests::{Registry, ZooKeeper};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

/// How many requests are under way at a time.
const IN_FLIGHT: usize = 128;

/// How large the mesh is.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Size {
    /// Services
    #[arg(long, default_value_t = 1000)]
    pub(crate) services: usize,
    /// Endpoints of each
    #[arg(long, default_value_t = 10)]
    pub(crate) endpoints: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { services: 1000, endpoints: 10 }
    }
}

/// Registers the mesh, in the format `hostport`, below a new root.
pub(crate) async fn register(zookeeper: &ZooKeeper, size: Size) -> Result<Registry> {
    let registry = zookeeper.root().await?;
    let client = Client::connect(&zookeeper.connect_string()).await?;
    let paths = (0..size.services).map(|service| registry.absolute(&folder(service)));
    let paths: Vec<String> = paths.collect();
    client.mkdir(&registry.absolute("discovery"), &PERSISTENT).await?;
    stream::iter(&paths)
        .map(|path| client.mkdir(path, &PERSISTENT))
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    let members = paths.iter().enumerate().flat_map(|(service, path)| {
        (0..size.endpoints).map(move |endpoint| format!("{path}/{}", address(service, endpoint)))
    });
    stream::iter(members)
        .map(|path| {
            let client = &client;
            async move { client.create(&path, b"", &PERSISTENT).await.map(drop) }
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await
        .context("the mesh cannot be registered")?;
    Ok(registry)
}

/// Where a service registers.
pub(crate) fn folder(service: usize) -> String {
    format!("discovery/service-{service:05}/prod")
}

/// An address that is nobody's; nothing is sent there.
pub(crate) fn address(service: usize, endpoint: usize) -> String {
    format!("127.{}.{}.{}:8080", 1 + service / 250, service % 250, 1 + endpoint)
}

/// Asks again, at once, until the answer is yes.
pub(crate) async fn until(what: &str, mut ask: impl AsyncFnMut() -> Result<bool>) -> Result<Duration> {
    const LIMIT: Duration = Duration::from_secs(60);
    let start = clock::monotonic();
    while !ask().await? {
        ensure!(start.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        tokio::task::yield_now().await;
    }
    Ok(start.elapsed())
}
