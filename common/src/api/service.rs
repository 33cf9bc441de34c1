//! Services: what is discovered of them, and what is configured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{activation::Activation, problem::Finding, version::Version};

/// Which services Beacons are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Serve {
    /// All.
    All,
    /// None.
    None,
    /// Those that are named by `--serve`.
    List,
}

/// `GET /services`: a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Services {
    /// Which of them Beacons are sent.
    pub serve: Serve,
    /// Those that are named by `--serve`, and that no source knows. They may register later.
    pub unknown: Vec<String>,
    /// The services.
    pub services: Vec<Service>,
    /// How many there are in all pages.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub total: u64,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How services are sorted. Of equals, by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// By name.
    #[default]
    Name,
    /// The most endpoints first.
    Endpoints,
    /// What was changed last first; never is last.
    Changed,
}

/// Services of which something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// A version is active.
    Active,
    /// The version that was uploaded last is not active.
    Waiting,
    /// An activation is under way.
    Progressing,
    /// It has no document.
    NoDocument,
    /// It has no endpoints.
    NoEndpoints,
    /// Beacons are not sent it, or it has no host name.
    NotServed,
}

/// A service in a few words: it is discovered, has documents, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Service {
    /// Its name.
    pub name: String,
    /// How many endpoints are published.
    pub endpoints: u64,
    /// Beacons are sent it.
    pub served: bool,
    /// The host name by which it is called, besides the one with `.mesh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Why it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Who owns it, by the document that was uploaded last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The number of the version that was uploaded last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_version: Option<u64>,
    /// What its callers get, unless a rule says otherwise; absent is what a service has without a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Release>,
    /// How many rules say otherwise.
    pub rules: u64,
    /// The id of the activation that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
    /// The index of the last entry of the log about it, 0 if there is none: what its `ETag` says.
    pub index: u64,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_unix_ms: Option<u64>,
}

/// A release: what was made of a version and of the parts of platform and security.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Release {
    /// Its id.
    pub release: String,
    /// The number of the version in it.
    pub version: u64,
}

/// `GET /services/{service}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServiceDetail {
    /// As in the list.
    #[serde(flatten)]
    pub service: Service,
    /// The versions, the newest first, at most 20; `GET /services/{service}/versions` has all.
    pub versions: Vec<Version>,
    /// Which hosts get what: the first rule that fits decides.
    pub assignment: Vec<Rule>,
    /// The activation that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation_in_progress: Option<Activation>,
    /// Remarks about the active document.
    pub findings: Vec<Finding>,
    /// The active document with the parts of platform and security, if asked for with `include=effective`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Effective>,
}

/// Which hosts get a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rule {
    /// As in an activation: `everyone`, `zone=us-east-1a`, `10%`.
    pub audience: String,
    /// What they get; absent is what a service has without a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// The activation that made the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
}

/// A document as it takes effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Effective {
    /// The merged document.
    pub document: serde_json::Value,
    /// Where each of its fields comes from, by its path.
    pub provenance: BTreeMap<String, Origin>,
}

/// Where a field comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Origin {
    /// `platform`, `security` or `service`.
    pub owner: String,
    /// Which of the owner's documents: `web@3`, `platform`, `security/web`.
    pub part: String,
}

/// `GET /services/{service}/endpoints`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Endpoints {
    /// The endpoints that are published.
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Endpoint {
    /// The id of the source.
    pub source: String,
    /// Its IP address.
    pub address: String,
    /// Its port.
    pub port: u32,
    /// The port's name, where a service has several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub port_name: String,
    /// Where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Its share of the load, beside others'.
    pub weight: f64,
    /// Such as `HEALTHY`, `DRAINING`.
    pub state: String,
    /// What else is known of it.
    pub labels: BTreeMap<String, String>,
}
