//! The parts of documents that belong to the platform and to security.

use serde::{Deserialize, Serialize};

use super::problem::Finding;

/// `GET /platform`, `/platform/{service}`, `/security`, `/security/{service}`. With `Accept: application/yaml` the
/// answer is the document, byte by byte as it was put.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Part {
    /// Whose it is.
    pub owner: PartOwner,
    /// For which service; for all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// 1, 2, 3, …
    pub revision: u64,
    /// The document.
    pub document: serde_json::Value,
    /// Who edited it last.
    pub author: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When.
    pub edited_unix_ms: u64,
    /// The index of that entry in the log: what its `ETag` says.
    pub index: u64,
}

/// What putting a part answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PartEdited {
    /// The new revision.
    pub revision: u64,
    /// Remarks; none of them is an error.
    pub findings: Vec<Finding>,
    /// The index of the entry in the log.
    pub index: u64,
}

/// To whom a part belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartOwner {
    /// Those who run the hosts and the mesh.
    Platform,
    /// Those who say who may talk to whom.
    Security,
}

impl PartOwner {
    /// As in JSON and in paths.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Security => "security",
        }
    }
}
