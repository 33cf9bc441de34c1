//! Activations: a release on its way to its hosts, step by step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `POST /services/{service}/activations`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ActivationRequest {
    /// The number of the version.
    pub version: u64,
    /// Who gets it: `everyone`, `host=a,b`, `zone=us-east-1a`, `label:team=ads`, `workload=ads/canary`,
    /// `tier=canary`, `10%`; terms are joined with `&`. Everyone if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The way there; one host, then 10 %, then all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 20))]
    pub steps: Option<Vec<StepRequest>>,
    /// All hosts of the audience in one step. Needs a reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
    /// Why, for those who read the activity log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub reason: Option<String>,
    /// After how long it is taken back by itself; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 31_536_000))]
    pub ttl_seconds: Option<u64>,
    /// Also if the version was rejected, or gone back from, before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// One step of the way: who has the release when it is over, within the audience.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    /// As in the activation: `host=a`, `10%`, `everyone`.
    pub audience: String,
    /// How long the step before has to stand, after it was accepted. A few seconds if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 86_400))]
    pub pause_seconds: Option<u32>,
}

/// `POST /services/{service}/rollback`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The number of the version to go back to; what was active before if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Why, for those who read the activity log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub reason: Option<String>,
}

/// `PUT /services/{service}/traffic`: other weights and nothing else, as a new version that is activated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TrafficRequest {
    /// The weight of each subset; subsets that are not named have none.
    pub weights: BTreeMap<String, u32>,
    /// The name of the route; every route to subsets if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Who gets it; everyone if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The way there; one host, then 10 %, then all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 20))]
    pub steps: Option<Vec<StepRequest>>,
    /// All hosts in one step. Needs a reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
    /// Why, for those who read the activity log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub reason: Option<String>,
    /// After how long it is taken back by itself; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 31_536_000))]
    pub ttl_seconds: Option<u64>,
}

/// `GET /services/{service}/activations`: a page, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Activations {
    /// The activations.
    pub activations: Vec<Activation>,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What activating, setting weights, rolling back and aborting answers: 202 if an activation is under way, and
/// 200 if that was all, or nothing was to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Started {
    /// The index of the last entry of the log about the service.
    pub index: u64,
    /// The number of the version that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The activation that was started, or is under way already, or was aborted. Absent if none was needed: the
    /// note says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// For people, such as why nothing was to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Activation {
    /// Its id.
    pub id: String,
    /// The service.
    pub service: String,
    /// Which command it was.
    pub kind: Kind,
    /// The number of the version; 0 is what a service has without a document.
    pub version: u64,
    /// The release.
    pub release: String,
    /// Who gets it.
    pub audience: String,
    /// How far it is.
    pub state: State,
    /// The number of the present step, from 0.
    pub step: u64,
    /// All of them.
    pub steps: Vec<Step>,
    /// The hosts of the present step, by what this Tower knows.
    pub hosts: Progress,
    /// Those hosts of them that have not accepted it, at most 100.
    pub lacking: Vec<super::fleet::Lack>,
    /// What stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
    /// If it was rejected: what it would have changed on the host that did, and who last wrote each of these fields.
    /// Told of one activation, not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<super::plan::Change>,
    /// More about how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Who wanted it.
    pub author: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it began.
    pub started_unix_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_ms: Option<u64>,
    /// When it is taken back by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_ms: Option<u64>,
    /// The index of the last entry of the log about it.
    pub index: u64,
}

/// Which command an activation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Somebody activated a version.
    Activate,
    /// Somebody set weights.
    Traffic,
    /// Somebody went back.
    RollBack,
}

/// How far an activation is. Only the final state says whether it succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Under way.
    Progressing,
    /// Accepted by all of its hosts.
    Succeeded,
    /// An Envoy refused it, and it was taken back.
    Rejected,
    /// Somebody took it back on its way.
    Aborted,
    /// Another one took its place.
    Superseded,
    /// Its time was over, and it was taken back.
    Expired,
    /// It was not accepted in time, and was taken back.
    TimedOut,
}

impl State {
    /// Whether it stays so.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Progressing)
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Step {
    /// Who has the release when it is over.
    pub audience: String,
    /// For people: `1 host`, `10 %`, `all`.
    pub title: String,
    /// How long the step before has to stand, after it was accepted.
    pub pause_ms: u32,
    /// How many hosts there were and how many had accepted it when it was over, or now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u64>,
    /// See `hosts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
}

/// How many hosts are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Progress {
    /// All that should have it.
    pub total: u64,
    /// All of their Envoys have accepted it.
    pub accepted: u64,
    /// It is on its way, or an Envoy has not answered yet.
    pub pending: u64,
    /// An Envoy has refused it.
    pub rejected: u64,
    /// An Envoy could not take it, for a reason of its host.
    pub host_faults: u64,
    /// They have no Envoy that could accept it. Nobody waits for them.
    pub no_envoy: u64,
    /// Their Beacons are not connected.
    pub silent: u64,
}

/// A refusal by an Envoy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rejection {
    /// The host.
    pub host: String,
    /// The node id of the Envoy.
    pub client: String,
    /// The type of the resource.
    pub type_url: String,
    /// The resource.
    pub resource: String,
    /// What the Envoy said.
    pub error: String,
}
