//! Whose an Envoy resource is, by its name: `web` and `web/canary`, `inbound/web/8080`, `callers/web`.
//!
//! No service's name has a slash, so nobody can take the name of what is another's.

/// Where names begin of what concerns a service's own hosts.
const PLACES: [&str; 2] = ["inbound", "outbound"];

/// Where names begin of secrets that concern those who call a service.
const CALLERS: &str = "callers";

/// Whether this is a name for a cluster of a service: `web`, `web/SUBSET`, `inbound/web/PORT`,
/// `outbound/web/DEPENDENCY`.
pub(super) fn is_cluster_of(service: &str, name: &str) -> bool {
    match segments(name).as_slice() {
        [named] | [named, _] => *named == service,
        [place, named, _] => PLACES.contains(place) && *named == service,
        _ => false,
    }
}

/// Whether this is a name for a listener of a service: `inbound/web/PORT`, `outbound/web/DEPENDENCY`.
pub(super) fn is_listener_of(service: &str, name: &str) -> bool {
    matches!(segments(name).as_slice(), [place, named, _] if PLACES.contains(place) && *named == service)
}

/// Whether this is a name for a route configuration of a service: `inbound/web`, `inbound/web/PORT`.
pub(super) fn is_routes_of(service: &str, name: &str) -> bool {
    match segments(name).as_slice() {
        [place, named] | [place, named, _] => PLACES.contains(place) && *named == service,
        _ => false,
    }
}

/// Whether this is a name for a secret of a service: `inbound/web`, `inbound/web/ca`, `callers/web`.
pub(super) fn is_secret_of(service: &str, name: &str) -> bool {
    match segments(name).as_slice() {
        [place, named] | [place, named, _] => {
            (PLACES.contains(place) || *place == CALLERS) && *named == service
        }
        _ => false,
    }
}

fn segments(name: &str) -> Vec<&str> {
    let segments: Vec<&str> = name.splitn(4, '/').collect();
    if segments.iter().any(|segment| segment.is_empty()) { Vec::new() } else { segments }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_whose_they_are() {
        let check = |is: fn(&str, &str) -> bool, own: &[&str], not: &[&str]| {
            own.iter().for_each(|name| assert!(is("web", name), "{name}"));
            not.iter().for_each(|name| assert!(!is("web", name), "{name}"));
        };
        let foreign = ["", "/", "api", "api/web", "inbound", "inbound/api/web", "web/a/b", "inbound/web/a/b"];
        check(is_cluster_of, &["web", "web/canary", "inbound/web/8080", "outbound/web/db"], &foreign);
        check(is_cluster_of, &[], &["inbound/web", "web/", "callers/web/x"]);
        check(is_listener_of, &["inbound/web/8080", "outbound/web/db"], &foreign);
        check(is_listener_of, &[], &["web", "inbound/web", "egress"]);
        check(is_routes_of, &["inbound/web", "inbound/web/8080"], &foreign);
        check(is_routes_of, &[], &["web", "egress", "callers/web"]);
        check(is_secret_of, &["inbound/web", "inbound/web/ca", "callers/web", "outbound/web/db"], &foreign);
        check(is_secret_of, &[], &["web", "web/x"]);
        assert!(is_cluster_of("inbound", "inbound/web"), "a subset of a service with that name");
    }
}
