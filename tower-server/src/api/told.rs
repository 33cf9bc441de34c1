//! What Tower's parts know, in the words of the API.

pub mod activations;
pub mod activity;
pub mod findings;
pub mod fleet;
pub mod services;
pub mod sources;
pub mod tokens;
pub mod versions;

use std::fmt::Write;

use tower_common::audience::AudienceSpec;
use tower_proto::v1;

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // A string takes all.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// An audience as people write it.
pub fn audience(audience: Option<&v1::Audience>) -> String {
    let spec = audience.map_or_else(|| Ok(AudienceSpec::everyone()), AudienceSpec::of);
    spec.map_or_else(|unknown| unknown.to_string(), |spec| spec.to_string())
}

/// A text, if there is one.
pub fn some(text: &str) -> Option<String> {
    Some(text).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A time, if there is one.
pub fn time(unix_ms: u64) -> Option<u64> {
    Some(unix_ms).filter(|time| *time != 0)
}

/// Who is in a stamp.
pub fn author(stamp: &v1::Stamp) -> String {
    stamp.actor.as_ref().map_or("", |actor| &actor.name).to_owned()
}
