//! Leaving out endpoints that answer badly.

use tower_common::document::model::OutlierDetection;
use tower_proto::envoy::{envoy::config::cluster::v3, google::protobuf::BoolValue};

use super::convert::{duration, number};

/// Envoy's outlier detection. What the document does not speak of, such as the statistics of success rates,
/// ejects nobody.
pub(super) fn detection(of: &OutlierDetection) -> v3::OutlierDetection {
    let enforced =
        |count: Option<u32>, default: u32| number(if count.unwrap_or(default) == 0 { 0 } else { 100 });
    // Envoy wants no count of 0, and counts what is not enforced.
    let count = |count: Option<u32>| count.filter(|count| *count > 0).and_then(number);
    let local = of.consecutive_local_failures;
    v3::OutlierDetection {
        consecutive_5xx: count(of.consecutive5xx),
        enforcing_consecutive_5xx: enforced(of.consecutive5xx, 5),
        consecutive_gateway_failure: count(of.consecutive_gateway_errors),
        enforcing_consecutive_gateway_failure: enforced(of.consecutive_gateway_errors, 0),
        split_external_local_origin_errors: local.is_some_and(|count| count > 0),
        consecutive_local_origin_failure: count(local),
        enforcing_consecutive_local_origin_failure: enforced(local, 0),
        enforcing_success_rate: number(0),
        enforcing_local_origin_success_rate: number(0),
        interval: of.interval.map(duration),
        base_ejection_time: of.base_ejection_time.map(duration),
        max_ejection_time: of.max_ejection_time.map(duration),
        max_ejection_percent: of.max_ejection_percent.and_then(number),
        // Of two endpoints, ten percent is none.
        always_eject_one_host: Some(BoolValue { value: true }),
        ..Default::default()
    }
}
