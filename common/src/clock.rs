//! The only place that reads a clock. Logic takes times as arguments.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time, for intervals.
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Milliseconds since the Unix epoch, for people to read. Nothing is decided by it.
#[allow(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn unix_millis() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
