//! The activity log: who changed what, when, why and from where.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::Change;

/// `GET /activity`: a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Activity {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// In which order entries come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
}

/// One command that was accepted. Also the data of the stream's events, whose ids are the indexes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Entry {
    /// Its place in the log.
    pub index: u64,
    /// When, by the clock of the Tower that took the command.
    pub time_unix_ms: u64,
    /// Who.
    pub author: String,
    /// By which credential: the id of a token, `cert:` and a name in a client certificate, or `tower`.
    pub credential: String,
    /// From where.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The command in a word, such as `activate`.
    pub command: String,
    /// Its id: the `Idempotency-Key`, or one that Tower chose.
    pub command_id: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What came of it.
    pub events: Vec<Event>,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Such as `version_uploaded`.
    pub kind: String,
    /// The service, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// In a sentence.
    pub summary: String,
    /// Its fields.
    pub data: Value,
    /// What was otherwise before, of documents and assignments: with `GET /activity/{index}`, or
    /// `include=changes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
}
