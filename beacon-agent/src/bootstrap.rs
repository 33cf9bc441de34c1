//! The bootstrap configuration of a client that takes everything else from the Beacon: an Envoy, or gRPC.

use serde_json::{Map, Value, json};

use tower_common::view::{BEACON, LOCAL};

use crate::{
    options::{BootstrapOptions, XdsMode},
    xds::socket::grpc_path,
};

/// How many streams an Envoy may have to the Beacon.
const MAX_STREAMS: u32 = 65_536;

/// The configuration as JSON, which is YAML as well, so Envoy reads it from a file of either ending.
pub fn bootstrap(options: &BootstrapOptions) -> Value {
    let (api_type, aggregated) = match options.mode {
        XdsMode::Delta => ("DELTA_GRPC", true),
        XdsMode::Sotw => ("GRPC", true),
        XdsMode::DeltaPerType => ("DELTA_GRPC", false),
        XdsMode::SotwPerType => ("GRPC", false),
        XdsMode::Grpc => return grpc(options),
    };
    let mut metadata = Map::new();
    if let Some(port) = options.egress_port {
        metadata.insert("tower.egress_port".to_owned(), port.into());
    }
    let beacon = json!({
        "api_type": api_type,
        "transport_api_version": "V3",
        "set_node_on_first_message_only": true,
        "grpc_services": [{ "envoy_grpc": { "cluster_name": BEACON } }],
    });
    let mut dynamic = Map::new();
    let source = if aggregated {
        dynamic.insert("ads_config".to_owned(), beacon);
        json!({ "ads": {}, "resource_api_version": "V3" })
    } else {
        json!({ "api_config_source": beacon, "resource_api_version": "V3" })
    };
    let mut static_clusters = Vec::new();
    let mut cluster_manager = json!({ "enable_deferred_cluster_creation": true });
    if let Some(service) = &options.local_service {
        // Envoy insists that it is static, and compares its zones with those of each other cluster.
        static_clusters.push(json!({
            "name": LOCAL,
            "type": "EDS",
            "connect_timeout": "1s",
            "eds_cluster_config": { "service_name": format!("{LOCAL}/{service}"), "eds_config": source },
        }));
        cluster_manager["local_cluster_name"] = LOCAL.into();
    }
    dynamic.insert("cds_config".to_owned(), source.clone());
    dynamic.insert("lds_config".to_owned(), source);
    let beacon = match &options.xds_socket {
        Some(path) => json!({ "pipe": { "path": path } }),
        None => socket_address(&options.xds_address.ip().to_string(), options.xds_address.port()),
    };
    static_clusters.push(json!({
        "name": BEACON,
        "type": "STATIC",
        "connect_timeout": "1s",
        // Without aggregation an Envoy opens a stream for the endpoints of each cluster, and by default no
        // more than 1,024 at a time.
        "circuit_breakers": { "thresholds": [{
            "max_requests": MAX_STREAMS,
            "max_pending_requests": MAX_STREAMS,
        }] },
        "load_assignment": {
            "cluster_name": BEACON,
            "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": beacon } }] }],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/\
                          envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": { "http2_protocol_options": {
                    // A Beacon that hangs is noticed, and the stream opened anew.
                    "connection_keepalive": { "interval": "30s", "timeout": "10s" },
                } },
            },
        },
    }));
    json!({
        "node": {
            "id": options.node_id,
            "cluster": options.node_cluster,
            "locality": { "zone": options.zone },
            "metadata": metadata,
        },
        "admin": { "address": socket_address("127.0.0.1", options.admin_port) },
        "dynamic_resources": dynamic,
        "static_resources": { "clusters": static_clusters },
        // A cluster's statistics, and its load balancer on each worker, cost much more memory than the
        // cluster; most clusters of a mesh are never called from this host.
        "deferred_stat_options": { "enable_deferred_creation_stats": true },
        "cluster_manager": cluster_manager,
    })
}

/// For gRPC without a proxy (gRFC A27). It is told of deletions, and fails a target that is gone.
fn grpc(options: &BootstrapOptions) -> Value {
    let server = match &options.xds_socket {
        Some(path) => format!("unix:{}", grpc_path(path).display()),
        None => options.xds_address.to_string(),
    };
    json!({
        "xds_servers": [{
            "server_uri": server,
            "channel_creds": [{ "type": "insecure" }],
            "server_features": ["xds_v3"],
        }],
        "node": { "id": options.node_id, "cluster": options.node_cluster },
    })
}

fn socket_address(address: &str, port: u16) -> Value {
    json!({ "socket_address": { "address": address, "port_value": port } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(mode: XdsMode) -> BootstrapOptions {
        BootstrapOptions {
            node_id: "n".into(),
            node_cluster: "c".into(),
            xds_address: "127.0.0.1:1234".parse().unwrap(),
            xds_socket: None,
            mode,
            admin_port: 0,
            local_service: None,
            zone: String::new(),
            egress_port: Some(8000),
        }
    }

    #[test]
    fn the_flags_are_in_it() {
        let config = bootstrap(&options(XdsMode::Sotw));
        assert_eq!(config["node"]["metadata"]["tower.egress_port"], 8000);
        assert_eq!(config["dynamic_resources"]["ads_config"]["api_type"], "GRPC");
        assert!(config.to_string().contains(r#""port_value":1234"#));
    }

    #[test]
    fn a_socket_takes_the_place_of_the_address() {
        let options =
            BootstrapOptions { xds_socket: Some("/run/xds.sock".into()), ..options(XdsMode::Delta) };
        let config = bootstrap(&options).to_string();
        assert!(config.contains(r#""pipe":{"path":"/run/xds.sock"}"#) && !config.contains("1234"));
    }

    #[test]
    fn grpc_has_a_bootstrap_of_its_own() {
        let config = bootstrap(&options(XdsMode::Grpc));
        assert_eq!(config["xds_servers"][0]["server_uri"], "127.0.0.1:1234");
        assert_eq!(config["node"]["id"], "n");
    }

    #[test]
    fn neighbours_are_a_static_cluster_whose_endpoints_are_asked_for() {
        let local = BootstrapOptions {
            local_service: Some("web".into()),
            zone: "a".into(),
            ..options(XdsMode::Delta)
        };
        let config = bootstrap(&local);
        assert_eq!(config["cluster_manager"]["local_cluster_name"], LOCAL);
        assert_eq!(config["node"]["locality"]["zone"], "a");
        let clusters = config["static_resources"]["clusters"].as_array().unwrap();
        assert_eq!(clusters[0]["eds_cluster_config"]["service_name"], "tower:local/web");
        assert_eq!((clusters.len(), &clusters[1]["name"]), (2, &json!(BEACON)));
    }

    #[test]
    fn without_aggregation_each_type_has_a_source_of_its_own() {
        let config = bootstrap(&options(XdsMode::DeltaPerType));
        let dynamic = &config["dynamic_resources"];
        assert!(dynamic.get("ads_config").is_none());
        for kind in ["cds_config", "lds_config"] {
            assert_eq!(dynamic[kind]["api_config_source"]["api_type"], "DELTA_GRPC");
        }
    }
}
