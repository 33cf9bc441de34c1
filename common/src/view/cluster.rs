//! The Envoy cluster of a service that has no document.

use std::collections::HashMap;

use prost::Message;
use tower_proto::envoy::{
    envoy::{
        config::{
            cluster::v3::{
                Cluster, OutlierDetection,
                cluster::{ClusterDiscoveryType, CommonLbConfig, DiscoveryType, EdsClusterConfig},
            },
            core::v3::{Http1ProtocolOptions, Http2ProtocolOptions},
        },
        extensions::upstreams::http::v3::{
            HttpProtocolOptions,
            http_protocol_options::{UpstreamProtocolOptions, UseDownstreamHttpConfig},
        },
        r#type::v3::Percent,
    },
    google::protobuf::{Duration, UInt32Value},
};

use super::{ConfigSource, XdsResource, any, listener::config_source};

/// How long an Envoy collects changes of endpoints' health and weight before it uses them.
const MERGE_WINDOW: Duration = Duration { seconds: 0, nanos: 50_000_000 };

/// The cluster of a service, whose endpoints come by EDS under the same name.
pub fn default_cluster(service: &str) -> XdsResource {
    // The upstream is spoken to as the caller speaks: a registration does not tell its protocol, and gRPC
    // fails over HTTP/1.1.
    let protocol = HttpProtocolOptions {
        upstream_protocol_options: Some(UpstreamProtocolOptions::UseDownstreamProtocolConfig(
            UseDownstreamHttpConfig {
                http_protocol_options: Some(Http1ProtocolOptions::default()),
                http2_protocol_options: Some(Http2ProtocolOptions::default()),
                http3_protocol_options: None,
            },
        )),
        ..Default::default()
    };
    let cluster = Cluster {
        name: service.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(endpoints_from(ConfigSource::Aggregated)),
        connect_timeout: Some(Duration { seconds: 1, nanos: 0 }),
        // An endpoint that has left discovery gets no more traffic, whatever its health check says.
        ignore_health_on_host_removal: true,
        common_lb_config: Some(CommonLbConfig {
            // States are registered, not guessed: if all endpoints are draining or down, calling them
            // all the same is no remedy.
            healthy_panic_threshold: Some(Percent { value: 0.0 }),
            // Of a mass loss each second of Envoy's default costs requests.
            update_merge_window: Some(MERGE_WINDOW),
            ..Default::default()
        }),
        outlier_detection: Some(unreachable_endpoints()),
        typed_extension_protocol_options: HashMap::from([(
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions".to_owned(),
            any(&protocol),
        )]),
        ..Default::default()
    };
    XdsResource::new(service, &cluster)
}

/// Which endpoints are passed over, although they are registered: those that cannot be connected to, and
/// only those. What an endpoint answers is between it and its caller.
fn unreachable_endpoints() -> OutlierDetection {
    let count = |value| Some(UInt32Value { value });
    let seconds = |seconds| Some(Duration { seconds, nanos: 0 });
    let off = count(0);
    OutlierDetection {
        split_external_local_origin_errors: true,
        consecutive_local_origin_failure: count(3),
        enforcing_consecutive_local_origin_failure: count(100),
        // Never the last one: if nobody can be reached the fault may be this host's, and who is passed over
        // is not called at once when it is over.
        max_ejection_percent: count(99),
        interval: seconds(1),
        base_ejection_time: seconds(5),
        max_ejection_time: seconds(30),
        // Those who are gone are tried again one after the other, so that a retry finds another one.
        max_ejection_time_jitter: seconds(10),
        enforcing_consecutive_5xx: off,
        enforcing_consecutive_gateway_failure: off,
        enforcing_success_rate: off,
        enforcing_local_origin_success_rate: off,
        enforcing_failure_percentage: off,
        enforcing_failure_percentage_local_origin: off,
        ..Default::default()
    }
}

/// What is appended to a serialized cluster for an Envoy that asks elsewhere for its endpoints; nothing if
/// it asks on the aggregated stream, as clusters are composed. Serialized messages of one type merge when
/// they are concatenated, and of a `oneof` the last counts (protobuf, encoding guide).
pub fn suffix(source: ConfigSource) -> Vec<u8> {
    match source {
        ConfigSource::Aggregated => Vec::new(),
        ConfigSource::Sotw | ConfigSource::Delta => {
            Cluster { eds_cluster_config: Some(endpoints_from(source)), ..Default::default() }.encode_to_vec()
        }
    }
}

fn endpoints_from(source: ConfigSource) -> EdsClusterConfig {
    EdsClusterConfig { eds_config: Some(config_source(source)), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use tower_proto::envoy::envoy::config::core::v3::{
        api_config_source::ApiType, config_source::ConfigSourceSpecifier,
    };

    use super::*;

    #[test]
    fn the_suffix_replaces_the_source_of_endpoints_and_nothing_else() {
        let mut body = default_cluster("web").body.to_vec();
        let before = Cluster::decode(body.as_slice()).unwrap();
        body.extend(suffix(ConfigSource::Delta));
        let mut after = Cluster::decode(body.as_slice()).unwrap();
        let source = after.eds_cluster_config.take().and_then(|eds| eds.eds_config?.config_source_specifier);
        let Some(ConfigSourceSpecifier::ApiConfigSource(source)) = source else { panic!("{source:?}") };
        assert_eq!(source.api_type(), ApiType::DeltaGrpc);
        assert_eq!(after, Cluster { eds_cluster_config: None, ..before });
        assert!(suffix(ConfigSource::Aggregated).is_empty());
    }
}
