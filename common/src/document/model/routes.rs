//! Routes: which requests, where to, and how patiently. On the callers' side they are part of a virtual host
//! for the service; on the inbound side, of one for its application.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    DirectResponse, Duration, HashPolicy, HeaderChanges, Percent, RateLimits, Redirect, Rewrite, is_default,
};

/// One route. The first route in the list with a match decides, as in Envoy; not the most specific one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Route {
    /// Unique in its list; Envoy's `Route.name`, and what `traffic set --route` names.
    pub name: String,
    /// Any of these; none is every request. Each is a Route of Envoy's.
    #[serde(default, skip_serializing_if = "is_default")]
    pub matches: Vec<RouteMatch>,
    /// Changes of path and host (`prefix_rewrite`, `regex_rewrite`, `host_rewrite_literal`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// An answer that sends the client elsewhere (`Route.redirect`), instead of a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// An answer without a backend (`Route.direct_response`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_response: Option<DirectResponse>,
    /// Changes of the request's headers (`request_headers_to_add`, `_to_remove`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_headers: Option<HeaderChanges>,
    /// Changes of the answer's headers (`response_headers_to_add`, `_to_remove`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_headers: Option<HeaderChanges>,
    /// Where to, by weight. On the callers' side: subsets; none is the whole service. On the inbound side: a
    /// port of the application; none is the port at which the request came in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub backend_refs: Vec<BackendRef>,
    /// A copy of some requests goes elsewhere, and what is answered is thrown away
    /// (`request_mirror_policies`). Callers' side only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
    /// How long a request may take.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeouts: Timeouts,
    /// Whether a request is tried again; absent is no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How many requests this route takes, on each Envoy for itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rate_limits: RateLimits,
    /// What consistent hashing goes by, in place of the load balancer's own `hashPolicy`
    /// (`RouteAction.hash_policy`). Callers' side only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hash_policy: Vec<HashPolicy>,
}

/// A condition: all that is given must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RouteMatch {
    /// The path without its query; absent is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathMatch>,
    /// The request's method (the header `:method`); absent is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// All of these headers (`RouteMatch.headers`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub headers: Vec<HeaderMatch>,
    /// All of these parameters of the query (`RouteMatch.query_parameters`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub query_params: Vec<QueryMatch>,
}

/// A condition on the path. Case matters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathMatch {
    /// Absent is `PathPrefix`.
    #[serde(default, rename = "type", skip_serializing_if = "is_default")]
    pub kind: PathType,
    /// Begins with `/`. As a regular expression, it must fit the whole path.
    pub value: String,
}

/// How a path is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PathType {
    /// The same path (`path`).
    Exact,
    /// By segments: `/rank` fits `/rank` and `/rank/a`, but not `/ranking` (`path_separated_prefix`; `/` is
    /// `prefix`).
    #[default]
    PathPrefix,
    /// In RE2's syntax (`safe_regex`).
    RegularExpression,
}

/// A request's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "each is its own name")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Trace,
    Patch,
}

/// A condition on a header.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeaderMatch {
    /// Its name, in which case does not matter.
    pub name: String,
    /// Absent is `Exact`.
    #[serde(default, rename = "type", skip_serializing_if = "is_default")]
    pub kind: MatchType,
    /// What it is compared with; absent with `Present`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A condition on a parameter of the query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueryMatch {
    /// Its name, in which case matters.
    pub name: String,
    /// Absent is `Exact`.
    #[serde(default, rename = "type", skip_serializing_if = "is_default")]
    pub kind: MatchType,
    /// What it is compared with; absent with `Present`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MatchType {
    /// The same value (`string_match.exact`).
    #[default]
    Exact,
    /// It begins so (`string_match.prefix`).
    Prefix,
    /// In RE2's syntax, the whole value (`string_match.safe_regex`).
    RegularExpression,
    /// There is one, whatever its value (`present_match`).
    Present,
}

/// Where a part of the requests goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackendRef {
    /// Callers' side: a subset of the service; absent is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset: Option<String>,
    /// Inbound side: the name of one of `spec.inbound.ports`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// How much of the sum of all weights of the route; absent is 1, 0 is nothing. Up to 1,000,000
    /// (`weighted_clusters.clusters.weight`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Where copies go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mirror {
    /// Another service; absent is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// A subset of that service; absent is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset: Option<String>,
    /// How many of the requests; absent is 100 (`runtime_fraction`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<Percent>,
}

/// How long requests may take. Absent, and `0s`, is as long as they want.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timeouts {
    /// From the end of the request to the end of the answer, with all tries (`RouteAction.timeout`, which
    /// Envoy would set to 15 s). Not for streams that are to live long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Duration>,
    /// Each try (`retry_policy.per_try_timeout`). Not longer than `request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_request: Option<Duration>,
    /// Without a byte in either direction (`RouteAction.idle_timeout`; absent: Envoy's 5 minutes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
}

/// Whether a request is tried again. Never on the same endpoint, if there is another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// How often after the first try; 0 is never (`retry_policy.num_retries`).
    pub attempts: u32,
    /// After what: conditions as in Envoy's `x-envoy-retry-on` and `x-envoy-retry-grpc-on`, and statuses in
    /// quotes, such as `"503"` (`retry_on`, `retriable_status_codes`). Absent is [`Retry::DEFAULT_ON`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry_on: Vec<String>,
    /// At most so many of the service's active requests are further tries
    /// (`circuit_breakers.thresholds.retry_budget`): of a whole service, so its routes say the same. Absent:
    /// `circuitBreaker.maxRetries` holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_percent: Option<Percent>,
    /// The pause before a further try; absent is Envoy's, 25 ms growing to 250 ms (`retry_back_off`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
}

/// Pauses that grow, and are jittered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backoff {
    /// The first, at least 1 ms (`base_interval`).
    pub base: Duration,
    /// The longest, not shorter than the first; absent is ten times the first (`max_interval`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
}

impl Retry {
    /// After failures with which the application has not seen the request, so that it is safe for any.
    pub const DEFAULT_ON: [&str; 3] = ["connect-failure", "refused-stream", "reset-before-request"];

    /// What it is tried again after.
    pub fn conditions(&self) -> Vec<&str> {
        if self.retry_on.is_empty() {
            Self::DEFAULT_ON.to_vec()
        } else {
            self.retry_on.iter().map(String::as_str).collect()
        }
    }
}

impl BackendRef {
    /// Its weight, also if it is not written.
    pub fn weight(&self) -> u32 {
        self.weight.unwrap_or(1)
    }
}

impl Route {
    /// The weights by subset, in which the empty name is the whole service.
    pub fn weights(&self) -> BTreeMap<&str, u32> {
        self.backend_refs
            .iter()
            .map(|backend| (backend.subset.as_deref().unwrap_or_default(), backend.weight()))
            .collect()
    }
}
