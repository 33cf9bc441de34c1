//! The resource types that are served, and what the protocol says of each.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use serde::Serialize;
use tower_common::view::ConfigSource;

/// A resource type. Sorts in the order in which one change is sent: whoever is referred to goes first
/// (xDS protocol, "Eventual consistency considerations").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ResourceType {
    /// `envoy.extensions.transport_sockets.tls.v3.Secret`
    #[serde(rename = "sds")]
    Secret,
    /// `envoy.service.runtime.v3.Runtime`
    #[serde(rename = "rtds")]
    Runtime,
    /// `envoy.config.cluster.v3.Cluster`
    #[serde(rename = "cds")]
    Cluster,
    /// `envoy.config.endpoint.v3.ClusterLoadAssignment`
    #[serde(rename = "eds")]
    Endpoint,
    /// `envoy.config.core.v3.TypedExtensionConfig`
    #[serde(rename = "ecds")]
    Extension,
    /// `envoy.config.listener.v3.Listener`
    #[serde(rename = "lds")]
    Listener,
    /// `envoy.config.route.v3.ScopedRouteConfiguration`
    #[serde(rename = "srds")]
    ScopedRoute,
    /// `envoy.config.route.v3.RouteConfiguration`
    #[serde(rename = "rds")]
    Route,
}

impl ResourceType {
    /// All of them, in the order in which one change is sent.
    pub const ALL: [Self; 8] = [
        Self::Secret,
        Self::Runtime,
        Self::Cluster,
        Self::Endpoint,
        Self::Extension,
        Self::Listener,
        Self::ScopedRoute,
        Self::Route,
    ];

    /// The type URL, in requests, responses and each `Any`.
    pub const fn url(self) -> &'static str {
        match self {
            Self::Secret => "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
            Self::Runtime => "type.googleapis.com/envoy.service.runtime.v3.Runtime",
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Endpoint => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Extension => "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::ScopedRoute => "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration",
            Self::Route => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        }
    }

    /// The type of this URL, if it is one that is served.
    pub fn from_url(url: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.url() == url)
    }

    /// The name of its discovery service, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "sds",
            Self::Runtime => "rtds",
            Self::Cluster => "cds",
            Self::Endpoint => "eds",
            Self::Extension => "ecds",
            Self::Listener => "lds",
            Self::ScopedRoute => "srds",
            Self::Route => "rds",
        }
    }

    /// Whether a state-of-the-world response holds everything that is subscribed to, and what it leaves
    /// out is gone (xDS protocol, "Grouping Resources into Responses"). These are also the types that
    /// know a wildcard ("How the client specifies what resources to return").
    pub const fn is_whole(self) -> bool {
        match self {
            Self::Cluster | Self::Listener | Self::ScopedRoute => true,
            Self::Secret | Self::Runtime | Self::Endpoint | Self::Extension | Self::Route => false,
        }
    }

    /// For how long newer content waits for the answer to what was sent last; `None` is as long as it
    /// takes. An Envoy withholds all its answers to CDS while a single cluster is warming, and one that
    /// never gets warm must not keep back the others' changes.
    pub(super) const fn longest_hold(self) -> Option<Duration> {
        match self {
            Self::Cluster => Some(Duration::from_millis(500)),
            Self::Secret
            | Self::Runtime
            | Self::Endpoint
            | Self::Extension
            | Self::Listener
            | Self::ScopedRoute
            | Self::Route => None,
        }
    }
}

/// What a stream is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All types, in order: the aggregated discovery service.
    Aggregated,
    /// One type, by a service of its own.
    Single(ResourceType),
}

impl Scope {
    /// As it is called in logs: `ads`, or the name of the type's service.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aggregated => "ads",
            Self::Single(kind) => kind.as_str(),
        }
    }

    /// Where a client that is served like this is to ask for what a resource refers to.
    pub(super) const fn config_source(self, mode: Mode) -> ConfigSource {
        match (self, mode) {
            (Self::Aggregated, _) => ConfigSource::Aggregated,
            (Self::Single(_), Mode::Sotw) => ConfigSource::Sotw,
            (Self::Single(_), Mode::Delta) => ConfigSource::Delta,
        }
    }
}

/// The two variants of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// State of the world: `StreamAggregatedResources`.
    Sotw,
    /// Incremental: `DeltaAggregatedResources`.
    Delta,
}

impl Mode {
    /// As it is called in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sotw => "sotw",
            Self::Delta => "delta",
        }
    }
}

impl EncodeLabelValue for ResourceType {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        self.as_str().encode(encoder)
    }
}

impl EncodeLabelValue for Mode {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        self.as_str().encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use prost::Name;
    use tower_proto::envoy::envoy::{
        config::{
            cluster::v3::Cluster,
            core::v3::TypedExtensionConfig,
            endpoint::v3::ClusterLoadAssignment,
            listener::v3::Listener,
            route::v3::{RouteConfiguration, ScopedRouteConfiguration},
        },
        extensions::transport_sockets::tls::v3::Secret,
        service::runtime::v3::Runtime,
    };

    use super::*;

    #[test]
    fn urls_are_those_of_the_messages() {
        let urls = [
            Secret::type_url(),
            Runtime::type_url(),
            Cluster::type_url(),
            ClusterLoadAssignment::type_url(),
            TypedExtensionConfig::type_url(),
            Listener::type_url(),
            ScopedRouteConfiguration::type_url(),
            RouteConfiguration::type_url(),
        ];
        assert_eq!(urls, ResourceType::ALL.map(ResourceType::url));
        assert_eq!(ResourceType::from_url(&urls[7]), Some(ResourceType::Route));
        assert_eq!(ResourceType::from_url("type.googleapis.com/x.Y"), None);
    }
}
