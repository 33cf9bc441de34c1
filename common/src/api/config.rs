//! What a host serves its Envoys, as Tower works it out from what the host was sent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Types of resources, as people call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Served {
    /// LDS.
    Listeners,
    /// RDS.
    Routes,
    /// CDS.
    Clusters,
    /// EDS.
    Endpoints,
    /// SDS: where the host finds certificates and keys.
    Secrets,
}

/// `GET /hosts/{host}/config`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostConfig {
    /// The host.
    pub host: String,
    /// What its Envoys are served, by type and name.
    pub resources: Vec<Resource>,
}

/// One resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Resource {
    /// Its type.
    pub what: Served,
    /// Its name in xDS.
    pub name: String,
    /// The content hash of its body.
    pub version: String,
    /// The length of its body in bytes.
    pub bytes: u64,
    /// The message, as JSON, unless an index was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Value>,
}
