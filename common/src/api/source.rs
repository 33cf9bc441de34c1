//! Where endpoints come from: sources, what they hold back, and what they do not believe. Also Beacons, as
//! connections.

use serde::{Deserialize, Serialize};

/// `GET /sources`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sources {
    /// The sources, in the order of their flags.
    pub sources: Vec<Source>,
}

/// A source, as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Source {
    /// Its id.
    pub id: String,
    /// The flag's value, without secrets.
    pub url: String,
    /// Nothing waits for it.
    pub optional: bool,
    /// Its state.
    pub state: SourceState,
    /// Why it is in this state, or what else should be known about it.
    pub reason: Option<String>,
    /// Since when it has been in this state.
    pub since_unix_ms: u64,
    /// How far it has been read.
    pub position: Option<Position>,
    /// How many services it knows.
    pub services: u64,
    /// How many endpoints it knows.
    pub endpoints: u64,
    /// What cannot be used at present; at most 100.
    pub problems: Vec<SourceProblem>,
    /// How much cannot be used at present.
    pub problem_count: u64,
    /// Totals since the start.
    pub counters: Counters,
    /// What stays published though it is registered no more.
    pub holds: Vec<Hold>,
    /// What became of what was held, since the start.
    pub guard: GuardCounters,
    /// What was found, and is not believed.
    pub quarantine: Option<Quarantine>,
}

/// The state of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// Never read in full.
    Loading,
    /// Read in full, and watched.
    Live,
    /// Read in full before, and out of touch now.
    Stale,
    /// Out of touch for longer than its sessions live.
    Lost,
}

/// How far a source has been read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Position {
    /// Which history the index counts in.
    pub incarnation: String,
    /// Everything up to it is known.
    pub index: u64,
}

/// Something that cannot be used, for people to find and mend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SourceProblem {
    /// Where: a znode, or a file.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Counters {
    /// Events that the source sent.
    pub events: u64,
    /// Complete readings.
    pub reloads: u64,
    /// Complete readings after the source had been out of touch.
    pub reconnects: u64,
    /// Members or files that turned out to be unusable.
    pub malformed: u64,
    /// Oddities in members that were used all the same.
    pub remarks: u64,
}

/// Endpoints that were held, by what became of them, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GuardCounters {
    /// All that were ever held.
    pub held: u64,
    /// Registered again.
    pub returned: u64,
    /// As many others had come.
    pub replaced: u64,
    /// Their time was over.
    pub expired: u64,
    /// An operator let them go.
    pub released: u64,
    /// Their address registered for another service.
    pub dropped: u64,
}

/// `GET /holds`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Holds {
    /// The holds.
    pub holds: Vec<Hold>,
}

/// A shrink that is held: endpoints that stay published though they are registered no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hold {
    /// Unique, also over restarts.
    pub id: String,
    /// The source.
    pub source: String,
    /// The service that shrank; none if the whole source did.
    pub service: Option<String>,
    /// When it began.
    pub since_unix_ms: u64,
    /// When the last of its endpoints passes, unless the source is out of touch then.
    pub ends_unix_ms: u64,
    /// How many endpoints were in service before.
    pub largest: u64,
    /// How many were left when it began.
    pub left: u64,
    /// How many endpoints it holds now.
    pub endpoint_count: u64,
    /// `service/host:port` of them; at most 100.
    pub endpoints: Vec<String>,
}

/// What `POST /holds/{id}/release` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Released {
    /// The hold.
    pub hold: String,
    /// How many endpoints this Tower held for it.
    pub released_endpoints: u64,
}

/// `GET /quarantines`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Quarantines {
    /// The quarantines.
    pub quarantines: Vec<Quarantine>,
}

/// What was found where something else is published, and is not believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Quarantine {
    /// The source.
    pub source: String,
    /// What happened, and what can be done.
    pub reason: String,
    /// What is published, and stays.
    pub published: Position,
    /// Whose contents were found, to be named by whoever adopts them.
    pub incarnation: String,
    /// The position that was found.
    pub index: u64,
    /// How many services adopting it would leave.
    pub services: u64,
    /// How many members or files.
    pub entries: u64,
}

/// `POST /sources/{id}/adopt`: believes what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Adopt {
    /// What was seen, so that nothing else is adopted: the `incarnation` of the quarantine. As `If-Match` it
    /// will do, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
    /// For those who read the activity log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub reason: Option<String>,
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Adopted {
    /// The source.
    pub source: String,
    /// Its position from now on.
    pub position: Position,
}

/// `GET /beacons`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Beacons {
    /// Those that are connected to this Tower, the longest connected first.
    pub beacons: Vec<Beacon>,
    /// The last 50 that could not connect, the newest first.
    pub refused: Vec<Refusal>,
}

/// A connected Beacon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Beacon {
    /// Its node id.
    pub node_id: String,
    /// Its zone, if it says so.
    pub zone: String,
    /// Its software version.
    pub build: String,
    /// The other end of its connection.
    pub peer: Option<String>,
    /// Since when it is connected.
    pub since_unix_ms: u64,
    /// When it last reported.
    pub reported_unix_ms: Option<u64>,
    /// The revision of this Tower that it has applied.
    pub revision: u64,
    /// What its xDS clients rejected, not yet followed by an acceptance.
    pub rejections: Vec<TypeRejection>,
    /// How many xDS clients it has.
    pub clients: u64,
    /// How long the last heartbeat took that it has reported, from Tower until it was in force there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_micros: Option<u64>,
}

/// An xDS client's rejection of a version of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TypeRejection {
    /// The client's node id.
    pub client: String,
    /// The type.
    pub type_url: String,
    /// The version that it rejected.
    pub version: String,
    /// What it said.
    pub error: String,
}

/// The same refusal of the same host to connect, once or more often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// How far the connection came: `handshake` or `hello`.
    pub stage: String,
    /// The other host.
    pub peer: Option<String>,
    /// The node that it says it is, once it has said so.
    pub node_id: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// When last.
    pub last_unix_ms: u64,
}
