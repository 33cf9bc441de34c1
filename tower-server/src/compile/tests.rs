//! A document as a whole, and what all clusters and routes have.

use prost::Message;
use serde_json::json;
use tower_common::view::{cluster::default_cluster, grpc, route::default_virtual_host};
use tower_proto::{
    envoy::envoy::config::{cluster::v3::Cluster, route::v3::VirtualHost},
    v1::{ClusterPart, Kind, Side, VirtualHostPart, cluster_part::Failover},
};

use super::{
    compile,
    testing::{bundle, cluster, contains, effective, first_route, names, part, virtual_host},
};

/// Something of everything.
pub(super) const ALL: &str = "
inbound:
  ports: [{name: app, port: 8443, appPort: 8080}, {name: admin, port: 8444, appPort: 8081, protocol: tcp}]
  tls:
    mode: permissive
    certificate: {certificateFile: /etc/tls/web.pem, privateKeyFile: /etc/tls/web.key}
    clientCaFile: /etc/ca/ca.pem
  allowedCallers: {rules: [{name: ads, identities: [spiffe://mesh/ads]}]}
  rateLimits: {local: {requests: 100, interval: 1s}}
  accessLog: {mode: errors}
callers:
  subsets: {stable: {release: stable}, canary: {release: canary}}
  loadBalancer: {type: Maglev, hashPolicy: [{header: x-user}]}
  tls: {mode: permissive, caFile: /etc/ca/ca.pem, identities: [spiffe://mesh/web]}
  accessLog: {mode: all}
  routes:
  - name: rank
    matches: [{path: {value: /rank}}, {path: {value: /sort}, queryParams: [{name: q, type: Present}]}]
    backendRefs: [{subset: stable, weight: 95}, {subset: canary, weight: 5}]
    rateLimits: {local: {requests: 5, interval: 1s, mode: shadow}}
    timeouts: {request: 250ms}
  - {name: rest, mirror: {service: other}}
outbound:
  dependencies:
  - {service: features, overrides: {timeouts: {request: 80ms}}}
  - {service: db, listen: 3306}
";

#[test]
fn a_document_leads_to_these_parts() {
    let expected = [
        "Cluster inbound/web/admin",
        "Cluster inbound/web/app",
        "Cluster web",
        "Cluster web/canary",
        "Cluster web/stable",
        "VirtualHost inbound/web/app",
        "VirtualHost web",
        "Listener inbound/web/admin",
        "Listener inbound/web/app",
        "Listener outbound/web/db",
        "Extension dependency/features",
        "SecretReference callers/web/ca",
        "SecretReference inbound/web",
        "SecretReference inbound/web/ca",
    ];
    assert_eq!(names(&bundle(ALL)), expected);
    assert_eq!(names(&bundle("{}")), ["Cluster web", "VirtualHost web"]);
}

#[test]
fn the_same_document_has_the_same_bytes() {
    // Of a change of these bytes hosts hear only by a rollout: a release is named by its hash.
    let first = bundle(ALL).encode_to_vec();
    for _ in 0..20 {
        assert_eq!(bundle(ALL).encode_to_vec(), first);
    }
}

#[test]
fn a_document_that_says_nothing_is_as_good_as_none() {
    let bundle = bundle("{}");
    let ours: ClusterPart = part(&bundle, Kind::Cluster, "web");
    let ours = Cluster::decode(ours.cluster).unwrap();
    let default = Cluster::decode(default_cluster("web").body).unwrap();
    assert_eq!(ours, Cluster { eds_cluster_config: None, ..default });
    let ours: VirtualHostPart = part(&bundle, Kind::VirtualHost, "web");
    let default = VirtualHost::decode(default_virtual_host("web", "web").body).unwrap();
    let default = VirtualHost { domains: Vec::new(), ..default };
    assert_eq!(VirtualHost::decode(ours.virtual_host).unwrap(), default);
    assert_eq!(VirtualHost::decode(ours.grpc).unwrap().routes, grpc::virtual_host(default).routes);
    assert_eq!((ours.side, ours.route_config.as_str()), (Side::Callers.into(), ""));
}

#[test]
fn a_subset_is_a_cluster_of_the_same_kind() {
    let bundle = bundle(ALL);
    let of_subset: ClusterPart = part(&bundle, Kind::Cluster, "web/canary");
    assert_eq!(of_subset.labels, [("release".to_owned(), "canary".to_owned())].into());
    assert_eq!((of_subset.endpoints_of.as_str(), of_subset.shares.len()), ("web", 0));
    let mut all = cluster(&bundle, "web");
    all["name"] = json!("web/canary");
    assert_eq!(cluster(&bundle, "web/canary"), all);
}

#[test]
fn bytes_are_split_by_endpoints_not_by_clusters() {
    let bundle = bundle(
        "
callers:
  protocol: tcp
  subsets: {stable: {release: stable}, canary: {release: canary}}
  routes: [{name: all, backendRefs: [{subset: stable, weight: 90}, {subset: canary, weight: 10}, {weight: 1}]}]
",
    );
    assert_eq!(names(&bundle), ["Cluster web"], "and there are no routes");
    let part: ClusterPart = part(&bundle, Kind::Cluster, "web");
    let shares: Vec<_> =
        part.shares.iter().map(|share| (share.labels.values().next().cloned(), share.weight)).collect();
    assert_eq!(shares, [(Some("canary".into()), 10), (Some("stable".into()), 90), (None, 1)]);
    assert!(cluster(&bundle, "web").get("typed_extension_protocol_options").is_none());
}

#[test]
fn a_cluster_says_what_its_callers_may_expect() {
    let bundle = bundle(
        "
callers:
  protocol: grpc
  connectTimeout: 250ms
  panicThresholdPercent: 30
  locality: {mode: Failover, failoverThreshold: 70}
  circuitBreaker: {maxRequests: 2000, maxRetries: 7}
  outlierDetection: {consecutive5xx: 0, consecutiveLocalFailures: 3, interval: 1s, maxEjectionPercent: 20}
  healthChecks: [{http: {path: /health, expectedStatuses: [204]}, interval: 2s}]
  loadBalancer: {type: RoundRobin, slowStart: {window: 30s, minWeightPercent: 5}}
  routes:
  - {name: a, retry: {attempts: 2, budgetPercent: 20}}
  - {name: b, retry: {attempts: 2, budgetPercent: 12.5}}
",
    );
    let part: ClusterPart = part(&bundle, Kind::Cluster, "web");
    assert_eq!((part.failover(), part.overprovisioning_percent), (Failover::Zone, 143));
    let hundred = |count: u32| if count == 0 { 0 } else { 100 };
    contains(
        &cluster(&bundle, "web"),
        &json!({
            "type": "EDS",
            "connect_timeout": "0.250s",
            "ignore_health_on_host_removal": true,
            "common_lb_config": {"healthy_panic_threshold": {"value": 30.0}},
            "circuit_breakers": {"thresholds": [{
                "max_requests": 2000, "max_retries": 7, "retry_budget": {"budget_percent": {"value": 20.0}},
            }]},
            "outlier_detection": {
                "enforcing_consecutive_5xx": 0,
                "split_external_local_origin_errors": true,
                "consecutive_local_origin_failure": 3,
                "enforcing_consecutive_local_origin_failure": hundred(3),
                "enforcing_success_rate": 0,
                "interval": "1s",
                "max_ejection_percent": 20,
                "always_eject_one_host": true,
            },
            "health_checks": [{
                "timeout": "1s", "interval": "2s", "no_traffic_interval": "2s",
                "healthy_threshold": 2, "unhealthy_threshold": 3,
                "http_health_check": {
                    "host": "web", "path": "/health", "codec_client_type": "HTTP2",
                    "expected_statuses": [{"start": 204, "end": 205}],
                },
            }],
            "load_balancing_policy": {"policies": [{"typed_extension_config": {
                "name": "envoy.load_balancing_policies.round_robin",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin",
                    "slow_start_config": {"slow_start_window": "30s", "min_weight_percent": {"value": 5.0}},
                },
            }}]},
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "explicit_http_config": {"http2_protocol_options": {}},
                },
            },
        }),
    );
    let grpc = Cluster::decode(part.grpc).unwrap();
    assert!(grpc.load_balancing_policy.is_none() && grpc.health_checks.is_empty());
    assert_eq!((grpc.name.as_str(), grpc.circuit_breakers.is_some()), ("web", true));
}

#[test]
fn hashing_is_what_grpc_knows_of_it() {
    let of: ClusterPart = part(&bundle(ALL), Kind::Cluster, "web");
    let grpc = super::testing::json::<Cluster>(&of.grpc);
    assert_eq!(grpc["lb_policy"], "RING_HASH");
    contains(&first_route(ALL)["route"], &json!({"hash_policy": [{"header": {"header_name": "x-user"}}]}));
}

#[test]
fn grpc_gets_no_filters_no_queries_and_its_own_timeout() {
    let of: VirtualHostPart = part(&bundle(ALL), Kind::VirtualHost, "web");
    let grpc = super::testing::json::<VirtualHost>(&of.grpc);
    let routes = grpc["routes"].as_array().unwrap();
    let matches: Vec<_> = routes.iter().map(|route| route["match"].clone()).collect();
    assert_eq!(
        matches,
        [json!({"path": "/rank"}), json!({"prefix": "/rank/"}), json!({"prefix": "/"})],
        "a prefix by segments in two, and nothing that asks for a query"
    );
    assert_eq!(routes[0]["route"]["max_stream_duration"]["max_stream_duration"], "0.250s");
    for unknown in ["typed_per_filter_config", "path_separated_prefix", "request_mirror_policies", "metadata"]
    {
        assert!(!grpc.to_string().contains(unknown), "{unknown}");
    }
    assert!(grpc.get("domains").is_none());
}

#[test]
fn an_inbound_route_leads_to_the_application() {
    let bundle = bundle(
        "
inbound:
  ports: [{name: app, port: 8443, appPort: 8080}, {name: ops, port: 8444, appPort: 8081, appAddress: 10.0.0.9}]
  routes: [{name: metrics, matches: [{path: {value: /metrics}}], backendRefs: [{port: ops}]}, {name: rest}]
",
    );
    let host = virtual_host(&bundle, "inbound/web/app");
    let to: Vec<_> = (0..2).map(|n| host["routes"][n]["route"]["cluster"].clone()).collect();
    assert_eq!(to, ["inbound/web/ops", "inbound/web/app"]);
    assert!(host["routes"][1]["route"].get("retry_policy").is_none(), "the application is asked once");
    assert_eq!(host["domains"], json!(["*"]));
    let part: VirtualHostPart = part(&bundle, Kind::VirtualHost, "inbound/web/app");
    assert_eq!((part.side, part.route_config.as_str()), (Side::Inbound.into(), "inbound/web/app"));
    contains(
        &cluster(&bundle, "inbound/web/ops"),
        &json!({
            "type": "STATIC",
            "load_assignment": {"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {
                "address": "10.0.0.9", "port_value": 8081,
            }}}}]}]},
            "circuit_breakers": {"thresholds": [{"max_requests": u32::MAX}]},
        }),
    );
}

#[test]
fn a_release_for_another_name_is_about_that_name() {
    let effective = effective(ALL);
    let bundle = compile(&effective, "Web-2").unwrap();
    assert!(names(&bundle).contains(&"Listener inbound/Web-2/app".to_owned()));
    assert!(!String::from_utf8_lossy(&bundle.encode_to_vec()).contains("inbound/web/"));
}
