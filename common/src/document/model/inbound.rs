//! What happens on the service's own hosts, before a request reaches the application.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AccessLog, InboundTls, Method, Mode, PathMatch, Protocol, RateLimits, Route, is_default};

/// The service's own side. Without ports there is no listener, and callers reach the application directly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Inbound {
    /// Where Envoy listens, and where the application does: a listener each, `inbound/SERVICE/PORT`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ports: Vec<Port>,
    /// TLS at all ports.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls: InboundTls,
    /// Who may call; absent is everyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_callers: Option<AllowedCallers>,
    /// For all routes that have none of their own; each host's Envoy for itself. At ports of `tcp` and `tls`:
    /// of connections.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rate_limits: RateLimits,
    /// In order; none: everything goes to the application's port behind that of the listener. After the last
    /// route, what no route matched is answered with 404. For ports of HTTP.
    #[serde(default, skip_serializing_if = "is_default")]
    pub routes: Vec<Route>,
    /// What is written about requests to the service, on its hosts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access_log: AccessLog,
}

/// A well-known port, and the application's behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Port {
    /// Unique in the document; what `backendRefs[].port` names.
    pub name: String,
    /// Where Envoy listens.
    pub port: u16,
    /// The address at which it listens, IPv4 or IPv6; absent is `0.0.0.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Where the application listens.
    pub app_port: u16,
    /// The application's address, IPv4 or IPv6; absent is `127.0.0.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_address: Option<String>,
    /// What the application speaks; absent is what `spec.callers.protocol` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

/// Who may call (the filter rbac). Others get 403, or are disconnected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AllowedCallers {
    /// Absent is `enforce`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Mode,
    /// A call is allowed if any rule fits; no rule: nobody may call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rules: Vec<CallerRule>,
}

/// A rule fits if the caller and the request do (`rules.policies`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallerRule {
    /// Unique in the list; Envoy's policy name, as in its logs.
    pub name: String,
    /// Any of these names is in the caller's certificate, as a URI or DNS name; a `*` at the end stands for any
    /// rest (`authenticated.principal_name`). None, and no `addresses`: any caller.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identities: Vec<String>,
    /// Or the caller's address is in any of these ranges, such as `10.0.0.0/8` (`direct_remote_ip`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub addresses: Vec<String>,
    /// Any of these methods; none is any. Ports of HTTP only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub methods: Vec<Method>,
    /// Any of these paths; none is any (`url_path`). Ports of HTTP only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub paths: Vec<PathMatch>,
}
