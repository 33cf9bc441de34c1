//! Asking endpoints whether they are well.

use tower_common::document::model::{Duration, HealthCheck, Protocol};
use tower_proto::envoy::envoy::{
    config::core::v3::{
        self,
        health_check::{GrpcHealthCheck, HealthChecker, HttpHealthCheck, TcpHealthCheck},
    },
    r#type::v3::{CodecClientType, Int64Range},
};

use super::{
    convert::{duration, number},
    protocol::is_http2,
};

/// Envoy's health checks.
pub(super) fn checks(service: &str, of: &[HealthCheck], protocol: Option<Protocol>) -> Vec<v3::HealthCheck> {
    of.iter().filter_map(|check| one(service, check, protocol)).collect()
}

fn one(service: &str, of: &HealthCheck, protocol: Option<Protocol>) -> Option<v3::HealthCheck> {
    let checker = if let Some(http) = &of.http {
        let codec = if is_http2(protocol) { CodecClientType::Http2 } else { CodecClientType::Http1 };
        HealthChecker::HttpHealthCheck(HttpHealthCheck {
            host: http.host.clone().unwrap_or_else(|| service.to_owned()),
            path: http.path.clone(),
            expected_statuses: http.expected_statuses.iter().map(|status| only(*status)).collect(),
            codec_client_type: codec.into(),
            ..Default::default()
        })
    } else if let Some(grpc) = &of.grpc {
        HealthChecker::GrpcHealthCheck(GrpcHealthCheck {
            service_name: grpc.service.clone().unwrap_or_default(),
            ..Default::default()
        })
    } else {
        of.tcp.as_ref()?;
        HealthChecker::TcpHealthCheck(TcpHealthCheck::default())
    };
    let interval = duration(of.interval.unwrap_or(Duration::from_millis(5000)));
    Some(v3::HealthCheck {
        timeout: Some(duration(of.timeout.unwrap_or(Duration::from_millis(1000)))),
        interval: Some(interval),
        // Envoy would ask the endpoints of a service that is not called only once a minute.
        no_traffic_interval: Some(interval),
        healthy_threshold: number(of.healthy_threshold.unwrap_or(2)),
        unhealthy_threshold: number(of.unhealthy_threshold.unwrap_or(3)),
        health_checker: Some(checker),
        ..Default::default()
    })
}

fn only(status: u16) -> Int64Range {
    Int64Range { start: status.into(), end: i64::from(status) + 1 }
}
