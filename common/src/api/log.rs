//! The event log, as one Tower sees it.

use serde::{Deserialize, Serialize};

/// `GET /log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogStatus {
    /// Where it is: `embedded`, or the address of a ZooKeeper.
    pub kind: String,
    /// Which history the indexes count in.
    pub incarnation: String,
    /// The index of the last entry that this Tower has folded.
    pub index: u64,
    /// The BLAKE3 hash of the state up to that entry, if it was asked for with `?digest=true`: at the same entry it
    /// is the same on every Tower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The Towers that share it, by the id of their run.
    pub towers: Vec<String>,
    /// Why nothing can be written, or why folding has stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}
