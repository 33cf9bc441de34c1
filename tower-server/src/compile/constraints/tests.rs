//! Values that Envoy refuses, and others.

use serde_json::{Value, json};

use super::check;
use crate::compile::messages::merge;

fn found(type_name: &str, message: &Value) -> String {
    let body = merge(type_name, &[], message).unwrap_or_else(|error| panic!("{error}: {message}"));
    check(type_name, &body).err().map(|error| error.to_string()).unwrap_or_default()
}

/// A cluster with this in it.
fn cluster(more: &Value) -> String {
    let mut cluster = json!({"name": "web", "connect_timeout": "1s"});
    for (key, value) in more.as_object().unwrap() {
        cluster[key] = value.clone();
    }
    found("envoy.config.cluster.v3.Cluster", &cluster)
}

/// A route with this in it.
fn route(more: &Value) -> String {
    let mut route = json!({"match": {"prefix": "/"}, "direct_response": {"status": 200}});
    for (key, value) in more.as_object().unwrap() {
        route[key] = value.clone();
    }
    found("envoy.config.route.v3.VirtualHost", &json!({"name": "web", "domains": ["*"], "routes": [route]}))
}

#[test]
fn what_is_right_passes() {
    assert_eq!(cluster(&json!({})), "");
    assert_eq!(route(&json!({"match": {"path_separated_prefix": "/a"}})), "");
    assert_eq!(cluster(&json!({"circuit_breakers": {"thresholds": [{"max_requests": 0}]}})), "");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let policy = |balancer: &str, more: Value| {
        let mut config = more;
        config["@type"] =
            json!(format!("type.googleapis.com/envoy.extensions.load_balancing_policies.{balancer}"));
        let policy = json!({"typed_extension_config": {"name": "x", "typed_config": config}});
        json!({"load_balancing_policy": {"policies": [policy]}})
    };
    let cases = [
        (cluster(&json!({"name": ""})), "name: it has 0 characters"),
        (cluster(&json!({"connect_timeout": "0s"})), "connect_timeout: it must be more than 0s"),
        (
            cluster(&json!({"outlier_detection": {"max_ejection_percent": 101}})),
            "outlier_detection.max_ejection_percent: it must be at most 100",
        ),
        (
            cluster(
                &json!({"health_checks": [{"interval": "1s", "timeout": "1s", "healthy_threshold": 1, "tcp_health_check": {}}]}),
            ),
            "health_checks[0].unhealthy_threshold: it is required",
        ),
        (
            cluster(
                &json!({"health_checks": [{"interval": "1s", "timeout": "1s", "healthy_threshold": 1, "unhealthy_threshold": 1}]}),
            ),
            "health_checks[0]: one of these is required: http_health_check",
        ),
        (cluster(&json!({"lb_policy": 99})), ""),
        (
            cluster(&policy("ring_hash.v3.RingHash", json!({"minimum_ring_size": 0}))),
            "minimum_ring_size: it must be at least 1",
        ),
        (
            cluster(&policy("maglev.v3.Maglev", json!({"table_size": 5_000_012}))),
            "table_size: it must be at most 5000011",
        ),
        (
            route(&json!({"match": {"path_separated_prefix": "/a/"}})),
            "routes[0].match.path_separated_prefix: it must fit",
        ),
        (route(&json!({"direct_response": {"status": 99}})), "status: it must be at least 200"),
        (
            route(&json!({"request_headers_to_remove": ["a\nb"]})),
            "request_headers_to_remove[0]: it cannot stand in a header",
        ),
        (
            route(&json!({"response_headers_to_add": [{"header": {"key": "a", "value": "b\nc"}}]})),
            "header.value: it cannot stand in a header",
        ),
        (route(&json!({"match": null})), "routes[0].match: it is required"),
        (
            found("envoy.config.route.v3.VirtualHost", &json!({"name": "web"})),
            "domains: it has 0 items, and must have 1 at least",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{expected}: {found}");
    }
}
