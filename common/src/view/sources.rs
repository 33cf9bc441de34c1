//! Where a client asks for what a resource refers to. The compiler leaves that open: it depends on how the
//! client has asked for the resource.

use prost::{DecodeError, Message, Name};
use tower_proto::envoy::envoy::extensions::{
    filters::network::http_connection_manager::v3::HttpConnectionManager,
    transport_sockets::tls::v3::{DownstreamTlsContext, UpstreamTlsContext},
};

use super::{
    ConfigSource,
    listener::config_source,
    wire::{append, contents, edit},
};

type Edited = Result<Vec<u8>, DecodeError>;

/// A serialized cluster that asks there for its secrets, and for its endpoints if these come by EDS.
///
/// # Errors
/// If it cannot be decoded.
pub fn fill_cluster(body: &[u8], source: ConfigSource, by_eds: bool) -> Edited {
    let filled = edit(body, 24, |socket| transport_socket(socket, source))?;
    let mut filled =
        edit(&filled, 43, |matched| edit(matched, 3, |socket| transport_socket(socket, source)))?;
    if by_eds {
        if contents(&filled, 3)?.is_empty() {
            append(&mut filled, 3, &[]);
        }
        filled = edit(&filled, 3, |eds| set(eds, 1, source))?;
    }
    Ok(filled)
}

/// A serialized listener that asks there for routes, secrets and extensions.
///
/// # Errors
/// If it cannot be decoded.
pub fn fill_listener(body: &[u8], source: ConfigSource) -> Edited {
    let chain = |chain: &[u8]| {
        let filled = edit(chain, 3, |filter| {
            edit(filter, 4, |config| {
                edit_any(config, &HttpConnectionManager::full_name(), |manager| http_manager(manager, source))
            })
        })?;
        edit(&filled, 6, |socket| transport_socket(socket, source))
    };
    edit(&edit(body, 3, chain)?, 25, chain)
}

fn http_manager(body: &[u8], source: ConfigSource) -> Edited {
    let filled = edit(body, 3, |rds| set(rds, 1, source))?;
    edit(&filled, 5, |filter| edit(filter, 5, |discovery| set(discovery, 1, source)))
}

fn transport_socket(body: &[u8], source: ConfigSource) -> Edited {
    let tls = |context: &[u8]| edit(context, 1, |common| common_tls(common, source));
    edit(body, 3, |config| {
        let filled = edit_any(config, &DownstreamTlsContext::full_name(), tls)?;
        edit_any(&filled, &UpstreamTlsContext::full_name(), tls)
    })
}

fn common_tls(body: &[u8], source: ConfigSource) -> Edited {
    let filled = edit(body, 6, |certificate| set(certificate, 2, source))?;
    let filled = edit(&filled, 7, |validation| set(validation, 2, source))?;
    edit(&filled, 8, |combined| edit(combined, 2, |validation| set(validation, 2, source)))
}

/// Edits the message in a serialized `Any`, if it is of this type.
fn edit_any(any: &[u8], name: &str, change: impl FnMut(&[u8]) -> Edited) -> Edited {
    let of_type = contents(any, 1)?.last().is_some_and(|url| {
        url.strip_suffix(name.as_bytes()).is_some_and(|before| before.last().is_none_or(|c| *c == b'/'))
    });
    if of_type { edit(any, 2, change) } else { Ok(any.to_vec()) }
}

/// Sets a field of a message that is a config source: if it is not there, or one of ours. Any other is the
/// operator's.
fn set(body: &[u8], number: u32, source: ConfigSource) -> Edited {
    let wanted = config_source(source).encode_to_vec();
    let all = [ConfigSource::Aggregated, ConfigSource::Sotw, ConfigSource::Delta];
    let ours = |held: &[u8]| all.iter().any(|source| config_source(*source).encode_to_vec() == held);
    match contents(body, number)?.as_slice() {
        [] => {
            let mut body = body.to_vec();
            append(&mut body, number, &wanted);
            Ok(body)
        }
        [held] if ours(held) => edit(body, number, |_| Ok(wanted.clone())),
        _ => Ok(body.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use tower_proto::envoy::envoy::{
        config::{
            cluster::v3::{Cluster, cluster::TransportSocketMatch},
            core::v3::{
                ConfigSource as Source, ExtensionConfigSource, PathConfigSource, TransportSocket,
                config_source::ConfigSourceSpecifier, transport_socket,
            },
            listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
        },
        extensions::{
            filters::network::http_connection_manager::v3::{
                HttpFilter, Rds, http_connection_manager::RouteSpecifier, http_filter,
            },
            transport_sockets::tls::v3::{
                CommonTlsContext, SdsSecretConfig, common_tls_context::ValidationContextType,
            },
        },
    };

    use super::*;
    use crate::view::{any, references::References};

    fn common() -> CommonTlsContext {
        let secret = |name: &str| SdsSecretConfig { name: name.into(), sds_config: None };
        CommonTlsContext {
            tls_certificate_sds_secret_configs: vec![secret("certificate")],
            validation_context_type: Some(ValidationContextType::ValidationContextSdsSecretConfig(secret(
                "ca",
            ))),
            ..Default::default()
        }
    }

    fn socket(context: &impl Name) -> TransportSocket {
        TransportSocket {
            name: "tls".into(),
            config_type: Some(transport_socket::ConfigType::TypedConfig(any(context))),
        }
    }

    fn secret_names(found: &References) -> Vec<&str> {
        found.secrets.iter().map(|name| &**name).collect()
    }

    /// How often a source occurs in a message.
    fn count(body: &[u8], source: ConfigSource) -> usize {
        let wanted = config_source(source).encode_to_vec();
        body.windows(wanted.len()).filter(|window| *window == wanted).count()
    }

    #[test]
    fn a_listener_asks_where_it_was_asked_for() {
        let manager = HttpConnectionManager {
            route_specifier: Some(RouteSpecifier::Rds(Rds {
                config_source: None,
                route_config_name: "inbound/web".into(),
            })),
            http_filters: vec![HttpFilter {
                name: "x".into(),
                config_type: Some(http_filter::ConfigType::ConfigDiscovery(ExtensionConfigSource::default())),
                ..Default::default()
            }],
            ..Default::default()
        };
        let downstream = DownstreamTlsContext { common_tls_context: Some(common()), ..Default::default() };
        let chain = FilterChain {
            filters: vec![Filter {
                name: "http".into(),
                config_type: Some(ConfigType::TypedConfig(any(&manager))),
            }],
            transport_socket: Some(socket(&downstream)),
            ..Default::default()
        };
        let listener = Listener {
            name: "inbound/web/8443".into(),
            filter_chains: vec![chain.clone()],
            default_filter_chain: Some(chain),
            ..Default::default()
        };
        let filled = fill_listener(&listener.encode_to_vec(), ConfigSource::Aggregated).unwrap();
        let read = Listener::decode(filled.as_slice()).unwrap();
        let found = References::of_listener(&read).unwrap();
        assert_eq!(secret_names(&found), ["ca", "certificate"]);
        assert!(found.routes.contains("inbound/web") && found.clusters.is_empty());
        let refilled = fill_listener(&filled, ConfigSource::Delta).unwrap();
        assert_eq!(count(&refilled, ConfigSource::Delta), 8, "four in each chain");
        assert_eq!(fill_listener(&refilled, ConfigSource::Aggregated).unwrap(), filled);
        assert_eq!(read.name, listener.name);
    }

    #[test]
    fn a_cluster_asks_for_secrets_and_endpoints_unless_the_operator_says_where() {
        let path = ConfigSourceSpecifier::PathConfigSource(PathConfigSource::default());
        let elsewhere = Source { config_source_specifier: Some(path), ..Source::default() };
        let mut theirs = common();
        theirs.tls_certificate_sds_secret_configs[0].sds_config = Some(elsewhere.clone());
        let upstream = |common| UpstreamTlsContext { common_tls_context: Some(common), ..Default::default() };
        let cluster = Cluster {
            name: "web".into(),
            transport_socket: Some(socket(&upstream(common()))),
            transport_socket_matches: vec![TransportSocketMatch {
                transport_socket: Some(socket(&upstream(theirs))),
                ..Default::default()
            }],
            ..Default::default()
        };
        let body = cluster.encode_to_vec();
        let filled = fill_cluster(&body, ConfigSource::Sotw, true).unwrap();
        assert_eq!(count(&filled, ConfigSource::Sotw), 4);
        let refilled = fill_cluster(&filled, ConfigSource::Aggregated, true).unwrap();
        assert_eq!(count(&refilled, ConfigSource::Sotw), 0);
        let kept = elsewhere.encode_to_vec();
        assert!(refilled.windows(kept.len()).any(|window| window == kept));
        let read = Cluster::decode(refilled.as_slice()).unwrap();
        assert!(read.eds_cluster_config.is_some());
        assert_eq!(secret_names(&References::of_cluster(&read).unwrap()), ["ca", "certificate"]);
        let own = fill_cluster(&body, ConfigSource::Sotw, false).unwrap();
        assert_eq!(Cluster::decode(own.as_slice()).unwrap().eds_cluster_config, None);
    }
}
