//! Questions to Tower over HTTP, and its answers, as JSON: the same types in Tower and in its clients.
//!
//! - [`problem`]: what every refusal looks like
//! - [`service`], [`version`], [`plan`], [`activation`], [`part`]: service documents, from upload to hosts
//! - [`fleet`], [`source`]: hosts and what they serve; where endpoints come from
//! - [`config`]: what a host serves its Envoys; [`log`]: the event log
//! - [`activity`]: what was decided, by whom and why
//! - [`access`]: tokens, and who may do what
//!
//! Times are milliseconds since the Unix epoch and end in `_unix_ms`; an absent one is not known, or never.
//! Hashes are in hexadecimal. What may grow is answered in pages: as long as there is a `next`, it is the
//! `cursor` of the next one. With the feature `openapi` every type knows its schema.

pub mod access;
pub mod activation;
pub mod activity;
pub mod config;
pub mod fleet;
pub mod log;
pub mod part;
pub mod plan;
pub mod problem;
pub mod service;
pub mod source;
pub mod version;

use serde::{Deserialize, Serialize};

pub use self::problem::{Code, Problem};

/// Where all paths begin.
pub const PREFIX: &str = "/api/v1";

/// The header that makes a request that is sent twice one: any text of 1 to 128 visible ASCII characters,
/// chosen anew for each change.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// The media type of documents.
pub const YAML: &str = "application/yaml";

/// Items in a page, if the request does not say.
pub const DEFAULT_LIMIT: usize = 100;

/// The largest page.
pub const MAX_LIMIT: usize = 1000;

/// The longest reason, in characters.
pub const MAX_REASON_CHARS: usize = 500;

/// The largest document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Why something is done; the whole body of requests that say nothing else. It need not be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// For those who read the activity log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub reason: Option<String>,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Changed {
    /// The index of its entry in the event log, which is also what `GET /activity/INDEX` takes. What is asked
    /// afterwards with `If-Match` has this as its tag. If nothing was to be done, the last entry about it.
    pub index: u64,
    /// For people, such as why nothing was to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
