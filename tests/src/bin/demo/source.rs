//! Where the demo's upstreams register: a folder of files, or a real ZooKeeper.

use std::{collections::BTreeMap, net::SocketAddr};

use anyhow::{Context, Result};
use serde_json::json;
use tower_tests::{Endpoint, EndpointFiles, Registry, Upstream, ZooKeeper};

use crate::SERVICE;

pub(crate) enum Source {
    Files { files: EndpointFiles, members: BTreeMap<String, SocketAddr> },
    ZooKeeper(Box<Ensemble>),
}

pub(crate) struct Ensemble {
    registry: Registry,
    /// Each upstream has its own, as each service's process would.
    sessions: BTreeMap<String, Registry>,
    server: ZooKeeper,
}

impl Source {
    pub(crate) async fn start(zookeeper: bool) -> Result<Self> {
        if !zookeeper {
            return Ok(Self::Files { files: EndpointFiles::new()?, members: BTreeMap::new() });
        }
        let server = ZooKeeper::start().await?;
        let registry = server.unrooted().await?;
        let sessions = BTreeMap::new();
        Ok(Self::ZooKeeper(Box::new(Ensemble { registry, sessions, server })))
    }

    /// What Tower is told of it.
    pub(crate) fn discovery(&self) -> String {
        match self {
            Self::Files { files, .. } => files.discovery(),
            Self::ZooKeeper(ensemble) => ensemble.registry.discovery("serverset"),
        }
    }

    pub(crate) async fn add(&mut self, upstream: &Upstream) -> Result<()> {
        let name = upstream.name().to_owned();
        match self {
            Self::Files { files, members } => {
                members.insert(name, upstream.address());
                write(files, members)
            }
            Self::ZooKeeper(ensemble) => {
                let session = ensemble.registry.another_session().await?;
                let address = upstream.address();
                let member = json!({
                    "serviceEndpoint": {"host": address.ip().to_string(), "port": address.port()},
                    "additionalEndpoints": {},
                    "status": "ALIVE",
                    "metadata": {"release": release(&name)},
                });
                let path = format!("discovery/{SERVICE}/prod/member_{name}");
                session.create_ephemeral(&path, member.to_string().as_bytes()).await?;
                ensemble.sessions.insert(name, session);
                Ok(())
            }
        }
    }

    pub(crate) async fn remove(&mut self, upstream: &Upstream) -> Result<()> {
        let name = upstream.name();
        match self {
            Self::Files { files, members } => {
                members.remove(name);
                write(files, members)
            }
            Self::ZooKeeper(ensemble) => {
                let session = ensemble.sessions.remove(name);
                session.with_context(|| format!("{name} is not registered"))?.close().await
            }
        }
    }

    /// How a person can see and change it.
    pub(crate) fn whereabouts(&self) -> String {
        match self {
            Self::Files { files, .. } => format!("edit {}", files.path(SERVICE).display()),
            Self::ZooKeeper(ensemble) => {
                let server = ensemble.server.connect_string();
                format!("ZooKeeper at {server}, below /discovery/{SERVICE}/prod")
            }
        }
    }
}

fn write(files: &EndpointFiles, members: &BTreeMap<String, SocketAddr>) -> Result<()> {
    let endpoint = |(name, address): (&String, &SocketAddr)| Endpoint {
        labels: [("release".to_owned(), release(name).to_owned())].into(),
        ..Endpoint::from(*address)
    };
    let endpoints: Vec<Endpoint> = members.iter().map(endpoint).collect();
    files.write(SERVICE, &endpoints)
}

/// What an upstream says it is.
fn release(name: &str) -> &'static str {
    if name == "beta" { "canary" } else { "stable" }
}
