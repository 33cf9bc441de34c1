//! A mesh of many services, registered in a real ZooKeeper.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

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
pub struct Size {
    /// Services
    #[arg(long, default_value_t = 1000)]
    pub services: usize,
    /// Endpoints of each
    #[arg(long, default_value_t = 10)]
    pub endpoints: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { services: 1000, endpoints: 10 }
    }
}

/// A mesh, and a session that changes it.
#[derive(Debug)]
pub struct Mesh {
    /// Where it is.
    pub registry: Registry,
    /// How large it was made.
    pub size: Size,
    client: Client,
    /// Endpoints that are registered.
    endpoints: AtomicUsize,
}

impl Mesh {
    /// Registers a mesh below a new root.
    ///
    /// # Errors
    /// If ZooKeeper refuses.
    pub async fn register(zookeeper: &ZooKeeper, size: Size) -> Result<Self> {
        let registry = register(zookeeper, size).await?;
        let client = Client::connect(&zookeeper.connect_string()).await?;
        let endpoints = AtomicUsize::new(size.services * size.endpoints);
        Ok(Self { registry, size, client, endpoints })
    }

    /// Registers one more endpoint of a service.
    ///
    /// # Errors
    /// If ZooKeeper refuses.
    pub async fn add(&self, service: usize, address: &str) -> Result<()> {
        let path = self.registry.absolute(&format!("{}/{address}", folder(service % self.size.services)));
        self.client
            .create(&path, b"", &PERSISTENT)
            .await
            .with_context(|| format!("{path} is not created"))?;
        self.endpoints.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Takes an endpoint back.
    ///
    /// # Errors
    /// If ZooKeeper refuses.
    pub async fn remove(&self, service: usize, address: &str) -> Result<()> {
        let path = self.registry.absolute(&format!("{}/{address}", folder(service % self.size.services)));
        self.client.delete(&path, None).await.with_context(|| format!("{path} is not deleted"))?;
        self.endpoints.fetch_sub(1, Relaxed);
        Ok(())
    }

    /// How many resources a Tower holds that has read it: each service, and each endpoint.
    pub fn resources(&self) -> usize {
        self.size.services + self.endpoints.load(Relaxed)
    }

    /// Adds one endpoint in so many, each to a service of its own as far as there are enough. `round` makes
    /// them others than those of before.
    ///
    /// # Errors
    /// If ZooKeeper refuses.
    pub async fn change(&self, one_in: usize, round: usize) -> Result<()> {
        let count = (self.size.services * self.size.endpoints).div_ceil(one_in);
        stream::iter(0..count)
            .map(|number| async move { self.add(number, &extra(round, number)).await })
            .buffer_unordered(IN_FLIGHT)
            .try_collect()
            .await
    }
}

/// Registers the mesh, in the format `hostport`, below a new root.
pub async fn register(zookeeper: &ZooKeeper, size: Size) -> Result<Registry> {
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
pub fn folder(service: usize) -> String {
    format!("discovery/service-{service:05}/prod")
}

/// An address that is nobody's; nothing is sent there.
pub fn address(service: usize, endpoint: usize) -> String {
    format!("127.{}.{}.{}:8080", 1 + service / 250, service % 250, 1 + endpoint)
}

/// An address that is nobody's, and none of [`address`].
pub fn extra(round: usize, number: usize) -> String {
    format!("127.{}.{}.{}:{}", 240 + number / 62_500 % 14, number / 250 % 250, 1 + number % 250, 9000 + round)
}

/// Asks again, at once, until the answer is yes.
pub async fn until(what: &str, mut ask: impl AsyncFnMut() -> Result<bool>) -> Result<Duration> {
    const LIMIT: Duration = Duration::from_secs(60);
    let start = clock::monotonic();
    while !ask().await? {
        ensure!(start.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        tokio::task::yield_now().await;
    }
    Ok(start.elapsed())
}
