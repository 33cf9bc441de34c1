//! The contract that an owner sets for those who call the service.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AccessLog, CallersTls, CircuitBreaker, Duration, HealthCheck, LoadBalancer, OutlierDetection, RateLimits,
    Route, is_default,
};

/// How others reach the service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Callers {
    /// What the service speaks. Absent: HTTP, in the version that the caller speaks
    /// (`use_downstream_protocol_config`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Endpoints with all of these labels, by name: an Envoy cluster each, `SERVICE/SUBSET`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub subsets: BTreeMap<String, BTreeMap<String, String>>,
    /// How an endpoint is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// Which endpoints are near enough.
    #[serde(default, skip_serializing_if = "is_default")]
    pub locality: Locality,
    /// How long connecting may take, at least 1 ms; absent is 1 s (`Cluster.connect_timeout`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Duration>,
    /// What a caller has open at most.
    #[serde(default, skip_serializing_if = "is_default")]
    pub circuit_breaker: CircuitBreaker,
    /// Endpoints that answer badly are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlier_detection: Option<OutlierDetection>,
    /// Whether endpoints are well; at most one. An empty list: none, also if the platform has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_checks: Option<Vec<HealthCheck>>,
    /// With fewer healthy endpoints than this, from 0 to 100, all are used; absent is 0: never
    /// (`healthy_panic_threshold`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic_threshold_percent: Option<u32>,
    /// What callers present, and what they believe.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls: CallersTls,
    /// In order. None: every request goes to the whole service. After the last route, what no route matched is
    /// answered with 404. Not for `tcp` and `tls`, but for one route with `backendRefs` alone, whose weights
    /// count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub routes: Vec<Route>,
    /// For all routes that have none of their own, on each caller's Envoy for itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rate_limits: RateLimits,
    /// What callers write about requests to the service.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access_log: AccessLog,
}

/// What is spoken at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1.
    Http,
    /// HTTP/2 without upgrade.
    Http2,
    /// gRPC: HTTP/2.
    Grpc,
    /// Bytes. Callers connect to a local port (`spec.outbound.dependencies[].listen` of theirs).
    Tcp,
    /// Bytes of which the application makes TLS itself: as `tcp`, and Envoy adds no TLS of its own.
    Tls,
}

/// Which endpoints are near enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Locality {
    /// Absent is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<LocalityMode>,
    /// `Failover`: with fewer healthy endpoints in the nearest place than this percentage, from 1 to 100,
    /// requests begin to go to the next; absent is 71 (`overprovisioning_factor`, of which this is the
    /// reciprocal).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover_threshold: Option<u32>,
}

/// How places count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LocalityMode {
    /// All endpoints are equal.
    #[default]
    None,
    /// The caller's zone first, as far as its share of the service's endpoints reaches, so that no zone gets
    /// too much (`zone_aware_lb_config`).
    ZoneAware,
    /// The caller's zone, if it fails the region, if it fails all others (priorities).
    Failover,
}

impl Protocol {
    /// Whether there are requests, and so routes.
    pub const fn is_http(self) -> bool {
        match self {
            Self::Http | Self::Http2 | Self::Grpc => true,
            Self::Tcp | Self::Tls => false,
        }
    }

    /// In a word, as it is serialized.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Http2 => "http2",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }
}
