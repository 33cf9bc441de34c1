//! Who may write which field: one table, for parsing, merging, the schemas and the web.

use super::Owner;

use Owner::{Platform, Security, Service};

/// Each field, or all fields below it, and who may write it. The first owner is the one it belongs to; a value
/// by another one is a default, which the first may override.
pub const FIELDS: &[(&str, &[Owner])] = &[
    ("apiVersion", &Owner::ALL),
    ("kind", &Owner::ALL),
    ("metadata", &Owner::ALL),
    ("spec.inbound.ports", &[Platform]),
    ("spec.inbound.tls", &[Security]),
    ("spec.inbound.allowedCallers", &[Security]),
    ("spec.inbound.rateLimits", &[Service, Platform]),
    ("spec.inbound.routes", &[Service]),
    ("spec.inbound.accessLog.mode", &[Service, Platform]),
    ("spec.inbound.accessLog.path", &[Platform]),
    ("spec.inbound.accessLog.fields", &[Platform]),
    ("spec.callers.protocol", &[Service]),
    ("spec.callers.subsets", &[Service]),
    ("spec.callers.loadBalancer", &[Service, Platform]),
    ("spec.callers.locality", &[Service, Platform]),
    ("spec.callers.connectTimeout", &[Service, Platform]),
    ("spec.callers.circuitBreaker", &[Service, Platform]),
    ("spec.callers.outlierDetection", &[Service, Platform]),
    ("spec.callers.healthChecks", &[Service, Platform]),
    ("spec.callers.panicThresholdPercent", &[Service, Platform]),
    ("spec.callers.tls", &[Security]),
    ("spec.callers.routes", &[Service]),
    ("spec.callers.rateLimits", &[Service, Platform]),
    ("spec.callers.accessLog.mode", &[Service, Platform]),
    ("spec.callers.accessLog.path", &[Platform]),
    ("spec.callers.accessLog.fields", &[Platform]),
    ("spec.outbound", &[Service]),
    ("spec.tiers", &[Service]),
    ("spec.patches", &[Platform]),
];

/// Who may write the field at this path, which has no indices; `None` if that depends on what is below it.
pub(super) fn writers(path: &str) -> Option<&'static [Owner]> {
    FIELDS.iter().find(|(field, _)| below(path, field)).map(|(_, writers)| *writers)
}

/// Whom the field at a path, such as that of a finding, belongs to; `None` for one with fields of several.
pub fn owner_of(path: &str) -> Option<Owner> {
    let mut plain = String::new();
    let mut depth = 0_u32;
    for letter in path.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    match writers(&plain)? {
        [Platform, Security, Service] => Some(Service),
        writers => writers.first().copied(),
    }
}

/// Whether a path is that of a field, or of one below it.
pub(super) fn below(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_belongs_to_whom_the_field_around_it_does() {
        for (path, owner) in [
            ("spec.callers.routes[0].timeouts.request", Some(Service)),
            ("spec.inbound.ports[1].port", Some(Platform)),
            ("spec.inbound.tls", Some(Security)),
            ("spec.callers.circuitBreaker.maxRetries", Some(Service)),
            (r#"spec.callers.subsets["a].b"].model"#, Some(Service)),
            ("spec.inbound", None),
            ("spec.callers.tlsx", None),
        ] {
            assert_eq!(owner_of(path), owner, "{path}");
        }
    }
}
