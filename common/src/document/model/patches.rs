//! Raw changes of Envoy's resources, by the platform alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A change of one of the resources that the service's release consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Patch {
    /// What is changed.
    pub target: PatchTarget,
    /// Fields of the resource as in Envoy's own JSON, merged into it: objects field by field, everything else
    /// in place of what was there.
    pub merge: Map<String, Value>,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchTarget {
    /// Its kind.
    pub kind: PatchKind,
    /// Its name, such as `web`, `web/canary` or `inbound/web/app`. In a part for all services, `{service}`
    /// stands for each one's name.
    pub name: String,
}

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PatchKind {
    /// `envoy.config.cluster.v3.Cluster`
    Cluster,
    /// `envoy.config.listener.v3.Listener`
    Listener,
    /// `envoy.config.route.v3.VirtualHost`
    VirtualHost,
}
