//! How a service calls others otherwise than their contracts say.

use tower_common::document::model::{Duration, Outbound};
use tower_proto::v1::DependencyPart;

use super::Parts;

/// Adds a part for each dependency that has something of its own.
pub(super) fn add(outbound: &Outbound, parts: &mut Parts) {
    for dependency in &outbound.dependencies {
        let timeouts = &dependency.overrides.timeouts;
        let part = DependencyPart {
            service: dependency.service.clone(),
            request_timeout_ms: timeouts.request.map(millis),
            backend_request_timeout_ms: timeouts.backend_request.map(millis),
            retry_attempts: dependency.overrides.retry.as_ref().map(|retry| retry.attempts),
        };
        if part != (DependencyPart { service: dependency.service.clone(), ..Default::default() }) {
            parts.extension(&format!("dependency/{}", dependency.service), &part);
        }
    }
}

/// More than 49 days are as good as 49 days.
fn millis(of: Duration) -> u32 {
    of.as_millis().try_into().unwrap_or(u32::MAX)
}
