//! A release as the compiler made it, read from the store: its parts, decoded once.
//!
//! A release is served whole or not at all. It is refused if a part cannot be read, is named as if it
//! belonged to another service, or refers to a part of its own that is not there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use prost::Message;
use tower_proto::{
    envoy::envoy::{
        config::{
            accesslog::v3::AccessLog,
            cluster::v3::{
                Cluster,
                cluster::{ClusterDiscoveryType, DiscoveryType},
            },
            core::v3::{DataSource, data_source::Specifier},
            listener::v3::Listener,
            route::v3::VirtualHost,
        },
        extensions::transport_sockets::tls::v3::{Secret, secret},
    },
    v1::{self, cluster_part::Share},
};

use super::{
    ConfigSource, XdsResource,
    names::{is_cluster_of, is_listener_of, is_routes_of, is_secret_of},
    piece,
    references::References,
    route, sources,
};
use crate::{
    resource::{Resource, Version},
    store::Store,
};

/// The kinds of which parts are.
const KINDS: [v1::Kind; 5] = [
    v1::Kind::Cluster,
    v1::Kind::VirtualHost,
    v1::Kind::Listener,
    v1::Kind::SecretReference,
    v1::Kind::Extension,
];

/// Whether hosts could serve a release of a service of these parts.
///
/// # Errors
/// If they could not: which part, and why.
pub fn check_release(service: &str, bundle: &v1::Bundle) -> Result<(), String> {
    let parts = bundle.parts.iter().map(|part| (part.kind, &*part.name, &part.body));
    Release::default().take(service, parts)
}

/// A release of a service.
#[derive(Debug, Default)]
pub(super) struct Release {
    pub(super) id: Arc<str>,
    /// Of the names and versions of its parts.
    pub(super) fingerprint: Version,
    pub(super) clusters: Vec<ReleaseCluster>,
    /// The routes to the service.
    pub(super) host: Option<Host>,
    /// The routes on the service's own hosts.
    pub(super) routes: Vec<(Side, XdsResource)>,
    pub(super) listeners: Vec<(Side, XdsResource)>,
    pub(super) secrets: Vec<(Side, XdsResource)>,
    /// How the service calls others.
    pub(super) dependencies: Vec<v1::DependencyPart>,
}

/// Which hosts serve a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// All that call the service.
    Callers,
    /// Those that the service runs on, for it, and for what it calls.
    Own,
}

/// A cluster, and which endpoints are in it.
#[derive(Debug)]
pub(super) struct ReleaseCluster {
    pub(super) side: Side,
    pub(super) resource: XdsResource,
    /// For gRPC without a proxy, where it differs.
    pub(super) grpc: Option<XdsResource>,
    /// `None`: it brings its own.
    pub(super) endpoints: Option<Endpoints>,
}

/// Which endpoints are in a cluster.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Endpoints {
    pub(super) of: Arc<str>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) port_name: String,
    /// They are ranked by where the host is.
    pub(super) ranked: bool,
    /// When a rank overflows, in percent; 0 is as the client thinks.
    pub(super) overprovisioning: u32,
    /// How they divide what comes; none is by their weights.
    pub(super) shares: Vec<Share>,
}

/// The routes to a service, without domains.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) body: Bytes,
    /// For gRPC without a proxy, where it differs.
    pub(super) grpc: Option<Bytes>,
    /// The log of the egress listener that its routes name, if there is one.
    pub(super) access_log: Option<Bytes>,
    /// The clusters between which traffic is divided by weights.
    pub(super) weighed: BTreeSet<Arc<str>>,
    pub(super) refers: Arc<References>,
}

/// The parts of a release, without decoding them.
pub(super) fn parts<'a>(
    store: &'a Store,
    scope: &'a str,
    service: &'a str,
    release: &'a str,
) -> impl Iterator<Item = &'a Resource> {
    let of_release = move |resource: &&Resource| {
        resource.key().name.strip_prefix(release).is_some_and(|rest| rest.starts_with('/'))
    };
    KINDS.into_iter().flat_map(move |kind| store.of_service(scope, kind, service)).filter(of_release)
}

/// The fingerprint of a release's parts; `None` if there are none.
pub(super) fn fingerprint(store: &Store, scope: &str, service: &str, release: &str) -> Option<Version> {
    let mut any = false;
    let mut hasher = Vec::new();
    for part in parts(store, scope, service, release) {
        any = true;
        hasher.extend(part.key().kind.to_be_bytes());
        hasher.extend((part.key().name.len() as u64).to_be_bytes());
        hasher.extend(part.key().name.as_bytes());
        hasher.extend(part.version().0);
    }
    any.then(|| Version::of(&hasher))
}

impl Release {
    /// Reads a release.
    ///
    /// # Errors
    /// If it cannot be served as a whole: which part, and why.
    pub(super) fn read(store: &Store, scope: &str, service: &str, id: &str) -> Result<Self, String> {
        let fingerprint = fingerprint(store, scope, service, id)
            .ok_or_else(|| format!("no part of the release {id} is here"))?;
        let mut release = Self { id: id.into(), fingerprint, ..Self::default() };
        let parts = parts(store, scope, service, id);
        release.take(service, parts.map(|part| (part.key().kind, &*part.key().name, part.body())))?;
        Ok(release)
    }

    fn take<'a>(
        &mut self,
        service: &str,
        parts: impl Iterator<Item = (i32, &'a str, &'a Bytes)>,
    ) -> Result<(), String> {
        for (kind, name, body) in parts {
            self.add(service, kind, body).map_err(|problem| {
                let kind = v1::Kind::try_from(kind).map_or("", |kind| kind.as_str_name());
                format!("{} {name}: {problem}", kind.trim_start_matches("KIND_").to_lowercase())
            })?;
        }
        self.check(service)
    }

    fn add(&mut self, service: &str, kind: i32, body: &Bytes) -> Result<(), String> {
        match v1::Kind::try_from(kind) {
            Ok(v1::Kind::Cluster) => self.add_cluster(service, decode(body)?),
            Ok(v1::Kind::VirtualHost) => self.add_host(service, decode(body)?),
            Ok(v1::Kind::Listener) => self.add_listener(service, &decode(body)?),
            Ok(v1::Kind::SecretReference) => self.add_secret(service, decode(body)?),
            Ok(v1::Kind::Extension) => {
                self.dependencies.push(decode(body)?);
                Ok(())
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn add_cluster(&mut self, service: &str, part: v1::ClusterPart) -> Result<(), String> {
        let side = side(part.side)?;
        let cluster: Cluster = decode(&part.cluster)?;
        let by_eds =
            cluster.cluster_discovery_type == Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into()));
        let endpoints = match (by_eds, part.endpoints_of.as_str()) {
            (true, "") => {
                return Err("its endpoints are discovered, and it does not say of which service".into());
            }
            (false, "") => None,
            (false, _) => {
                return Err("it names a service for its endpoints, and does not discover them".into());
            }
            (true, of) => Some(Endpoints {
                of: of.into(),
                labels: part.labels.into_iter().collect(),
                port_name: part.port_name,
                ranked: match v1::cluster_part::Failover::try_from(part.failover) {
                    Ok(v1::cluster_part::Failover::Unspecified) => false,
                    Ok(v1::cluster_part::Failover::Zone) => true,
                    Err(_) => return Err(format!("failover {} is not known to this build", part.failover)),
                },
                overprovisioning: part.overprovisioning_percent,
                shares: part.shares,
            }),
        };
        claim(
            is_cluster_of(service, &cluster.name),
            &cluster.name,
            self.clusters.iter().map(|held| &held.resource),
        )?;
        let references = References::of_cluster(&cluster).map_err(unreadable)?;
        let filled = |body: &[u8]| -> Result<XdsResource, String> {
            let body = sources::fill_cluster(body, ConfigSource::Aggregated, by_eds).map_err(unreadable)?;
            Ok(XdsResource::from_body(cluster.name.as_str().into(), body.into()))
        };
        let grpc = (!part.grpc.is_empty()).then_some(&part.grpc);
        if grpc.map(|body| decode::<Cluster>(body)).transpose()?.is_some_and(|grpc| grpc.name != cluster.name)
        {
            return Err("for gRPC it has another name".into());
        }
        let grpc = grpc.map(|body| filled(body)).transpose()?;
        let mut resource = filled(&part.cluster)?;
        if references != References::default() {
            resource.refers = Some(Arc::new(references));
        }
        self.clusters.push(ReleaseCluster { side, resource, grpc, endpoints });
        Ok(())
    }

    fn add_host(&mut self, service: &str, part: v1::VirtualHostPart) -> Result<(), String> {
        let host: VirtualHost = decode(&part.virtual_host)?;
        match side(part.side)? {
            Side::Callers => {
                if self.host.is_some() {
                    return Err("the release has routes for callers already".into());
                }
                if !host.domains.is_empty() {
                    return Err("it brings its own domains, which the view gives out".into());
                }
                let grpc = (!part.grpc.is_empty()).then_some(part.grpc);
                if let Some(grpc) = &grpc {
                    decode::<VirtualHost>(grpc)?;
                }
                let access_log = (!part.access_log.is_empty()).then_some(part.access_log);
                if let Some(log) = &access_log {
                    decode::<AccessLog>(log)?;
                }
                let weighed = piece::weighed(&host);
                let refers = Arc::new(References::of_virtual_host(&host));
                self.host = Some(Host { body: part.virtual_host, grpc, access_log, weighed, refers });
            }
            Side::Own => {
                let name = part.route_config.as_str();
                claim(is_routes_of(service, name), name, self.routes.iter().map(|(_, held)| held))?;
                let mut resource = route::single(name, &part.virtual_host, host.domains.is_empty());
                resource.refers = Some(Arc::new(References::of_virtual_host(&host)));
                self.routes.push((Side::Own, resource));
            }
        }
        Ok(())
    }

    fn add_listener(&mut self, service: &str, part: &v1::ListenerPart) -> Result<(), String> {
        let listener: Listener = decode(&part.listener)?;
        claim(
            is_listener_of(service, &listener.name),
            &listener.name,
            self.listeners.iter().map(|(_, held)| held),
        )?;
        if side(part.side)? == Side::Callers {
            return Err("only hosts on which the service runs have listeners for it".into());
        }
        let references = References::of_listener(&listener).map_err(unreadable)?;
        let body = sources::fill_listener(&part.listener, ConfigSource::Aggregated).map_err(unreadable)?;
        let mut resource = XdsResource::from_body(listener.name.into(), body.into());
        resource.refers = Some(Arc::new(references));
        self.listeners.push((Side::Own, resource));
        Ok(())
    }

    fn add_secret(&mut self, service: &str, part: v1::SecretPart) -> Result<(), String> {
        let secret: Secret = decode(&part.secret)?;
        if is_private(&secret) {
            return Err("it holds a key or a password itself, instead of the path of a file".into());
        }
        claim(is_secret_of(service, &secret.name), &secret.name, self.secrets.iter().map(|(_, held)| held))?;
        let resource = XdsResource::from_body(secret.name.into(), part.secret);
        self.secrets.push((side(part.side)?, resource));
        Ok(())
    }

    /// What its parts say of each other has to be there.
    fn check(&self, service: &str) -> Result<(), String> {
        let clusters: BTreeSet<&str> = self.clusters.iter().map(|held| &*held.resource.name).collect();
        let routes: BTreeSet<&str> = self.routes.iter().map(|(_, held)| &*held.name).collect();
        let parts = self.clusters.iter().map(|held| &held.resource);
        let parts = parts.chain(self.routes.iter().chain(&self.listeners).map(|(_, held)| held));
        let named = parts.filter_map(|part| Some((&*part.name, part.refers.as_deref()?)));
        let host = self.host.iter().map(|host| ("the virtual host", &*host.refers));
        for (name, references) in named.chain(host) {
            // What is another service's may come later, or from a file.
            let clusters =
                references.clusters.iter().filter(|c| is_cluster_of(service, c) && !clusters.contains(&***c));
            let routes =
                references.routes.iter().filter(|r| is_routes_of(service, r) && !routes.contains(&***r));
            if let Some(missing) = clusters.chain(routes).next() {
                return Err(format!("{name} refers to {missing:?}, of which there is no part"));
            }
        }
        Ok(())
    }
}

/// A name can be had by its own service only, and once.
fn claim<'a>(own: bool, name: &str, mut held: impl Iterator<Item = &'a XdsResource>) -> Result<(), String> {
    if !own {
        return Err(format!("{name:?} is no name for what belongs to this service"));
    }
    if held.any(|held| *held.name == *name) {
        return Err(format!("another part is called {name:?} as well"));
    }
    Ok(())
}

fn side(side: i32) -> Result<Side, String> {
    match v1::Side::try_from(side) {
        Ok(v1::Side::Callers) => Ok(Side::Callers),
        Ok(v1::Side::Inbound | v1::Side::Outbound) => Ok(Side::Own),
        Ok(v1::Side::Unspecified) => Err("it does not say which side it is for".into()),
        Err(_) => Err(format!("side {side} is not known to this build")),
    }
}

fn decode<M: Message + Default>(body: &[u8]) -> Result<M, String> {
    M::decode(body).map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("it cannot be read: {error}")
}

/// Whether a secret is itself what must not leave the host.
fn is_private(secret: &Secret) -> bool {
    let inline = |source: &DataSource| match &source.specifier {
        Some(Specifier::InlineBytes(_) | Specifier::InlineString(_)) => true,
        Some(Specifier::Filename(_) | Specifier::EnvironmentVariable(_)) | None => false,
    };
    match &secret.r#type {
        Some(secret::Type::TlsCertificate(certificate)) => {
            let private = [&certificate.private_key, &certificate.password, &certificate.pkcs12];
            private.into_iter().flatten().any(inline)
        }
        Some(secret::Type::SessionTicketKeys(keys)) => keys.keys.iter().any(inline),
        Some(secret::Type::GenericSecret(generic)) => {
            generic.secret.iter().chain(generic.secrets.values()).any(inline)
        }
        Some(secret::Type::ValidationContext(_)) | None => false,
    }
}
