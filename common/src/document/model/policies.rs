//! How a service's endpoints are chosen, watched and spared.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Duration, is_default};

/// How an endpoint is chosen (`Cluster.load_balancing_policy`). Merged as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoadBalancer {
    /// Absent is `LeastRequest`.
    #[serde(default, rename = "type", skip_serializing_if = "is_default")]
    pub kind: LoadBalancerType,
    /// `LeastRequest`: the best of how many at random, at least 2; absent is 2 (`choice_count`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice_count: Option<u32>,
    /// `RingHash`: entries of the ring at least; absent is 1024, up to 262,144 (`minimum_ring_size`): each costs
    /// every Envoy memory and time at every change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ring_size: Option<u64>,
    /// `RingHash`: entries of the ring at most; absent is 262,144 (`maximum_ring_size`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ring_size: Option<u64>,
    /// `Maglev`: entries of the table, a prime up to 5,000,011; absent is 65,537 (`table_size`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_size: Option<u64>,
    /// `RingHash` and `Maglev`: what the hash is of, for all routes that do not say otherwise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hash_policy: Vec<HashPolicy>,
    /// `RoundRobin` and `LeastRequest`: new endpoints get less at first (`slow_start_config`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_start: Option<SlowStart>,
}

/// A way to choose an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoadBalancerType {
    /// One after the other (`round_robin`).
    RoundRobin,
    /// The one with fewer active requests, of some at random (`least_request`).
    #[default]
    LeastRequest,
    /// By consistent hashing on a ring (`ring_hash`).
    RingHash,
    /// By consistent hashing with a table (`maglev`).
    Maglev,
    /// At random (`random`).
    Random,
}

/// What a hash is of; exactly one of `header`, `cookie`, `queryParam` and `sourceIp`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HashPolicy {
    /// The value of this header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The value of a cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<HashCookie>,
    /// The value of this parameter of the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_param: Option<String>,
    /// `true`: the address of who connects to the caller's Envoy (`connection_properties.source_ip`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub source_ip: bool,
    /// If this gives a hash, those after it are not asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminal: bool,
}

/// A cookie that a hash is of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HashCookie {
    /// Its name.
    pub name: String,
    /// If it is missing, Envoy sets one that lives so long; `0s`: as long as the browser. Absent: it sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Duration>,
    /// The path of a cookie that Envoy sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// New endpoints get less at first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SlowStart {
    /// For how long, at least 1 ms (`slow_start_window`).
    pub window: Duration,
    /// What part of its weight an endpoint has at least, from 1 to 100; absent is 10 (`min_weight_percent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_weight_percent: Option<u32>,
}

/// What a caller's Envoy has open towards the service at most, in each cluster of it for itself
/// (`circuit_breakers.thresholds`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CircuitBreaker {
    /// Connections; absent is 1024 (`max_connections`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// Requests that wait for a connection; absent is 1024 (`max_pending_requests`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pending_requests: Option<u32>,
    /// Active requests; absent is 1024 (`max_requests`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u32>,
    /// Active further tries; absent is 3 (`max_retries`). Without effect where a route has a `budgetPercent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
}

/// Endpoints that answer badly are left out for a while (`outlier_detection`). Absent: none is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutlierDetection {
    /// After so many 5xx in a row; 0 is never, absent is 5 (`consecutive_5xx`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive5xx: Option<u32>,
    /// After so many 502, 503 and 504 in a row; 0 and absent is never (`consecutive_gateway_failure`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_gateway_errors: Option<u32>,
    /// After so many failures to connect, resets and timeouts in a row, which are then told apart from 5xx;
    /// 0 and absent: they count as 5xx (`split_external_local_origin_errors`,
    /// `consecutive_local_origin_failure`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_local_failures: Option<u32>,
    /// How often it is looked whether endpoints may come back; absent is 10 s, at least 1 ms (`interval`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// How long an endpoint is left out the first time; each time adds as much; absent is 30 s
    /// (`base_ejection_time`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_ejection_time: Option<Duration>,
    /// How long at most, not shorter than the first time; absent is 5 minutes, or `baseEjectionTime` if that
    /// is longer (`max_ejection_time`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ejection_time: Option<Duration>,
    /// How many of the endpoints at most, from 0 to 100; one is always allowed; absent is 10
    /// (`max_ejection_percent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ejection_percent: Option<u32>,
}

/// Each caller's Envoy asks each endpoint whether it is well; exactly one of `http`, `tcp` and `grpc`
/// (`health_checks`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HealthCheck {
    /// By a request (`http_health_check`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpCheck>,
    /// By connecting (`tcp_health_check`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpCheck>,
    /// By `grpc.health.v1.Health/Check` (`grpc_health_check`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcCheck>,
    /// How often; absent is 5 s, at least 100 ms (`interval`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// How long an answer may take; absent is 1 s, at least 1 ms (`timeout`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// So many in a row to be well again; absent is 2, at least 1 (`healthy_threshold`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_threshold: Option<u32>,
    /// So many failures in a row to be ill; absent is 3, at least 1 (`unhealthy_threshold`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_threshold: Option<u32>,
}

/// Health by a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpCheck {
    /// Begins with `/` (`path`).
    pub path: String,
    /// Absent is the service's name (`host`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Statuses that are well; none is 200 (`expected_statuses`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub expected_statuses: Vec<u16>,
}

/// Health by connecting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TcpCheck {}

/// Health by gRPC's own protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrpcCheck {
    /// The gRPC service that is asked about; absent is the server as a whole (`service_name`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

/// How many requests are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RateLimits {
    /// By each Envoy for itself (the filter local_ratelimit, by route).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalRateLimit>,
}

/// A bucket of tokens, of which each request takes one; without one it is answered with 429. Merged as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LocalRateLimit {
    /// Tokens that each interval adds, at least 1 (`token_bucket.tokens_per_fill`).
    pub requests: u32,
    /// At least 50 ms (`token_bucket.fill_interval`).
    pub interval: Duration,
    /// Tokens that the bucket holds, at least `requests`; absent is `requests` (`token_bucket.max_tokens`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Absent is `enforce`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Mode,
}

/// Whether a rule is obeyed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is.
    #[default]
    Enforce,
    /// It is only counted how it would have been (`filter_enabled` without `filter_enforced`; RBAC's
    /// `shadow_rules`).
    Shadow,
}

/// What is written about requests (`access_log`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessLog {
    /// Which requests; absent is `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<AccessLogMode>,
    /// The file; absent is Envoy's standard output. The platform's to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Fields of a line of JSON, with Envoy's command operators; none is a line of Tower's own. The platform's
    /// to say.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fields: BTreeMap<String, String>,
}

/// Which requests are written about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessLogMode {
    /// None.
    #[default]
    Off,
    /// Those with a status of 500 or above, and those that were not answered.
    Errors,
    /// All.
    All,
}
