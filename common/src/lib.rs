//! What Tower and Beacons share. Opens no socket, and knows neither ZooKeeper nor actix.
//!
//! - [`resource`], [`store`], [`digest`]: the facts, the same in Tower and Beacon
//! - [`delivery`], [`standing`]: putting a stream of responses together again, whole or not at all, and
//!   never back in time; [`served`]: what a Tower leaves out
//! - [`view`]: what one Envoy sees of a store; [`audience`]: which hosts something is for
//! - [`document`]: what owners write about services
//! - [`snapshot`]: a store on disk; [`sealed`], [`durable`]: what makes such a file whole or noticed
//! - [`tls`]: certificates, and noticing that they changed
//! - [`api`]: questions to Tower over HTTP, and its answers
//! - [`clock`], [`backoff`], [`config`], [`check`], [`telemetry`], [`process`]: what every process needs

pub mod api;
pub mod audience;
pub mod backoff;
pub mod check;
pub mod clock;
pub mod config;
pub mod delivery;
pub mod digest;
pub mod document;
pub mod durable;
pub mod period;
pub mod process;
pub mod resource;
pub mod sealed;
pub mod served;
pub mod snapshot;
pub mod standing;
pub mod store;
pub mod telemetry;
pub mod tls;
pub mod view;

/// The feature level that this build speaks: which kinds, audiences and formats it understands.
pub const FEATURE_LEVEL: u32 = 1;

/// A scope's canonical name: the default scope is the empty string, on the wire and in keys.
pub fn canonical_scope(scope: &str) -> &str {
    if scope == "default" { "" } else { scope }
}
