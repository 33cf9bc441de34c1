//! Documents in, Envoy's JSON out.

use prost::{Message, Name};
use serde_json::Value;
use tower_common::document::{Document, Effective};
use tower_proto::{
    envoy::envoy::{
        config::{cluster::v3::Cluster, listener::v3::Listener, route::v3::VirtualHost},
        extensions::transport_sockets::tls::v3::Secret,
    },
    v1::{Bundle, ClusterPart, Kind, ListenerPart, SecretPart, VirtualHostPart},
};

use super::{compile, messages::to_json};

/// A document of the service `web` with this `spec`, in YAML.
pub(super) fn effective(spec: &str) -> Effective {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let text =
        format!("apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {{name: web}}\nspec:\n{spec}");
    let document: Document = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Effective { document, ..Effective::default() }
}

/// What becomes of it.
pub(super) fn bundle(spec: &str) -> Bundle {
    compile(&effective(spec), "web").unwrap_or_else(|findings| panic!("{findings:?}"))
}

/// The part of a bundle.
pub(super) fn part<P: Message + Default>(bundle: &Bundle, kind: Kind, name: &str) -> P {
    let part = bundle.parts.iter().find(|part| part.kind() == kind && part.name == name);
    let part = part.unwrap_or_else(|| panic!("no {kind:?} {name} among {:?}", names(bundle)));
    P::decode(part.body.clone()).expect("a part")
}

/// Kinds and names.
pub(super) fn names(bundle: &Bundle) -> Vec<String> {
    bundle.parts.iter().map(|part| format!("{:?} {}", part.kind(), part.name)).collect()
}

/// A cluster as JSON.
pub(super) fn cluster(bundle: &Bundle, name: &str) -> Value {
    json::<Cluster>(&part::<ClusterPart>(bundle, Kind::Cluster, name).cluster)
}

/// A virtual host as JSON.
pub(super) fn virtual_host(bundle: &Bundle, name: &str) -> Value {
    json::<VirtualHost>(&part::<VirtualHostPart>(bundle, Kind::VirtualHost, name).virtual_host)
}

/// A listener as JSON.
pub(super) fn listener(bundle: &Bundle, name: &str) -> Value {
    json::<Listener>(&part::<ListenerPart>(bundle, Kind::Listener, name).listener)
}

/// A secret as JSON.
pub(super) fn secret(bundle: &Bundle, name: &str) -> Value {
    json::<Secret>(&part::<SecretPart>(bundle, Kind::SecretReference, name).secret)
}

/// The first route of callers, and its action.
pub(super) fn first_route(spec: &str) -> Value {
    virtual_host(&bundle(spec), "web")["routes"][0].clone()
}

/// A message as JSON.
pub(super) fn json<M: Message + Name>(body: &[u8]) -> Value {
    to_json(&M::full_name(), body).expect("a message")
}

/// Whether all of `expected` is in `actual`: objects may have more, lists may not.
pub(super) fn contains(actual: &Value, expected: &Value) {
    fn missing(actual: &Value, expected: &Value) -> bool {
        match (actual, expected) {
            (Value::Object(actual), Value::Object(expected)) => {
                expected.iter().any(|(key, value)| actual.get(key).is_none_or(|held| missing(held, value)))
            }
            (Value::Array(actual), Value::Array(expected)) => {
                actual.len() != expected.len()
                    || actual.iter().zip(expected).any(|(actual, expected)| missing(actual, expected))
            }
            (actual, expected) => actual != expected,
        }
    }
    assert!(!missing(actual, expected), "expected {expected:#}\nin {actual:#}");
}
