//! What a client says of itself in the first request of a stream.

use std::{net::SocketAddr, sync::Arc};

use tower_common::{
    audience::Workload,
    view::{ClientKind, ConfigSource, NodeView},
};
use tower_proto::envoy::{
    envoy::config::core::v3::{Node, node::UserAgentVersionType},
    google::protobuf::{Value, value::Kind},
};

use super::protocol::Refusal;

/// The key of `node.metadata` under which an Envoy says on which port it is to listen for calls that
/// leave the host, so that there may be several on one host.
pub(super) const EGRESS_PORT: &str = "tower.egress_port";

/// The key of `node.metadata` under which an Envoy says for which of the host's workloads it is there:
/// `SERVICE` or `SERVICE/CLUSTER`, or a list of these. Without it, it is there for all of them.
pub(super) const WORKLOAD: &str = "tower.workload";

/// The workloads that an Envoy can name.
const MAX_WORKLOADS: usize = 256;

/// What the fields that are kept may have, in bytes.
const LIMIT: usize = 1024;

/// A client, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) node_id: String,
    pub(super) cluster: String,
    /// Name and version.
    pub(super) user_agent: String,
    /// What its view depends on.
    pub(super) view: NodeView,
    /// What of its metadata is ignored, and why.
    pub(super) complaint: Option<String>,
}

impl Identity {
    /// Reads a node. `egress` is where a client listens that does not say so,
    /// `source` where it asks, and `local` whether it is connected by a socket of this host.
    ///
    /// # Errors
    /// If there is no node ("Only the first message on a stream is guaranteed to carry it"), or an absurd
    /// one.
    pub(super) fn read(
        node: Option<Node>,
        egress: SocketAddr,
        source: ConfigSource,
        local: bool,
    ) -> Result<Self, Refusal> {
        let node = node.ok_or(Refusal::NoNode)?;
        let user_agent = user_agent(&node);
        let lengths = [
            ("node.id", node.id.len()),
            ("node.cluster", node.cluster.len()),
            ("node.user_agent_name and its version", user_agent.len()),
        ];
        if let Some((field, bytes)) = lengths.into_iter().find(|(_, bytes)| *bytes > LIMIT) {
            return Err(Refusal::LongNode { field, bytes, limit: LIMIT });
        }
        let (egress, mut complaint) = match egress_port(&node) {
            Ok(port) => (SocketAddr::new(egress.ip(), port.unwrap_or(egress.port())), None),
            Err(value) => {
                let complaint = format!(
                    "node.metadata {EGRESS_PORT:?} is {value}, and has to be a port from 1 to 65535; the \
                     client is told to listen on {egress}"
                );
                (egress, Some(complaint))
            }
        };
        let workloads = match workloads(&node) {
            Ok(workloads) => workloads,
            Err(value) => {
                let problem = format!(
                    "node.metadata {WORKLOAD:?} is {value}, and has to be SERVICE or SERVICE/CLUSTER, or a list \
                     of these; the client gets no listener of a service that runs on this host"
                );
                complaint = Some(complaint.map_or(problem.clone(), |first| format!("{first}; {problem}")));
                Some(Arc::from([]))
            }
        };
        // "gRPC Go", "gRPC C-core", …
        let grpc = user_agent.starts_with("gRPC");
        let client = if grpc { ClientKind::Grpc } else { ClientKind::Envoy };
        let view = NodeView { egress, source, client, local, workloads };
        Ok(Self { node_id: node.id, cluster: node.cluster, user_agent, view, complaint })
    }

    /// Whether this is gRPC itself, and no proxy.
    pub(super) fn is_grpc(&self) -> bool {
        self.view.client == ClientKind::Grpc
    }
}

fn user_agent(node: &Node) -> String {
    let version = match &node.user_agent_version_type {
        Some(UserAgentVersionType::UserAgentVersion(version)) => version.clone(),
        Some(UserAgentVersionType::UserAgentBuildVersion(build)) => {
            let number = |v: &_| {
                let tower_proto::envoy::envoy::r#type::v3::SemanticVersion {
                    major_number,
                    minor_number,
                    patch,
                } = v;
                format!("{major_number}.{minor_number}.{patch}")
            };
            build.version.as_ref().map(number).unwrap_or_default()
        }
        None => String::new(),
    };
    format!("{} {version}", node.user_agent_name).trim().to_owned()
}

/// The port that a client asks for, or what it says instead of one.
fn egress_port(node: &Node) -> Result<Option<u16>, String> {
    let value = node.metadata.as_ref().and_then(|metadata| metadata.fields.get(EGRESS_PORT));
    let Some(value) = value else { return Ok(None) };
    let port = |port: &u16| *port > 0;
    match &value.kind {
        Some(Kind::NumberValue(number)) => {
            // Protobuf's JSON numbers are floating point. The conversion saturates.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "compared")]
            let whole = *number as u16;
            let whole = Some(whole).filter(|whole| f64::from(*whole) == *number).filter(port);
            whole.map(Some).ok_or_else(|| number.to_string())
        }
        Some(Kind::StringValue(text)) => {
            let parsed = text.parse().ok().filter(port);
            parsed.map(Some).ok_or_else(|| format!("{:?}", text.chars().take(32).collect::<String>()))
        }
        Some(Kind::NullValue(_) | Kind::BoolValue(_) | Kind::StructValue(_) | Kind::ListValue(_)) | None => {
            Err("neither a number nor a string".to_owned())
        }
    }
}

/// The workloads that a client names, or what it says instead of such names; `None` if it names none.
fn workloads(node: &Node) -> Result<Option<Arc<[Workload]>>, String> {
    let value = node.metadata.as_ref().and_then(|metadata| metadata.fields.get(WORKLOAD));
    let Some(value) = value else { return Ok(None) };
    let texts = match &value.kind {
        Some(Kind::ListValue(list)) if list.values.len() <= MAX_WORKLOADS => list.values.as_slice(),
        Some(Kind::ListValue(list)) => return Err(format!("a list of {}", list.values.len())),
        Some(_) | None => std::slice::from_ref(value),
    };
    let workload = |value: &Value| match &value.kind {
        Some(Kind::StringValue(text)) => {
            let (service, cluster) = text.split_once('/').unwrap_or((text, ""));
            let shown = || format!("{:?}", text.chars().take(64).collect::<String>());
            let wrong = service.is_empty() || cluster.contains('/') || text.ends_with('/');
            if wrong {
                Err(shown())
            } else {
                Ok(Workload { service: service.into(), cluster: cluster.into() })
            }
        }
        Some(_) | None => Err("no string".to_owned()),
    };
    Ok(Some(texts.iter().map(workload).collect::<Result<Vec<_>, _>>()?.into()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tower_proto::envoy::{
        envoy::{config::core::v3::BuildVersion, r#type::v3::SemanticVersion},
        google::protobuf::{ListValue, Struct},
    };

    use super::*;

    fn read(node: Node) -> Result<Identity, Refusal> {
        Identity::read(Some(node), "127.0.0.1:5875".parse().unwrap(), ConfigSource::Aggregated, false)
    }

    /// The port that is served to a client with this metadata, and whether it is told that it is wrong.
    fn port(kind: Kind) -> (u16, bool) {
        let value = Value { kind: Some(kind) };
        let fields = HashMap::from([(EGRESS_PORT.to_owned(), value)]);
        let identity = read(Node { metadata: Some(Struct { fields }), ..Default::default() }).unwrap();
        (identity.view.egress.port(), identity.complaint.is_some())
    }

    #[test]
    fn the_port_is_a_number_or_a_string() {
        assert_eq!(port(Kind::NumberValue(7000.0)), (7000, false));
        assert_eq!(port(Kind::StringValue("7000".into())), (7000, false));
        for wrong in [0.0, -1.0, 0.5, 65536.0, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(port(Kind::NumberValue(wrong)), (5875, true), "{wrong}");
        }
        for wrong in ["", "0", "x", "70000", "-1", "7000 "] {
            assert_eq!(port(Kind::StringValue(wrong.into())), (5875, true), "{wrong:?}");
        }
        assert_eq!(port(Kind::BoolValue(true)), (5875, true));
        let none = read(Node::default()).unwrap();
        assert_eq!((none.view.egress.port(), none.complaint), (5875, None));
    }

    #[test]
    fn a_complaint_names_key_value_and_consequence() {
        let fields =
            HashMap::from([(EGRESS_PORT.to_owned(), Value { kind: Some(Kind::NumberValue(70000.0)) })]);
        let identity = read(Node { metadata: Some(Struct { fields }), ..Default::default() }).unwrap();
        assert_eq!(
            identity.complaint.unwrap(),
            "node.metadata \"tower.egress_port\" is 70000, and has to be a port from 1 to 65535; the client \
             is told to listen on 127.0.0.1:5875"
        );
    }

    /// The workloads of a client with this metadata, and whether it is told that it is wrong.
    fn named(kind: Option<Kind>) -> (Option<Vec<String>>, bool) {
        let fields = kind.map(|kind| (WORKLOAD.to_owned(), Value { kind: Some(kind) })).into_iter().collect();
        let identity = read(Node { metadata: Some(Struct { fields }), ..Default::default() }).unwrap();
        let names = identity.view.workloads.map(|all| all.iter().map(ToString::to_string).collect());
        (names, identity.complaint.is_some())
    }

    #[test]
    fn an_envoy_is_there_for_the_workloads_that_it_names() {
        let text = |text: &str| Kind::StringValue(text.into());
        let list = |texts: &[&str]| {
            let values = texts.iter().map(|t| Value { kind: Some(text(t)) }).collect();
            Some(Kind::ListValue(ListValue { values }))
        };
        let names = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(named(None), (None, false));
        assert_eq!(named(Some(text("ads"))), (names(&["ads"]), false));
        assert_eq!(named(list(&["ads/canary", "web"])), (names(&["ads/canary", "web"]), false));
        assert_eq!(named(list(&[])), (names(&[]), false));
        for wrong in ["", "/x", "a/", "a/b/c"] {
            assert_eq!(named(Some(text(wrong))), (names(&[]), true), "{wrong:?}");
        }
        assert_eq!(named(Some(Kind::NumberValue(1.0))), (names(&[]), true));
        assert_eq!(named(list(&["a"; MAX_WORKLOADS + 1])), (names(&[]), true));
    }

    #[test]
    fn user_agents_have_a_name_and_a_version() {
        let version = SemanticVersion { major_number: 1, minor_number: 40, patch: 0 };
        let build = BuildVersion { version: Some(version), metadata: None };
        let envoy = Node {
            user_agent_name: "envoy".into(),
            user_agent_version_type: Some(UserAgentVersionType::UserAgentBuildVersion(build)),
            ..Default::default()
        };
        let envoy = read(envoy).unwrap();
        assert_eq!((envoy.user_agent.as_str(), envoy.is_grpc()), ("envoy 1.40.0", false));
        let grpc = Node {
            user_agent_name: "gRPC Go".into(),
            user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion("1.80.0".into())),
            ..Default::default()
        };
        let grpc = read(grpc).unwrap();
        assert_eq!((grpc.user_agent.as_str(), grpc.is_grpc()), ("gRPC Go 1.80.0", true));
    }

    #[test]
    fn a_node_is_needed_and_has_a_limit() {
        assert_eq!(
            Identity::read(None, "127.0.0.1:1".parse().unwrap(), ConfigSource::Aggregated, false),
            Err(Refusal::NoNode)
        );
        let long = read(Node { id: "x".repeat(LIMIT + 1), ..Default::default() });
        assert_eq!(long, Err(Refusal::LongNode { field: "node.id", bytes: LIMIT + 1, limit: LIMIT }));
    }
}
