//! The document as a whole, whom it is about, and who writes it.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Spec, is_default};

/// The format that is written.
pub const API_VERSION: &str = "tower.mesh/v1";

/// A service document, a part of one, or all its parts merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "MeshService")]
pub struct Document {
    /// The version of the format.
    pub api_version: ApiVersion,
    /// The kind of document.
    pub kind: Kind,
    /// Whom it is about.
    pub metadata: Metadata,
    /// What is to be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spec: Spec,
}

/// The version of the format. Older ones are upgraded when they are parsed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// `tower.mesh/v1`
    #[default]
    #[serde(rename = "tower.mesh/v1")]
    V1,
}

/// The kind of document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// `MeshService`
    #[default]
    MeshService,
}

/// Whom a document is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// The service, as it is discovered. Empty in a part of platform or security that is for all services.
    #[serde(default, skip_serializing_if = "is_default")]
    pub name: String,
    /// The team that owns the service, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What the service is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// For searching; no host sees them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub labels: BTreeMap<String, String>,
}

/// Who writes a part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// Who runs the mesh: ports, patches, defaults for what service owners leave open.
    Platform,
    /// Who answers for certificates, TLS, and who may call whom.
    Security,
    /// Who owns the service.
    Service,
}

impl Owner {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Platform, Self::Security, Self::Service];

    /// In a word, as it is serialized.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Security => "security",
            Self::Service => "service",
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
