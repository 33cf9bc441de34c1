//! Versions: documents as they were uploaded, immutable, in effect once they are activated.

use serde::{Deserialize, Serialize};

use super::problem::Finding;

/// What `POST /services/{service}/versions` answers: 201, or 200 if there was a version with this hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Uploaded {
    /// Its id: `web@1`.
    pub version: String,
    /// The number in it.
    pub number: u64,
    /// The hash of the document in its canonical form.
    pub hash: String,
    /// It was there already.
    pub existing: bool,
    /// Remarks; none of them is an error.
    pub findings: Vec<Finding>,
    /// The index of the entry in the log with which it was uploaded.
    pub index: u64,
}

/// `GET /services/{service}/versions`: a page, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Versions {
    /// The versions.
    pub versions: Vec<Version>,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Version {
    /// Its id: `web@1`.
    pub version: String,
    /// The number in it.
    pub number: u64,
    /// The hash of the document in its canonical form.
    pub hash: String,
    /// The owner that the document names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Somebody has approved it.
    pub approved: bool,
    /// It cannot be activated any more.
    pub retired: bool,
    /// A rule, or the default, gives it to hosts now.
    pub active: bool,
    /// Who uploaded it.
    pub author: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When.
    pub uploaded_unix_ms: u64,
    /// The index of the entry in the log.
    pub index: u64,
}

/// `GET /services/{service}/versions/{number}`. With `Accept: application/yaml` the answer is the document, byte
/// by byte as it was uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VersionDetail {
    /// As in the list.
    #[serde(flatten)]
    pub version: Version,
    /// What was uploaded.
    pub document: serde_json::Value,
}
