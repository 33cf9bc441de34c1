//! Registering in each of the formats, so that one test can be about all of them.

use std::{collections::BTreeMap, net::SocketAddr};

use anyhow::{Context, Result};
use tower_tests::{Endpoint, EndpointFiles, Registry, ZooKeeper};

pub(crate) const SERVICE: &str = "web";

/// A way to register in ZooKeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Kingpin,
    Serverset,
    /// A serverset whose writers are old.
    Thrift,
    Curator,
    Hostport,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kingpin => "kingpin",
            Self::Serverset | Self::Thrift => "serverset",
            Self::Curator => "curator",
            Self::Hostport => "hostport",
        }
    }
}

/// Instances of one service, in ZooKeeper or in a file.
pub(crate) enum Registrar {
    ZooKeeper { registry: Registry, format: Format, count: u64 },
    Files { files: EndpointFiles, endpoints: BTreeMap<u64, Endpoint>, count: u64 },
}

/// An instance that is registered.
#[derive(Debug)]
pub(crate) enum Registration {
    Znode(String),
    Line(u64),
}

impl Registrar {
    /// In the shared ZooKeeper.
    pub(crate) async fn in_zookeeper(format: Format) -> Result<Self> {
        let registry = ZooKeeper::shared().await?.root().await?;
        Ok(Self::ZooKeeper { registry, format, count: 0 })
    }

    /// In a folder of its own.
    pub(crate) fn in_files() -> Result<Self> {
        Ok(Self::Files { files: EndpointFiles::new()?, endpoints: BTreeMap::new(), count: 0 })
    }

    pub(crate) fn discovery(&self) -> String {
        match self {
            Self::ZooKeeper { registry, format, .. } => registry.discovery(format.name()),
            Self::Files { files, .. } => files.discovery(),
        }
    }

    pub(crate) async fn register(&mut self, address: SocketAddr) -> Result<Registration> {
        match self {
            Self::ZooKeeper { registry, format, count } => {
                *count += 1;
                let data = payload(*format, address);
                let path = match format {
                    // The way of a kazoo party: a UUID, and what the member calls itself.
                    Format::Kingpin => member(&format!("{count:032x}-{address}")),
                    Format::Hostport | Format::Curator => member(&format!("instance-{count}")),
                    Format::Serverset | Format::Thrift => {
                        let path = registry.create_sequential(&member("member_"), &data).await?;
                        return Ok(Registration::Znode(path));
                    }
                };
                registry.create_ephemeral(&path, &data).await?;
                Ok(Registration::Znode(path))
            }
            Self::Files { files, endpoints, count } => {
                *count += 1;
                endpoints.insert(*count, address.into());
                write(files, endpoints)?;
                Ok(Registration::Line(*count))
            }
        }
    }

    /// Gives an instance another address.
    pub(crate) async fn change(
        &mut self,
        registration: Registration,
        address: SocketAddr,
    ) -> Result<Registration> {
        if let Self::ZooKeeper { format: Format::Kingpin, .. } = self {
            // The name of the znode is the address. It changes by taking the other's place.
            let successor = self.register(address).await?;
            self.deregister(registration).await?;
            return Ok(successor);
        }
        match (&mut *self, &registration) {
            (Self::ZooKeeper { registry, format, .. }, Registration::Znode(path)) => {
                registry.set(path, &payload(*format, address)).await?;
            }
            (Self::Files { files, endpoints, .. }, Registration::Line(key)) => {
                endpoints.insert(*key, address.into());
                write(files, endpoints)?;
            }
            _ => anyhow::bail!("{registration:?} is not of this registrar"),
        }
        Ok(registration)
    }

    pub(crate) async fn deregister(&mut self, registration: Registration) -> Result<()> {
        match (self, &registration) {
            (Self::ZooKeeper { registry, .. }, Registration::Znode(path)) => registry.delete(path).await,
            (Self::Files { files, endpoints, .. }, Registration::Line(key)) => {
                endpoints.remove(key).context("it is not registered")?;
                write(files, endpoints)
            }
            _ => anyhow::bail!("{registration:?} is not of this registrar"),
        }
    }
}

/// The path of an instance's znode.
pub(crate) fn member(name: &str) -> String {
    format!("discovery/{SERVICE}/prod/{name}")
}

/// What an instance writes into its znode.
pub(crate) fn payload(format: Format, address: SocketAddr) -> Vec<u8> {
    let (ip, port) = (address.ip(), address.port());
    match format {
        Format::Kingpin | Format::Hostport => address.to_string(),
        Format::Serverset => format!(
            r#"{{"serviceEndpoint":{{"host":"{ip}","port":{port}}},"additionalEndpoints":{{}},"status":"ALIVE","shard":0}}"#,
        ),
        Format::Thrift => return thrift(&ip.to_string(), port),
        Format::Curator => return spring(address, "UP"),
    }
    .into_bytes()
}

/// What Spring Cloud writes for an instance of this status.
pub(crate) fn spring(address: SocketAddr, status: &str) -> Vec<u8> {
    format!(
        r#"{{"name":"web","id":"5b7e","address":"{}","port":{},"sslPort":null,
        "payload":{{"@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance","id":"web-1",
        "name":"web","metadata":{{"instance_status":"{status}","version":"1.4"}}}},
        "registrationTimeUTC":1752900000456,"serviceType":"DYNAMIC","uriSpec":null}}"#,
        address.ip(),
        address.port(),
    )
    .into_bytes()
}

/// A ServiceInstance with an endpoint, no others, and the status ALIVE.
fn thrift(host: &str, port: u16) -> Vec<u8> {
    let size = u8::try_from(host.len()).unwrap_or_default();
    [
        &[0x0c, 0, 1, 0x0b, 0, 1, 0, 0, 0, size],
        host.as_bytes(),
        &[8, 0, 2, 0, 0],
        &port.to_be_bytes(),
        &[0, 0x0d, 0, 2, 0x0b, 0x0c, 0, 0, 0, 0, 8, 0, 3, 0, 0, 0, 2, 0],
    ]
    .concat()
}

fn write(files: &EndpointFiles, endpoints: &BTreeMap<u64, Endpoint>) -> Result<()> {
    let endpoints: Vec<Endpoint> = endpoints.values().cloned().collect();
    files.write(SERVICE, &endpoints)
}
