//! What a change of releases does to connections.

use serde::Serialize;
use tower_proto::v1::{Bundle, ClusterPart, Kind, bundle::Part};

/// What becomes of connections when a resource changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// They stay.
    NoDrain,
    /// Envoy connects to the service's endpoints anew. Requests on their way are finished, those that come are
    /// not delayed by more than connecting takes, and who calls notices nothing. Connections of TCP stay.
    PoolsReset,
    /// Envoy asks its clients to leave (`Connection: close`, GOAWAY), and closes what is still open when its
    /// drain time is over.
    ConnectionsDrained,
}

/// What a change of one resource does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// Kind and name, such as `cluster web/canary`.
    pub resource: String,
    /// What becomes of connections.
    pub effect: Connections,
    /// Why, in a few words.
    pub why: &'static str,
}

impl Connections {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoDrain => "no drain",
            Self::PoolsReset => "pools reset",
            Self::ConnectionsDrained => "connections drained",
        }
    }
}

/// What it does to connections that the bundle `after` takes the place of `before`, by resource: only those
/// that differ. Without `before` everything is new.
pub fn plan(before: Option<&Bundle>, after: &Bundle) -> Vec<Effect> {
    let none = Bundle::default();
    let before = before.unwrap_or(&none);
    let mut effects = Vec::new();
    for part in &after.parts {
        match find(before, part) {
            None => effects.push(effect(part, Connections::NoDrain, "it is new")),
            Some(old) if old.body == part.body => {}
            Some(old) => effects.push(changed(old, part)),
        }
    }
    for part in before.parts.iter().filter(|part| find(after, part).is_none()) {
        effects.push(removed(part));
    }
    effects.sort_by(|a, b| a.resource.cmp(&b.resource));
    effects
}

fn find<'a>(bundle: &'a Bundle, like: &Part) -> Option<&'a Part> {
    bundle.parts.iter().find(|part| part.kind == like.kind && part.name == like.name)
}

fn changed(old: &Part, new: &Part) -> Effect {
    let (connections, why) = match new.kind() {
        Kind::Cluster if same_cluster(old, new) => {
            (Connections::NoDrain, "only its endpoints, or how they weigh, are others")
        }
        Kind::Cluster => (Connections::PoolsReset, "Envoy sets up a changed cluster anew"),
        Kind::VirtualHost => (Connections::NoDrain, "routes change for the next request"),
        Kind::Listener => (Connections::ConnectionsDrained, "Envoy sets up a changed listener anew"),
        Kind::SecretReference => (Connections::NoDrain, "the next handshake has the new files"),
        Kind::Extension => (Connections::NoDrain, "it changes routes"),
        Kind::Unspecified
        | Kind::Endpoint
        | Kind::Service
        | Kind::Runtime
        | Kind::Assignment
        | Kind::AppConfig => (Connections::NoDrain, "it concerns no connection"),
    };
    effect(new, connections, why)
}

fn removed(part: &Part) -> Effect {
    let (connections, why) = match part.kind() {
        Kind::Cluster => (Connections::PoolsReset, "it goes, after the routes to it"),
        Kind::Listener => (Connections::ConnectionsDrained, "it goes"),
        Kind::VirtualHost => (Connections::NoDrain, "its routes go"),
        Kind::Unspecified
        | Kind::Endpoint
        | Kind::Service
        | Kind::Runtime
        | Kind::Extension
        | Kind::SecretReference
        | Kind::Assignment
        | Kind::AppConfig => (Connections::NoDrain, "nothing refers to it any more"),
    };
    effect(part, connections, why)
}

/// Whether what Envoy takes for the cluster is the same, and only what the view does for it differs.
fn same_cluster(old: &Part, new: &Part) -> bool {
    use prost::Message;
    let cluster = |part: &Part| ClusterPart::decode(part.body.clone()).ok().map(|part| part.cluster);
    cluster(old).is_some_and(|old| cluster(new) == Some(old))
}

fn effect(part: &Part, effect: Connections, why: &'static str) -> Effect {
    let kind = match part.kind() {
        Kind::Cluster => "cluster",
        Kind::VirtualHost => "virtual host",
        Kind::Listener => "listener",
        Kind::SecretReference => "secret",
        Kind::Extension => "extension",
        Kind::Runtime => "runtime",
        Kind::Unspecified | Kind::Endpoint | Kind::Service | Kind::Assignment | Kind::AppConfig => "part",
    };
    Effect { resource: format!("{kind} {}", part.name), effect, why }
}

#[cfg(test)]
mod tests;
