//! The sides of a service: its own hosts, its callers, and what it calls itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Callers, Inbound, Outbound, Patch, is_default};

/// What a document says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// What happens on the service's own hosts, before a request reaches it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inbound: Inbound,
    /// How others reach the service: on every caller's host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub callers: Callers,
    /// What the service calls: on its own hosts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub outbound: Outbound,
    /// The service's clusters in the order in which a change goes to them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tiers: Vec<Tier>,
    /// Changes of what is made of all this, by the platform alone; in this order, after everything else.
    #[serde(default, skip_serializing_if = "is_default")]
    pub patches: Vec<Patch>,
}

/// A group of the service's clusters, which an audience can name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tier {
    /// Unique in the document.
    pub name: String,
    /// Clusters as in a host's workloads (`SERVICE/CLUSTER`). At least one; a cluster is in one tier.
    pub clusters: Vec<String>,
}
