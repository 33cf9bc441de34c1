//! The egress route configuration: a virtual host per service, put together per client.

use std::sync::{Arc, LazyLock};

use bytes::{BufMut, Bytes, BytesMut};
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len},
};
use tower_proto::envoy::{
    envoy::config::{
        core::v3::{DataSource, data_source::Specifier},
        route::v3::{
            DirectResponseAction, RetryPolicy, Route, RouteAction, RouteConfiguration, RouteMatch,
            VirtualHost,
            retry_policy::{RetryHostPredicate, retry_host_predicate},
            route::Action,
            route_action::ClusterSpecifier,
            route_match::PathSpecifier,
        },
    },
    envoy::extensions::retry::host::previous_hosts::v3::PreviousHostsPredicate,
    google::protobuf::{Duration, UInt32Value},
};

use super::{EGRESS, XdsResource, any, domains::SUFFIX, wire::append};

/// The answer to a request whose host names no service.
pub const NOT_FOUND_BODY: &str =
    "tower: the Host of this request names no service; use <service> or <service>.mesh\n";

/// The field number of `virtual_hosts` in a RouteConfiguration.
const VIRTUAL_HOSTS: u32 = 2;

/// The routes of a service that has no document: everything to its cluster, no timeout, one retry on
/// another host after a connect failure.
pub fn default_virtual_host(service: &str, domain: &str) -> XdsResource {
    let action = RouteAction {
        cluster_specifier: Some(ClusterSpecifier::Cluster(service.to_owned())),
        timeout: Some(Duration::default()),
        retry_policy: Some(default_retry()),
        ..Default::default()
    };
    let host = VirtualHost {
        name: service.to_owned(),
        domains: vec![domain.to_owned(), format!("{domain}{SUFFIX}")],
        routes: vec![route(Action::Route(action))],
        ..Default::default()
    };
    XdsResource::new(service, &host)
}

/// One retry, on another host, after a connect failure.
pub(super) fn default_retry() -> RetryPolicy {
    RetryPolicy {
        retry_on: "connect-failure".to_owned(),
        num_retries: Some(UInt32Value { value: 1 }),
        retry_host_predicate: vec![RetryHostPredicate {
            name: "envoy.retry_host_predicates.previous_hosts".to_owned(),
            config_type: Some(retry_host_predicate::ConfigType::TypedConfig(any(&PreviousHostsPredicate {}))),
        }],
        host_selection_retry_max_attempts: 5,
        ..Default::default()
    }
}

/// A route configuration of this name with this serialized virtual host alone. `any`: which answers to every
/// host name.
pub(super) fn single(name: &str, host: &[u8], any: bool) -> XdsResource {
    let configuration = RouteConfiguration {
        name: name.to_owned(),
        ignore_port_in_host_matching: true,
        ..Default::default()
    };
    let mut body = configuration.encode_to_vec();
    let mut host = host.to_vec();
    if any {
        host.extend(VirtualHost { domains: vec!["*".to_owned()], ..Default::default() }.encode_to_vec());
    }
    append(&mut body, VIRTUAL_HOSTS, &host);
    XdsResource::from_body(name.into(), body.into())
}

/// The route configuration that consists of these pieces, and answers 404 for every other host.
pub fn compose<'a>(pieces: impl Iterator<Item = &'a XdsResource> + Clone) -> XdsResource {
    let length = pieces.clone().map(|piece| field_len(&piece.body)).sum::<usize>() + FRAME.len();
    let mut body = BytesMut::with_capacity(length);
    body.put_slice(&FRAME);
    for piece in pieces {
        encode_key(VIRTUAL_HOSTS, WireType::LengthDelimited, &mut body);
        encode_varint(piece.body.len() as u64, &mut body);
        body.put_slice(&piece.body);
    }
    XdsResource::from_body(Arc::clone(&NAME), body.freeze())
}

static NAME: LazyLock<Arc<str>> = LazyLock::new(|| EGRESS.into());

/// All that is the same in every composition. Serialized messages of one type merge when they are
/// concatenated (protobuf, encoding guide), so virtual hosts are appended to it.
static FRAME: LazyLock<Bytes> = LazyLock::new(|| {
    let not_found = DirectResponseAction {
        status: 404,
        body: Some(DataSource {
            specifier: Some(Specifier::InlineString(NOT_FOUND_BODY.to_owned())),
            ..Default::default()
        }),
        ..Default::default()
    };
    let configuration = RouteConfiguration {
        name: EGRESS.to_owned(),
        // `Host: web.mesh:5875` is what clients send that were given a URL with the port.
        ignore_port_in_host_matching: true,
        virtual_hosts: vec![VirtualHost {
            name: "tower-not-found".to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![route(Action::DirectResponse(not_found))],
            ..Default::default()
        }],
        ..Default::default()
    };
    configuration.encode_to_vec().into()
});

fn route(action: Action) -> Route {
    let everything =
        RouteMatch { path_specifier: Some(PathSpecifier::Prefix("/".to_owned())), ..Default::default() };
    Route { r#match: Some(everything), action: Some(action), ..Default::default() }
}

fn field_len(body: &Bytes) -> usize {
    key_len(VIRTUAL_HOSTS) + encoded_len_varint(body.len() as u64) + body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_composition_is_an_ordinary_route_configuration() {
        let pieces = ["a", "b"].map(|service| default_virtual_host(service, service));
        let composed = compose(pieces.iter());
        let configuration = RouteConfiguration::decode(composed.body).unwrap();
        assert_eq!(configuration.name, EGRESS);
        assert!(configuration.ignore_port_in_host_matching);
        let names: Vec<_> = configuration.virtual_hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["tower-not-found", "a", "b"]);
        assert_eq!(configuration.virtual_hosts[1].domains, ["a", "a.mesh"]);
    }
}
