//! What a change would do, and how two documents differ.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{problem::Finding, service::Release};

/// `POST /services/{service}/plan`: either a version, or a document that is not uploaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// The number of a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// A document, as YAML or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// What the document is called in findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Who would get it; everyone if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// What would happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Plan {
    /// The service.
    pub service: String,
    /// The index to give to the activation as `If-Match`, so that it does what is planned here, or nothing.
    pub index: u64,
    /// The version that would be activated, if it is uploaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The release that would be made; absent if there are errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Who would get it, in full.
    pub audience: String,
    /// What is wrong, or remarkable; with an error among them it could not be activated.
    pub findings: Vec<Finding>,
    /// What each group of affected hosts has now, and what the change means for it, the largest group first.
    pub from: Vec<PlanFrom>,
    /// The affected hosts: those in the audience, by the latest reports, whose release would be another.
    pub hosts: Hosts,
}

/// What the change means for those hosts that have one certain release now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanFrom {
    /// What they have now; absent is what a service has without a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// How many hosts have it.
    pub hosts: u64,
    /// How the documents differ, with the parts of platform and security.
    pub changes: Vec<Change>,
    /// What happens to connections, by resource.
    pub effects: Vec<ResourceEffect>,
}

/// Hosts, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hosts {
    /// How many.
    pub count: u64,
    /// Their names, at most 1000.
    pub names: Vec<String>,
}

/// A difference of documents or assignments, in terms of their fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    /// Such as `spec.callers.routes[default].timeouts.request`.
    pub field: String,
    /// What it was; absent if it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it is; absent if it is there no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Who owns the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Who last wrote it, where that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// What happens to connections when a resource changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResourceEffect {
    /// `cluster`, `virtual_host`, `listener`, `secret_reference` or `extension`.
    pub kind: String,
    /// The name of the part, without the release.
    pub name: String,
    /// What becomes of the resource.
    pub action: Action,
    /// What that does.
    pub effect: Effect,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What becomes of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It was not there.
    Add,
    /// It was otherwise.
    Change,
    /// It goes.
    Remove,
}

/// What a change does to connections, from harmless to not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    NoDrain,
    /// Connections to endpoints are made anew.
    PoolsReset,
    /// Connections of clients are drained.
    ConnectionsDrained,
}

/// `GET /services/{service}/diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Diff {
    /// The service.
    pub service: String,
    /// The number of the version before.
    pub from: u64,
    /// The number of the version after.
    pub to: u64,
    /// The differences; none if they mean the same.
    pub changes: Vec<Change>,
}
