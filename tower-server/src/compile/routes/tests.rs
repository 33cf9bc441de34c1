//! Routes of documents, and Envoy's.

use serde_json::{Value, json};

use crate::compile::testing::{bundle, contains, first_route, virtual_host};

fn route(of: &str) -> Value {
    first_route(&format!("callers: {{routes: [{{name: a, {of}}}]}}"))
}

fn check(of: &str, expected: &Value) {
    contains(&route(of), expected);
}

#[test]
fn matches() {
    check(
        "matches: [{path: {value: /rank}}]",
        &json!({"name": "a", "match": {"path_separated_prefix": "/rank"}}),
    );
    check("matches: [{path: {value: /rank/}}]", &json!({"match": {"path_separated_prefix": "/rank"}}));
    check("matches: [{path: {value: /}}]", &json!({"match": {"prefix": "/"}}));
    check("matches: [{path: {type: Exact, value: /a/}}]", &json!({"match": {"path": "/a/"}}));
    check(
        "matches: [{path: {type: RegularExpression, value: '/a[0-9]+'}}]",
        &json!({"match": {"safe_regex": {"regex": "/a[0-9]+"}}}),
    );
    check(
        "matches: [{method: POST, headers: [{name: x, value: '1'}, {name: y, type: Prefix, value: b}, \
         {name: z, type: RegularExpression, value: 'c+'}, {name: w, type: Present}]}]",
        &json!({"match": {"prefix": "/", "headers": [
            {"name": ":method", "string_match": {"exact": "POST"}},
            {"name": "x", "string_match": {"exact": "1"}},
            {"name": "y", "string_match": {"prefix": "b"}},
            {"name": "z", "string_match": {"safe_regex": {"regex": "c+"}}},
            {"name": "w", "present_match": true},
        ]}}),
    );
    check(
        "matches: [{queryParams: [{name: q, value: '1'}, {name: r, type: Present}]}]",
        &json!({"match": {"query_parameters": [
            {"name": "q", "string_match": {"exact": "1"}},
            {"name": "r", "present_match": true},
        ]}}),
    );
}

#[test]
fn each_match_is_a_route_of_the_same_name_and_limit() {
    let host = virtual_host(
        &bundle(
            "
callers:
  rateLimits: {local: {requests: 9, interval: 1s, mode: shadow}}
  routes:
  - name: a
    matches: [{path: {value: /a}}, {path: {value: /b}}]
    rateLimits: {local: {requests: 5, burst: 50, interval: 250ms}}
  - {name: rest}
",
        ),
        "web",
    );
    let routes = host["routes"].as_array().unwrap();
    let limits: Vec<_> = routes
        .iter()
        .map(|route| (route["name"].as_str().unwrap(), route["metadata"]["filter_metadata"]["tower"].clone()))
        .collect();
    let limit = |name: &str| json!({ "limit": name });
    assert_eq!(limits, [("a", limit("a")), ("a", limit("a")), ("rest", limit("*"))]);
    contains(
        &host["typed_per_filter_config"]["envoy.filters.http.local_ratelimit"],
        &json!({
            "stat_prefix": "web",
            "always_consume_default_token_bucket": false,
            "filter_enabled": {"default_value": {"numerator": 100}},
            "filter_enforced": {"default_value": {"numerator": 100}},
            "rate_limits": [{"actions": [{"metadata": {
                "descriptor_key": "limit",
                "metadata_key": {"key": "tower", "path": [{"key": "limit"}]},
                "source": "ROUTE_ENTRY",
            }}]}],
            "descriptors": [
                {
                    "entries": [{"key": "limit", "value": "*"}],
                    "token_bucket": {"max_tokens": 9, "tokens_per_fill": 9, "fill_interval": "1s"},
                    "shadow_mode": true,
                },
                {
                    "entries": [{"key": "limit", "value": "a"}],
                    "token_bucket": {"max_tokens": 50, "tokens_per_fill": 5, "fill_interval": "0.250s"},
                },
            ],
        }),
    );
}

#[test]
fn destinations() {
    let subsets = "subsets: {s: {v: '1'}, t: {v: '2'}}";
    let to = |refs: &str| {
        first_route(&format!("callers: {{{subsets}, routes: [{{name: a, backendRefs: {refs}}}]}}"))["route"]
            .clone()
    };
    assert_eq!(to("[]")["cluster"], "web");
    assert_eq!(to("[{}]")["cluster"], "web");
    assert_eq!(to("[{subset: s, weight: 7}]")["cluster"], "web/s");
    contains(
        &to("[{subset: s, weight: 90}, {subset: t}, {weight: 0}]"),
        &json!({"weighted_clusters": {"clusters": [
            {"name": "web/s", "weight": 90}, {"name": "web/t", "weight": 1}, {"name": "web", "weight": 0},
        ]}}),
    );
    contains(
        &route("mirror: {service: other, subset: canary, percent: 12.5}")["route"],
        &json!({"request_mirror_policies": [{
            "cluster": "other/canary",
            "runtime_fraction": {"default_value": {"numerator": 1250, "denominator": "TEN_THOUSAND"}},
        }]}),
    );
    contains(
        &route("mirror: {}")["route"],
        &json!({"request_mirror_policies": [{"cluster": "web", "runtime_fraction": {"default_value": {
            "numerator": 10_000,
        }}}]}),
    );
}

#[test]
fn timeouts() {
    let silent = route("matches: []")["route"].clone();
    assert_eq!(silent["timeout"], "0s", "Envoy's own would be 15 s");
    assert_eq!(silent.get("idle_timeout"), None);
    contains(
        &route("timeouts: {request: 250ms, backendRequest: 100ms, idle: 1m30s}")["route"],
        &json!({
            "timeout": "0.250s", "idle_timeout": "90s",
            "retry_policy": {"per_try_timeout": "0.100s", "retry_on": "connect-failure", "num_retries": 1},
        }),
    );
    let tried_once = route("timeouts: {backendRequest: 100ms}, retry: {attempts: 0}")["route"].clone();
    assert_eq!(tried_once["retry_policy"], json!({"per_try_timeout": "0.100s", "num_retries": 0}));
}

#[test]
fn retries() {
    let another_host = json!([{
        "name": "envoy.retry_host_predicates.previous_hosts",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
        },
    }]);
    contains(
        &route("matches: []")["route"]["retry_policy"],
        &json!({"retry_on": "connect-failure", "num_retries": 1, "retry_host_predicate": another_host}),
    );
    assert_eq!(route("retry: {attempts: 0}")["route"].get("retry_policy"), None);
    contains(
        &route("retry: {attempts: 2}")["route"]["retry_policy"],
        &json!({"retry_on": "connect-failure,refused-stream,reset-before-request", "num_retries": 2}),
    );
    contains(
        &route("retry: {attempts: 3, retryOn: [reset, '503', '504'], backoff: {base: 10ms, max: 1s}}")["route"]
            ["retry_policy"],
        &json!({
            "retry_on": "reset,retriable-status-codes", "retriable_status_codes": [503, 504],
            "num_retries": 3, "retry_back_off": {"base_interval": "0.010s", "max_interval": "1s"},
            "retry_host_predicate": another_host, "host_selection_retry_max_attempts": 5,
        }),
    );
}

#[test]
fn rewrites_and_answers() {
    check(
        "matches: [{path: {value: /a}}], rewrite: {prefix: /b, host: other.mesh}",
        &json!({"route": {"prefix_rewrite": "/b", "host_rewrite_literal": "other.mesh"}}),
    );
    check(
        "matches: [{path: {value: /a}}], rewrite: {prefix: /}",
        &json!({"route": {"regex_rewrite": {"pattern": {"regex": "^/a/?"}, "substitution": "/"}}}),
    );
    check(
        r"rewrite: {path: '/all\1'}",
        &json!({"route": {"regex_rewrite": {"pattern": {"regex": "^/.*$"}, "substitution": r"/all\\1"}}}),
    );
    check(
        r"rewrite: {regex: {pattern: '^/(v[0-9])/', substitution: '/api/\1/'}}",
        &json!({"route": {"regex_rewrite": {"pattern": {"regex": "^/(v[0-9])/"}, "substitution": r"/api/\1/"}}}),
    );
    check(
        "redirect: {scheme: https, host: b.example.com, port: 8443, path: /new, status: 308}",
        &json!({"redirect": {
            "https_redirect": true, "host_redirect": "b.example.com", "port_redirect": 8443,
            "path_redirect": "/new", "response_code": "PERMANENT_REDIRECT",
        }}),
    );
    check("redirect: {host: b}", &json!({"redirect": {"host_redirect": "b", "response_code": "FOUND"}}));
    check(
        "matches: [{path: {value: /a}}], redirect: {prefix: /}",
        &json!({"redirect": {"regex_rewrite": {"pattern": {"regex": "^/a/?"}, "substitution": "/"}}}),
    );
    check(
        "directResponse: {status: 503, body: later}",
        &json!({"direct_response": {"status": 503, "body": {"inline_string": "later"}}}),
    );
}

#[test]
fn header_changes() {
    check(
        "requestHeaders: {set: [{name: x, value: '100%'}], add: [{name: y, value: ''}], remove: [z]}, \
         responseHeaders: {remove: [server]}",
        &json!({
            "request_headers_to_add": [
                {"header": {"key": "x", "value": "100%%"}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"},
                {"header": {"key": "y"}, "keep_empty_value": true},
            ],
            "request_headers_to_remove": ["z"],
            "response_headers_to_remove": ["server"],
        }),
    );
}

#[test]
fn hashes() {
    let own = "callers: {loadBalancer: {type: RingHash, hashPolicy: [{header: h}]}, routes: [{name: a, \
               hashPolicy: [{cookie: {name: c, ttl: 0s, path: /}, terminal: true}, {queryParam: q}, \
               {sourceIp: true}]}]}";
    contains(
        &first_route(own)["route"],
        &json!({"hash_policy": [
            {"cookie": {"name": "c", "ttl": "0s", "path": "/"}, "terminal": true},
            {"query_parameter": {"name": "q"}},
            {"connection_properties": {"source_ip": true}},
        ]}),
    );
    let other = "callers: {loadBalancer: {type: Random, hashPolicy: [{header: h}]}}";
    assert_eq!(first_route(other)["route"].get("hash_policy"), None, "nobody asks for it");
}
