//! What Envoy's messages refer to by name.

use std::{collections::BTreeSet, sync::Arc};

use prost::{DecodeError, Message, Name};
use tower_proto::envoy::{
    envoy::{
        config::{
            cluster::v3::Cluster,
            core::v3::{TransportSocket, transport_socket},
            listener::v3::{FilterChain, Listener, filter::ConfigType},
            route::v3::{
                RouteAction, RouteConfiguration, VirtualHost, route::Action, route_action::ClusterSpecifier,
            },
        },
        extensions::{
            filters::network::{
                http_connection_manager::v3::{
                    HttpConnectionManager, http_connection_manager::RouteSpecifier,
                },
                tcp_proxy::v3::{TcpProxy, tcp_proxy},
            },
            transport_sockets::tls::v3::{
                CommonTlsContext, DownstreamTlsContext, UpstreamTlsContext,
                common_tls_context::ValidationContextType,
            },
        },
    },
    google::protobuf::Any,
};

/// The names that a resource refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Envoy clusters.
    pub clusters: BTreeSet<Arc<str>>,
    /// Route configurations.
    pub routes: BTreeSet<Arc<str>>,
    /// Secrets.
    pub secrets: BTreeSet<Arc<str>>,
}

impl References {
    /// Those of a cluster.
    ///
    /// # Errors
    /// If what is nested in it cannot be decoded.
    pub fn of_cluster(cluster: &Cluster) -> Result<Self, DecodeError> {
        let mut found = Self::default();
        let matched = cluster.transport_socket_matches.iter().filter_map(|m| m.transport_socket.as_ref());
        for socket in cluster.transport_socket.iter().chain(matched) {
            found.note_socket(socket)?;
        }
        Ok(found)
    }

    /// Those of a virtual host.
    pub fn of_virtual_host(host: &VirtualHost) -> Self {
        let mut found = Self::default();
        found.note_host(host);
        found
    }

    /// Those of a route configuration.
    pub fn of_routes(routes: &RouteConfiguration) -> Self {
        let mut found = Self::default();
        routes.virtual_hosts.iter().for_each(|host| found.note_host(host));
        found
    }

    /// Those of a listener.
    ///
    /// # Errors
    /// If what is nested in it cannot be decoded.
    pub fn of_listener(listener: &Listener) -> Result<Self, DecodeError> {
        let mut found = Self::default();
        for chain in listener.filter_chains.iter().chain(&listener.default_filter_chain) {
            found.note_chain(chain)?;
        }
        Ok(found)
    }

    fn note_chain(&mut self, chain: &FilterChain) -> Result<(), DecodeError> {
        if let Some(socket) = &chain.transport_socket {
            self.note_socket(socket)?;
        }
        for filter in &chain.filters {
            let Some(ConfigType::TypedConfig(config)) = &filter.config_type else { continue };
            if let Some(manager) = decode::<HttpConnectionManager>(config)? {
                self.note_manager(&manager);
            } else if let Some(proxy) = decode::<TcpProxy>(config)? {
                self.note_proxy(&proxy);
            }
        }
        Ok(())
    }

    fn note_manager(&mut self, manager: &HttpConnectionManager) {
        match &manager.route_specifier {
            Some(RouteSpecifier::Rds(rds)) => self.route(&rds.route_config_name),
            Some(RouteSpecifier::RouteConfig(RouteConfiguration { virtual_hosts, .. })) => {
                virtual_hosts.iter().for_each(|host| self.note_host(host));
            }
            Some(RouteSpecifier::ScopedRoutes(_)) | None => {}
        }
    }

    fn note_proxy(&mut self, proxy: &TcpProxy) {
        match &proxy.cluster_specifier {
            Some(tcp_proxy::ClusterSpecifier::Cluster(name)) => self.cluster(name),
            Some(tcp_proxy::ClusterSpecifier::WeightedClusters(weighted)) => {
                weighted.clusters.iter().for_each(|cluster| self.cluster(&cluster.name));
            }
            None => {}
        }
    }

    fn note_host(&mut self, host: &VirtualHost) {
        for route in &host.routes {
            if let Some(Action::Route(action)) = &route.action {
                self.note_action(action);
            }
        }
        host.request_mirror_policies.iter().for_each(|mirror| self.cluster(&mirror.cluster));
    }

    fn note_action(&mut self, action: &RouteAction) {
        match &action.cluster_specifier {
            Some(ClusterSpecifier::Cluster(name)) => self.cluster(name),
            Some(ClusterSpecifier::WeightedClusters(weighted)) => {
                weighted.clusters.iter().for_each(|cluster| self.cluster(&cluster.name));
            }
            Some(
                ClusterSpecifier::ClusterHeader(_)
                | ClusterSpecifier::ClusterSpecifierPlugin(_)
                | ClusterSpecifier::InlineClusterSpecifierPlugin(_),
            )
            | None => {}
        }
        action.request_mirror_policies.iter().for_each(|mirror| self.cluster(&mirror.cluster));
    }

    fn note_socket(&mut self, socket: &TransportSocket) -> Result<(), DecodeError> {
        let Some(transport_socket::ConfigType::TypedConfig(config)) = &socket.config_type else {
            return Ok(());
        };
        let context = match decode::<DownstreamTlsContext>(config)? {
            Some(context) => context.common_tls_context,
            None => decode::<UpstreamTlsContext>(config)?.and_then(|context| context.common_tls_context),
        };
        if let Some(context) = context {
            self.note_tls(&context);
        }
        Ok(())
    }

    fn note_tls(&mut self, context: &CommonTlsContext) {
        context.tls_certificate_sds_secret_configs.iter().for_each(|secret| self.secret(&secret.name));
        let validation = match &context.validation_context_type {
            Some(ValidationContextType::ValidationContextSdsSecretConfig(secret)) => Some(secret),
            Some(ValidationContextType::CombinedValidationContext(combined)) => {
                combined.validation_context_sds_secret_config.as_ref()
            }
            Some(_) | None => None,
        };
        if let Some(secret) = validation {
            self.secret(&secret.name);
        }
    }

    fn cluster(&mut self, name: &str) {
        note(&mut self.clusters, name);
    }

    fn route(&mut self, name: &str) {
        note(&mut self.routes, name);
    }

    fn secret(&mut self, name: &str) {
        note(&mut self.secrets, name);
    }
}

fn note(names: &mut BTreeSet<Arc<str>>, name: &str) {
    if !name.is_empty() && !names.contains(name) {
        names.insert(name.into());
    }
}

/// The message, if it is of this type.
pub(super) fn decode<M: Message + Name + Default>(any: &Any) -> Result<Option<M>, DecodeError> {
    let of_type = any.type_url.rsplit('/').next() == Some(M::full_name().as_str());
    of_type.then(|| M::decode(any.value.as_slice())).transpose()
}
