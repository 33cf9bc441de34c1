//! What each client was sent, for people.
//!
//! Streams keep that for themselves, so they are asked. One that the connection does not poll, because
//! its client does not read, does not answer; that is told as well.

use std::{collections::BTreeSet, time::Duration};

use prost::Message;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};
use tower_common::view::XdsResource;
use tower_proto::envoy::{
    envoy::{
        config::{
            cluster::v3::Cluster,
            core::v3::{Address, TypedExtensionConfig, address, socket_address::PortSpecifier},
            endpoint::v3::{ClusterLoadAssignment, lb_endpoint::HostIdentifier},
            listener::v3::Listener,
            route::v3::{RouteConfiguration, ScopedRouteConfiguration},
        },
        service::runtime::v3::Runtime,
    },
    google::protobuf::{self, value::Kind},
};

use super::{
    clients::{Client, Clients},
    kind::ResourceType,
};

/// How long streams have to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks all streams.
#[derive(Debug)]
pub(super) struct Asking {
    requests: watch::Sender<Option<mpsc::Sender<Contents>>>,
    /// One at a time: a request takes the place of the one before.
    turn: tokio::sync::Mutex<()>,
}

/// Where a stream hears that it is asked.
pub(super) type Asked = watch::Receiver<Option<mpsc::Sender<Contents>>>;

/// What one stream's client was sent.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) stream: u64,
    pub(super) resources: Vec<Sent>,
}

/// A resource that a client was sent last.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) kind: ResourceType,
    pub(super) resource: XdsResource,
    /// Whether it has accepted it.
    pub(super) accepted: bool,
}

/// A client, and what it was sent.
#[derive(Debug, Serialize)]
pub struct Dump {
    /// The client.
    pub client: Client,
    /// By type; `None` if the stream does not answer: its client does not read.
    pub resources: Option<Map<String, Value>>,
}

impl Default for Asking {
    fn default() -> Self {
        Self { requests: watch::Sender::new(None), turn: tokio::sync::Mutex::default() }
    }
}

impl Asking {
    pub(super) fn asked(&self) -> Asked {
        self.requests.subscribe()
    }

    /// The answers of these streams, as far as they come in time.
    async fn ask(&self, mut streams: BTreeSet<u64>) -> Vec<Contents> {
        let _turn = self.turn.lock().await;
        let (sender, mut answers) = mpsc::channel(streams.len().max(1));
        self.requests.send_replace(Some(sender));
        let deadline = Instant::now() + PATIENCE;
        let mut contents = Vec::new();
        while !streams.is_empty() {
            let Ok(Some(answer)) = timeout_at(deadline, answers.recv()).await else { break };
            streams.remove(&answer.stream);
            contents.push(answer);
        }
        self.requests.send_replace(None);
        contents
    }
}

/// What the clients with this node id were sent; of all clients, if there is none given.
pub async fn dump(clients: &Clients, node_id: Option<&str>) -> Vec<Dump> {
    let mut listed = clients.snapshot();
    listed.retain(|client| node_id.is_none_or(|wanted| client.node_id == wanted));
    let streams = listed.iter().map(|client| client.stream).collect();
    let contents = clients.asking().ask(streams).await;
    let dumps = listed.into_iter().map(|client| {
        let contents = contents.iter().find(|contents| contents.stream == client.stream);
        Dump { resources: contents.map(by_type), client }
    });
    dumps.collect()
}

fn by_type(contents: &Contents) -> Map<String, Value> {
    let mut types = Map::new();
    for Sent { kind, resource, accepted } in &contents.resources {
        let list = types.entry(kind.as_str()).or_insert_with(|| json!([]));
        if let Value::Array(list) = list {
            list.push(json!({
                "name": &*resource.name,
                "version": resource.version.to_string(),
                "accepted": accepted,
                "content": content(*kind, resource).unwrap_or(Value::Null),
            }));
        }
    }
    types
}

/// What a resource says, as far as its type is known; secrets say nothing.
fn content(kind: ResourceType, resource: &XdsResource) -> Option<Value> {
    let body = resource.body.clone();
    Some(match kind {
        ResourceType::Secret => json!("[redacted]"),
        ResourceType::Runtime => {
            let layer = Runtime::decode(body).ok()?.layer?;
            Value::Object(layer.fields.into_iter().map(|(key, value)| (key, plain(value))).collect())
        }
        ResourceType::Cluster => {
            let cluster = Cluster::decode(body).ok()?;
            json!({ "connect_timeout_seconds": cluster.connect_timeout.map(|timeout| timeout.seconds) })
        }
        ResourceType::Endpoint => endpoints(&ClusterLoadAssignment::decode(body).ok()?),
        ResourceType::Extension => {
            json!({ "type_url": TypedExtensionConfig::decode(body).ok()?.typed_config?.type_url })
        }
        ResourceType::Listener => {
            let listener = Listener::decode(body).ok()?;
            json!({ "address": listener.address.as_ref().and_then(address_of) })
        }
        ResourceType::ScopedRoute => {
            json!({ "route": ScopedRouteConfiguration::decode(body).ok()?.route_configuration_name })
        }
        ResourceType::Route => {
            let hosts = RouteConfiguration::decode(body).ok()?.virtual_hosts;
            let host = |host: &tower_proto::envoy::envoy::config::route::v3::VirtualHost| json!({ "name": host.name, "domains": host.domains, "routes": host.routes.len() });
            json!({ "virtual_hosts": hosts.iter().map(host).collect::<Vec<_>>() })
        }
    })
}

fn endpoints(assignment: &ClusterLoadAssignment) -> Value {
    let mut endpoints = Vec::new();
    for locality in &assignment.endpoints {
        let zone = locality.locality.as_ref().map_or("", |locality| &locality.zone);
        for host in &locality.lb_endpoints {
            let Some(HostIdentifier::Endpoint(endpoint)) = &host.host_identifier else { continue };
            endpoints.push(json!({
                "address": endpoint.address.as_ref().and_then(address_of),
                "zone": zone,
                "health": host.health_status().as_str_name(),
                "weight": host.load_balancing_weight.map(|weight| weight.value),
            }));
        }
    }
    Value::Array(endpoints)
}

fn address_of(address: &Address) -> Option<String> {
    let Some(address::Address::SocketAddress(address)) = &address.address else { return None };
    match address.port_specifier {
        Some(PortSpecifier::PortValue(port)) => Some(format!("{}:{port}", address.address)),
        Some(PortSpecifier::NamedPort(_)) | None => None,
    }
}

fn plain(value: protobuf::Value) -> Value {
    match value.kind {
        Some(Kind::BoolValue(value)) => value.into(),
        Some(Kind::NumberValue(number)) => number.into(),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(plain).collect(),
        Some(Kind::StructValue(fields)) => {
            Value::Object(fields.fields.into_iter().map(|(key, value)| (key, plain(value))).collect())
        }
        Some(Kind::NullValue(_)) | None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use tower_common::view::{NodeView, assignment::assignment, cluster::default_cluster, listener, route};
    use tower_proto::{envoy::envoy::extensions::transport_sockets::tls::v3::Secret, v1};

    use super::*;

    #[test]
    fn what_is_composed_can_be_read() {
        let endpoint = v1::Endpoint { address: "10.0.0.1".into(), port: 80, ..Default::default() };
        let egress = listener::egress(&NodeView::new("127.0.0.1:5875".parse().unwrap()), &Default::default());
        let read = |kind, resource: &XdsResource| content(kind, resource).unwrap().to_string();
        assert_eq!(
            read(ResourceType::Endpoint, &assignment("web", [endpoint].iter())),
            r#"[{"address":"10.0.0.1:80","health":"UNKNOWN","weight":1,"zone":""}]"#
        );
        assert_eq!(read(ResourceType::Cluster, &default_cluster("web")), r#"{"connect_timeout_seconds":1}"#);
        assert_eq!(read(ResourceType::Listener, &egress), r#"{"address":"127.0.0.1:5875"}"#);
        let routes = route::compose([route::default_virtual_host("web", "web")].iter());
        assert!(read(ResourceType::Route, &routes).contains(r#""domains":["web","web.mesh"]"#));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = XdsResource::new("hush", &Secret { name: "hush".into(), ..Default::default() });
        assert_eq!(content(ResourceType::Secret, &secret).unwrap(), "[redacted]");
    }
}
