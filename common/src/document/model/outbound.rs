//! What the service calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Duration, is_default};

/// What the service calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outbound {
    /// A service is named once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dependencies: Vec<Dependency>,
}

/// A service that this one calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dependency {
    /// Its name.
    pub service: String,
    /// What is otherwise than that service's contract says, for all of its routes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overrides: Overrides,
    /// For a service of `tcp` or `tls`: the port of 127.0.0.1 at which Envoy listens for it, from 1024 on, and
    /// unique among what runs on a host (listener `outbound/SERVICE/DEPENDENCY`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<u16>,
}

/// What a caller may set for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Overrides {
    /// How long a request may take.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeouts: TimeoutOverrides,
    /// How often it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryOverride>,
}

/// As [`Timeouts`](super::Timeouts); absent is as the contract says, `0s` is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimeoutOverrides {
    /// With all tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Duration>,
    /// Each try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_request: Option<Duration>,
}

/// As [`Retry`](super::Retry), whose conditions stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryOverride {
    /// How often after the first try; 0 is never.
    pub attempts: u32,
}
