//! Which version of HTTP is spoken to an endpoint.

use std::collections::HashMap;

use tower_common::document::model::Protocol;
use tower_proto::envoy::{
    envoy::{
        config::core::v3::{Http1ProtocolOptions, Http2ProtocolOptions},
        extensions::upstreams::http::v3::{
            HttpProtocolOptions,
            http_protocol_options::{
                ExplicitHttpConfig, UpstreamProtocolOptions, UseDownstreamHttpConfig,
                explicit_http_config::ProtocolConfig,
            },
        },
    },
    google::protobuf::Any,
};

use super::messages::any;

const OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// A cluster's `typed_extension_protocol_options`. What is not known is spoken to as the caller speaks.
pub(super) fn options(protocol: Option<Protocol>) -> HashMap<String, Any> {
    let explicit = |config| {
        UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig { protocol_config: Some(config) })
    };
    let options = match protocol {
        Some(Protocol::Tcp | Protocol::Tls) => return HashMap::new(),
        Some(Protocol::Http) => {
            explicit(ProtocolConfig::HttpProtocolOptions(Http1ProtocolOptions::default()))
        }
        Some(Protocol::Http2 | Protocol::Grpc) => {
            explicit(ProtocolConfig::Http2ProtocolOptions(Http2ProtocolOptions::default()))
        }
        None => UpstreamProtocolOptions::UseDownstreamProtocolConfig(UseDownstreamHttpConfig {
            http_protocol_options: Some(Http1ProtocolOptions::default()),
            http2_protocol_options: Some(Http2ProtocolOptions::default()),
            http3_protocol_options: None,
        }),
    };
    let options = HttpProtocolOptions { upstream_protocol_options: Some(options), ..Default::default() };
    HashMap::from([(OPTIONS.to_owned(), any(&options))])
}

/// Whether it is HTTP/2, whoever calls.
pub(super) fn is_http2(protocol: Option<Protocol>) -> bool {
    match protocol {
        Some(Protocol::Http2 | Protocol::Grpc) => true,
        Some(Protocol::Http | Protocol::Tcp | Protocol::Tls) | None => false,
    }
}
