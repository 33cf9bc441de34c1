//! Hosts: what their Beacons hold, and what their Envoys made of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{activation::Rejection, source::Refusal};

/// `GET /hosts`: a page, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostList {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// How many there are in all pages.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub total: u64,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A host, by its Beacon, as this Tower knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Host {
    /// Its name: the node id of the Beacon.
    pub name: String,
    /// The Beacon is connected to this Tower.
    pub connected: bool,
    /// Where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// What it says of itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What runs on it: `service` or `service/cluster`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<String>,
    /// The version of its Beacon.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build: String,
    /// When it was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_unix_ms: Option<u64>,
    /// How many xDS clients its Beacon has.
    pub clients: u64,
    /// How it is as a whole.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub state: HostState,
    /// What is refused, if something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// How many of the services with an assignment it has as they should be, accepted by its Envoys.
    pub accepted: u64,
    /// How many it has not.
    pub lacking: u64,
    /// The latest state of each type at each of its xDS clients, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<ClientType>>,
}

/// How a host is as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// Its Envoys have accepted everything that they should have.
    OnTarget,
    /// Something is on its way to it, or its Beacon has not said yet what it has.
    Lagging,
    /// An Envoy refuses something, or cannot take it, and keeps what it had.
    Rejected,
    /// It has everything, and no Envoy that could accept it.
    NoEnvoy,
    /// Its Beacon is not connected.
    #[default]
    Silent,
}

/// `GET /fleet`: how all hosts are, and those that have something in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Fleet {
    /// All hosts.
    pub hosts: HostCounts,
    /// By zone.
    pub zones: HostGroups,
    /// By what runs on them: `service`, or `service/cluster`.
    pub workloads: HostGroups,
    /// By the value of each label.
    pub labels: BTreeMap<String, HostGroups>,
    /// Beacons that could not connect, the latest first.
    pub refused: Vec<Refusal>,
}

/// Hosts that have something in common, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostGroups {
    /// The groups.
    pub groups: Vec<HostGroup>,
    /// How many groups there are besides: the largest ones are told, and those in which something is wrong.
    pub left_out: u64,
}

/// Hosts that have something in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostGroup {
    /// What they have in common; empty for hosts that say nothing about it.
    pub name: String,
    /// How they are.
    pub hosts: HostCounts,
}

/// How many hosts are how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostCounts {
    /// All of them.
    pub total: u64,
    /// Those whose Envoys have accepted everything.
    pub on_target: u64,
    /// Those to which something is on its way.
    pub lagging: u64,
    /// Those where an Envoy refuses something.
    pub rejected: u64,
    /// Those that have no Envoy.
    pub no_envoy: u64,
    /// Those whose Beacon is not connected.
    pub silent: u64,
}

/// `GET /latency`: how long what this Tower sends took until Beacons had applied it, by the heartbeats of the last
/// hour, the oldest first. They take the way of any change, from the source on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Latency {
    /// How often a probe is sent.
    pub interval_ms: u64,
    /// The probes.
    pub probes: Vec<ProbeOutcome>,
}

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProbeOutcome {
    /// When it was sent.
    pub sent_unix_ms: u64,
    /// How many Beacons have told that they have applied it.
    pub beacons: u64,
    /// How long half of them took, at most.
    pub p50_ms: f64,
    /// How long 99 of 100 took, at most.
    pub p99_ms: f64,
    /// How long the last one took.
    pub max_ms: f64,
}

/// `GET /hosts/{host}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostDetail {
    /// As in the list.
    #[serde(flatten)]
    pub host: Host,
    /// What it holds of the services with an assignment, by service.
    pub releases: Vec<Held>,
}

/// What a host holds of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Held {
    /// The service.
    pub service: String,
    /// The release that it holds, by its report; absent is what a service has without a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The release that it should hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The number of the version in the release that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The number of the version in the release that it should hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_version: Option<u64>,
    /// What its Envoys made of it.
    pub state: HeldState,
    /// In words, if there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Since when.
    pub since_unix_ms: u64,
    /// What was refused, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
}

/// `GET /hosts/{host}/active`: what was active for a host at a moment, by the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostActive {
    /// The host.
    pub host: String,
    /// The last entry of the log that counted then; 0 is before the first.
    pub index: u64,
    /// When that was written, in milliseconds since 1970; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_unix_ms: Option<u64>,
    /// The services that had a document for this host, by name.
    pub services: Vec<Active>,
}

/// What was active of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Active {
    /// The service.
    pub service: String,
    /// The number of the version.
    pub version: u64,
    /// The release that was made of it.
    pub release: String,
    /// The newest activation that had begun, if any is on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
}

/// What became of a release at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeldState {
    /// Every Envoy has accepted all of it.
    Accepted,
    /// Sent, and not yet accepted by every Envoy.
    Pending,
    /// There, and no Envoy is connected that could accept it.
    NoEnvoy,
    /// The Beacon has not said that it has it.
    NotReported,
    /// An Envoy refused it, for its content.
    Rejected,
    /// An Envoy could not take it, for a reason of its host: a port, a file.
    HostFault,
    /// The Beacon cannot use it: parts are missing, or it does not understand the assignment.
    Unusable,
    /// The Beacon is not connected, and was not before it should have had it.
    Silent,
    /// The Beacon was connected, and is not any more.
    Lost,
}

/// One type at one xDS client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientType {
    /// The node id of the client.
    pub client: String,
    /// The type.
    pub type_url: String,
    /// `synced`, `pending` (sent and not answered), `rejected`, `never_accepted`.
    pub state: TypeState,
    /// The version that was sent last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sent: String,
    /// The version that was accepted last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub accepted: String,
    /// Why the version after it was refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Resources that are kept from this client, because it cannot take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
}

/// How a client stands with a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TypeState {
    /// It has accepted what was sent last.
    Synced,
    /// It has not answered to what was sent last.
    Pending,
    /// It has refused what was sent last, and keeps what it had.
    Rejected,
    /// It has never accepted anything.
    NeverAccepted,
    /// Nothing was sent.
    NotSent,
}

/// `GET /releases/{release}/lacking`: a page, by host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lacking {
    /// The release.
    pub release: String,
    /// The service.
    pub service: String,
    /// The number of the version in it.
    pub version: u64,
    /// How many hosts should have it, and how far they are.
    pub hosts: super::activation::Progress,
    /// Those that should have it, and have not.
    pub lacking: Vec<Lack>,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A host that lacks a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lack {
    /// The host.
    pub host: String,
    /// Why.
    pub why: HeldState,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Since when.
    pub since_unix_ms: u64,
    /// What was refused, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
}
