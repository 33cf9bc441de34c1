//! Listeners, who may call, and TLS.

use serde_json::{Value, json};

use crate::compile::testing::{bundle, cluster, contains, listener, part, secret, virtual_host};
use tower_proto::v1::{Kind, ListenerPart, SecretPart, Side};

const PORT: &str = "ports: [{name: app, port: 8443, appPort: 8080}]";
const FILES: &str = "certificate: {certificateFile: /etc/tls/web.pem, privateKeyFile: /etc/tls/web.key}";

fn inbound(of: &str) -> Value {
    listener(&bundle(&format!("inbound: {{{PORT}, {of}}}")), "inbound/web/app")
}

fn manager(listener: &Value) -> Value {
    listener["filter_chains"][0]["filters"][0]["typed_config"].clone()
}

#[test]
fn plain_http() {
    let listener = inbound("routes: []");
    contains(
        &listener,
        &json!({
            "name": "inbound/web/app",
            "address": {"socket_address": {"address": "0.0.0.0", "port_value": 8443}},
            "traffic_direction": "INBOUND",
        }),
    );
    let chains = listener["filter_chains"].as_array().unwrap();
    assert_eq!((chains.len(), listener.get("listener_filters")), (1, None));
    let manager = manager(&listener);
    contains(
        &manager,
        &json!({
            "rds": {"route_config_name": "inbound/web/app"},
            "stream_idle_timeout": "0s",
            "server_header_transformation": "PASS_THROUGH",
            "normalize_path": true,
        }),
    );
    assert_eq!(manager["rds"].get("config_source"), None, "the view says where");
    let filters: Vec<_> =
        manager["http_filters"].as_array().unwrap().iter().map(|filter| filter["name"].clone()).collect();
    let names = ["rbac", "local_ratelimit", "router"].map(|name| json!(format!("envoy.filters.http.{name}")));
    assert_eq!(filters, names);
}

#[test]
fn changes_of_limits_and_callers_leave_the_listener_alone() {
    let plain = inbound("routes: []");
    for of in [
        "rateLimits: {local: {requests: 1, interval: 1s}}",
        "allowedCallers: {rules: []}",
        "routes: [{name: a, directResponse: {status: 200}, rateLimits: {local: {requests: 1, interval: 1s}}}]",
    ] {
        assert_eq!(inbound(of), plain, "{of}");
    }
}

#[test]
fn tls_beside_plain() {
    let listener = inbound(&format!("tls: {{mode: permissive, {FILES}, clientCaFile: /etc/ca/ca.pem}}"));
    contains(
        &listener,
        &json!({
            "listener_filters": [{"name": "envoy.filters.listener.tls_inspector"}],
            "filter_chains": [
                {
                    "filter_chain_match": {"transport_protocol": "tls"},
                    "transport_socket": {"typed_config": {
                        "require_client_certificate": true,
                        "common_tls_context": {
                            "tls_params": {
                                "tls_minimum_protocol_version": "TLSv1_2",
                                "tls_maximum_protocol_version": "TLSv1_3",
                            },
                            "tls_certificate_sds_secret_configs": [{"name": "inbound/web"}],
                            "validation_context_sds_secret_config": {"name": "inbound/web/ca"},
                            "alpn_protocols": ["h2", "http/1.1"],
                        },
                    }},
                },
                {"filter_chain_match": {"transport_protocol": "raw_buffer"}},
            ],
        }),
    );
    assert_eq!(listener["filter_chains"][1].get("transport_socket"), None);
}

#[test]
fn tls_alone() {
    let listener = inbound(&format!("tls: {{mode: strict, {FILES}, minVersion: TLSv1_3}}"));
    let chains = listener["filter_chains"].as_array().unwrap();
    assert_eq!((chains.len(), listener.get("listener_filters")), (1, None));
    let context = &chains[0]["transport_socket"]["typed_config"];
    assert_eq!(context["common_tls_context"]["tls_params"]["tls_minimum_protocol_version"], "TLSv1_3");
    assert_eq!(context.get("require_client_certificate"), None, "there is nothing to compare one with");
    assert!(!inbound(&format!("tls: {{mode: off, {FILES}}}")).to_string().contains("transport_socket"));
}

#[test]
fn secrets_are_paths() {
    let bundle = bundle(&format!(
        "{{inbound: {{{PORT}, tls: {{mode: strict, {FILES}, clientCaFile: /etc/ca/ca.pem}}}}, \
          callers: {{tls: {{mode: strict, {FILES}, caFile: /etc/ca/mesh.pem}}}}}}"
    ));
    contains(
        &secret(&bundle, "inbound/web"),
        &json!({"name": "inbound/web", "tls_certificate": {
            "certificate_chain": {"filename": "/etc/tls/web.pem"},
            "private_key": {"filename": "/etc/tls/web.key"},
            "watched_directory": {"path": "/etc/tls"},
        }}),
    );
    contains(
        &secret(&bundle, "inbound/web/ca"),
        &json!({"validation_context": {
            "trusted_ca": {"filename": "/etc/ca/ca.pem"}, "watched_directory": {"path": "/etc/ca"},
        }}),
    );
    let sides = ["inbound/web", "inbound/web/ca", "callers/web", "callers/web/ca"]
        .map(|name| part::<SecretPart>(&bundle, Kind::SecretReference, name).side());
    assert_eq!(sides, [Side::Inbound, Side::Inbound, Side::Callers, Side::Callers]);
}

#[test]
fn callers_speak_tls_with_those_who_take_it() {
    let tls = |mode: &str| {
        let of = format!(
            "callers: {{tls: {{mode: {mode}, {FILES}, caFile: /etc/ca/ca.pem, \
             identities: ['spiffe://mesh/web', web.internal]}}}}"
        );
        cluster(&bundle(&of), "web")
    };
    let context = json!({"typed_config": {
        "sni": "web",
        "common_tls_context": {
            "tls_certificate_sds_secret_configs": [{"name": "callers/web"}],
            "combined_validation_context": {
                "default_validation_context": {"match_typed_subject_alt_names": [
                    {"san_type": "URI", "matcher": {"exact": "spiffe://mesh/web"}},
                    {"san_type": "DNS", "matcher": {"exact": "web.internal"}},
                ]},
                "validation_context_sds_secret_config": {"name": "callers/web/ca"},
            },
        },
    }});
    contains(&tls("strict"), &json!({ "transport_socket": context }));
    let matched = |mode: &str| json!({"match": {"tower.inbound.tls": mode}, "transport_socket": context});
    let permissive = tls("permissive");
    contains(&permissive, &json!({"transport_socket_matches": [matched("permissive"), matched("strict")]}));
    assert_eq!(permissive.get("transport_socket"), None, "the others are spoken to plainly");
    assert!(!tls("off").to_string().contains("transport_socket"));
}

fn allowed(of: &str) -> Value {
    let bundle = bundle(&format!("inbound: {{{PORT}, allowedCallers: {of}}}"));
    virtual_host(&bundle, "inbound/web/app")["typed_per_filter_config"]["envoy.filters.http.rbac"]["rbac"]
        .clone()
}

#[test]
fn who_may_call() {
    contains(
        &allowed(
            "{rules: [{name: ads, identities: ['spiffe://mesh/ads', 'spiffe://mesh/ml/*'], addresses: [10.0.0.0/8, '::1'], \
             methods: [GET, HEAD], paths: [{value: /rank}]}]}",
        ),
        &json!({"rules": {"policies": {"ads": {
            "permissions": [{"and_rules": {"rules": [
                {"or_rules": {"rules": [
                    {"header": {"name": ":method", "string_match": {"exact": "GET"}}},
                    {"header": {"name": ":method", "string_match": {"exact": "HEAD"}}},
                ]}},
                {"or_rules": {"rules": [
                    {"url_path": {"path": {"exact": "/rank"}}},
                    {"url_path": {"path": {"prefix": "/rank/"}}},
                ]}},
            ]}}],
            "principals": [
                {"authenticated": {"principal_name": {"exact": "spiffe://mesh/ads"}}},
                {"authenticated": {"principal_name": {"prefix": "spiffe://mesh/ml/"}}},
                {"direct_remote_ip": {"address_prefix": "10.0.0.0", "prefix_len": 8}},
                {"direct_remote_ip": {"address_prefix": "::1", "prefix_len": 128}},
            ],
        }}}}),
    );
    let nobody = allowed("{rules: []}");
    assert_eq!(nobody["rules"].get("policies"), None, "rules without a policy allow nobody");
    let shadow = allowed("{mode: shadow, rules: [{name: all}]}");
    assert_eq!(shadow.get("rules"), None);
    contains(
        &shadow["shadow_rules"]["policies"]["all"],
        &json!({"permissions": [{"any": true}], "principals": [{"any": true}]}),
    );
}

#[test]
fn rules_for_paths_mean_one_path() {
    let by_path = inbound("allowedCallers: {rules: [{name: a, paths: [{value: /public}]}]}");
    assert_eq!(manager(&by_path)["path_with_escaped_slashes_action"], "REJECT_REQUEST");
    let by_name = inbound("allowedCallers: {rules: [{name: a}]}");
    assert_eq!(manager(&by_name).get("path_with_escaped_slashes_action"), None);
}

#[test]
fn bytes() {
    let of = format!(
        "{{inbound: {{ports: [{{name: db, port: 3307, appPort: 3306, protocol: tcp}}], \
          tls: {{mode: permissive, {FILES}}}, allowedCallers: {{rules: [{{name: a}}]}}, \
          rateLimits: {{local: {{requests: 9, interval: 1s}}}}, accessLog: {{mode: errors}}}}}}"
    );
    let of_bytes = |of: &str| listener(&bundle(of), "inbound/web/db");
    let found = of_bytes(&of);
    let chains = found["filter_chains"].as_array().unwrap();
    assert_eq!(chains.len(), 2);
    for chain in chains {
        contains(
            &chain["filters"],
            &json!([
                {"name": "envoy.filters.network.rbac", "typed_config": {"rules": {}}},
                {"name": "envoy.filters.network.local_ratelimit", "typed_config": {
                    "token_bucket": {"max_tokens": 9},
                }},
                {"name": "envoy.filters.network.tcp_proxy", "typed_config": {
                    "cluster": "inbound/web/db", "idle_timeout": "0s", "max_connect_attempts": 2,
                    "access_log": [{"filter": {"response_flag_filter": {}}}],
                }},
            ]),
        );
    }
    let shadow = of.replace("interval: 1s", "interval: 1s, mode: shadow");
    assert!(!of_bytes(&shadow).to_string().contains("local_ratelimit"));
}

#[test]
fn a_dependency_has_a_local_port() {
    let bundle = bundle("outbound: {dependencies: [{service: db, listen: 3306}, {service: web2}]}");
    contains(
        &listener(&bundle, "outbound/web/db"),
        &json!({
            "address": {"socket_address": {"address": "127.0.0.1", "port_value": 3306}},
            "filter_chains": [{"filters": [{"typed_config": {"cluster": "db"}}]}],
        }),
    );
    assert_eq!(part::<ListenerPart>(&bundle, Kind::Listener, "outbound/web/db").side(), Side::Outbound);
}
