//! A cluster's ClusterLoadAssignment, from the endpoints of a service.
//!
//! Whatever a source says, what comes out here is accepted by Envoy and gRPC: one bad endpoint in a
//! response would cost its neighbours their update.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use prost::Message;
use tower_proto::{
    envoy::{
        envoy::config::{
            core::v3::{
                Address, HealthStatus, Locality, Metadata, SocketAddress, address,
                socket_address::PortSpecifier,
            },
            endpoint::v3::{
                ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint::HostIdentifier,
            },
        },
        google::protobuf::{Struct, UInt32Value, Value, value::Kind},
    },
    v1,
};

use super::{XdsResource, release::Endpoints};
use crate::audience::NodeFacts;

/// Weights of a service that are not all whole numbers are multiplied by this, and rounded.
const WEIGHT_SCALE: f64 = 1000.0;

/// The sum of the weights of an assignment, at most (Envoy's documentation of `load_balancing_weight`).
const MAX_TOTAL_WEIGHT: f64 = u32::MAX as f64;

/// The label of an endpoint with the port on which an Envoy stands in front of it, which is dialled instead of
/// its own.
pub const INBOUND_PORT: &str = "tower.inbound";

/// The label with how that Envoy speaks TLS: `permissive`, `strict` or `off`. Unless it is off, the endpoint's
/// metadata `envoy.transport_socket_match` say the same under the same key, for which a cluster's
/// `transport_socket_matches` look.
pub const INBOUND_TLS: &str = "tower.inbound.tls";

/// The assignment of an Envoy's neighbours, from that of their service: under another name, and all endpoints
/// alike, because an Envoy refuses ranks there. `None` if it cannot be read.
pub fn local(name: &str, service: &XdsResource) -> Option<XdsResource> {
    let mut assignment = ClusterLoadAssignment::decode(service.body.clone()).ok()?;
    name.clone_into(&mut assignment.cluster_name);
    assignment.endpoints.iter_mut().for_each(|group| group.priority = 0);
    Some(XdsResource::new(name, &assignment))
}

/// An assignment, and what it comes to.
pub(super) struct Assembled {
    pub(super) resource: XdsResource,
    /// Whether there is an endpoint that gets traffic.
    pub(super) in_service: bool,
}

/// The assignment of a service's default cluster. Endpoints with a port name are left out: they are not what
/// the service's name stands for.
pub fn assignment<'a>(service: &str, endpoints: impl Iterator<Item = &'a v1::Endpoint>) -> XdsResource {
    assemble(service, endpoints, None, &NodeFacts::default()).resource
}

/// The assignment of a cluster, of these endpoints or, of those, the ones that it wants. Endpoints that no
/// client would accept are left out; a source reports them.
pub(super) fn assemble<'a>(
    cluster: &str,
    endpoints: impl Iterator<Item = &'a v1::Endpoint>,
    wanted: Option<&Endpoints>,
    node: &NodeFacts,
) -> Assembled {
    let mut usable: BTreeMap<(IpAddr, u16), &v1::Endpoint> = BTreeMap::new();
    for endpoint in endpoints.filter(|endpoint| is_wanted(endpoint, wanted)) {
        let (Ok(ip), Ok(port @ 1..)) = (endpoint.address.parse(), u16::try_from(endpoint.port)) else {
            continue;
        };
        let port = inbound_port(endpoint).unwrap_or(port);
        // Two sources may know the same endpoint. The better state wins: one of them knows more.
        usable
            .entry((ip, port))
            .and_modify(|held| {
                if preference(health(endpoint)) < preference(health(held)) {
                    *held = endpoint;
                }
            })
            .or_insert(endpoint);
    }
    let scale = weight_scale(usable.values().map(|endpoint| weight(endpoint)));
    let ranked = wanted.is_some_and(|wanted| wanted.ranked);
    let mut localities: BTreeMap<(u32, [&str; 3]), Vec<LbEndpoint>> = BTreeMap::new();
    for ((ip, port), endpoint) in &usable {
        let locality = endpoint.locality.as_ref();
        let locality = locality.map_or([""; 3], |l| [&l.region, &l.zone, &l.sub_zone]);
        let rank = if ranked { rank(locality, node) } else { 0 };
        localities.entry((rank, locality)).or_default().push(lb_endpoint(*ip, *port, endpoint, scale));
    }
    // gRPC rejects priorities with gaps.
    let ranks: BTreeSet<u32> = localities.keys().map(|(rank, _)| *rank).collect();
    let priorities: BTreeMap<u32, u32> = ranks.into_iter().zip(0..).collect();
    let group = |((rank, locality), hosts)| group(priorities[&rank], locality, hosts);
    let assignment = ClusterLoadAssignment {
        cluster_name: cluster.to_owned(),
        endpoints: localities.into_iter().map(group).collect(),
        ..Default::default()
    };
    let in_service = usable.values().any(|endpoint| preference(health(endpoint)) < OUT_OF_SERVICE);
    Assembled { resource: XdsResource::new(cluster, &assignment), in_service }
}

fn is_wanted(endpoint: &v1::Endpoint, wanted: Option<&Endpoints>) -> bool {
    let Some(wanted) = wanted else { return endpoint.port_name.is_empty() };
    endpoint.port_name == wanted.port_name
        && wanted.labels.iter().all(|(key, value)| endpoint.labels.get(key) == Some(value))
}

/// Where an endpoint's Envoy listens, if it has one. The label is about the main port.
fn inbound_port(endpoint: &v1::Endpoint) -> Option<u16> {
    let port = endpoint.labels.get(INBOUND_PORT).filter(|_| endpoint.port_name.is_empty())?;
    port.parse().ok().filter(|port| *port > 0)
}

/// What tells an Envoy to speak TLS to an endpoint.
fn metadata(endpoint: &v1::Endpoint) -> Option<Metadata> {
    inbound_port(endpoint)?;
    let mode =
        endpoint.labels.get(INBOUND_TLS).filter(|mode| matches!(mode.as_str(), "permissive" | "strict"))?;
    let value = Value { kind: Some(Kind::StringValue(mode.clone())) };
    // Maps of one entry have one encoding only.
    let fields = Struct { fields: [(INBOUND_TLS.to_owned(), value)].into() };
    let filter_metadata = [("envoy.transport_socket_match".to_owned(), fields)].into();
    Some(Metadata { filter_metadata, ..Default::default() })
}

/// How far an endpoint is from the host: in its zone, in its region, elsewhere.
fn rank([region, zone, _]: [&str; 3], node: &NodeFacts) -> u32 {
    if !zone.is_empty() && zone == node.zone {
        0
    } else if !region.is_empty() && region == node.region() {
        1
    } else {
        2
    }
}

/// How Envoy is told about an endpoint's state. One without weight gets no new requests, which is what
/// draining means; Envoy refuses the weight 0.
fn health(endpoint: &v1::Endpoint) -> HealthStatus {
    if weight(endpoint) <= 0.0 {
        return HealthStatus::Draining;
    }
    match endpoint.state() {
        v1::endpoint::State::Unspecified | v1::endpoint::State::Up => HealthStatus::Unknown,
        v1::endpoint::State::Draining => HealthStatus::Draining,
        v1::endpoint::State::Degraded => HealthStatus::Degraded,
        v1::endpoint::State::NotReady | v1::endpoint::State::Down => HealthStatus::Unhealthy,
    }
}

/// The preference of what gets no traffic.
const OUT_OF_SERVICE: u8 = 2;

fn preference(status: HealthStatus) -> u8 {
    match status {
        HealthStatus::Unknown | HealthStatus::Healthy => 0,
        HealthStatus::Degraded => 1,
        HealthStatus::Draining => OUT_OF_SERVICE,
        HealthStatus::Unhealthy | HealthStatus::Timeout => 3,
    }
}

fn weight(endpoint: &v1::Endpoint) -> f64 {
    // A number that is none is as good as none at all.
    endpoint.weight.filter(|weight| weight.is_finite()).unwrap_or(1.0)
}

fn weight_scale(weights: impl Iterator<Item = f64> + Clone) -> f64 {
    let fractional = weights.clone().any(|weight| weight > 0.0 && weight.fract() != 0.0);
    let scale = if fractional { WEIGHT_SCALE } else { 1.0 };
    let count = weights.clone().count() as f64;
    let total = weights.filter(|weight| *weight > 0.0).sum::<f64>();
    // Each weight may be rounded up by one.
    if total * scale + count > MAX_TOTAL_WEIGHT { (MAX_TOTAL_WEIGHT - count) / total } else { scale }
}

fn lb_endpoint(ip: IpAddr, port: u16, endpoint: &v1::Endpoint, scale: f64) -> LbEndpoint {
    let address = SocketAddress {
        address: ip.to_string(),
        port_specifier: Some(PortSpecifier::PortValue(port.into())),
        ..Default::default()
    };
    let address = Address { address: Some(address::Address::SocketAddress(address)) };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and u32::MAX")]
    let scaled = (weight(endpoint) * scale).round().max(1.0) as u32;
    LbEndpoint {
        host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
            address: Some(address),
            ..Default::default()
        })),
        health_status: health(endpoint).into(),
        load_balancing_weight: Some(UInt32Value { value: scaled }),
        metadata: metadata(endpoint),
    }
}

fn group(
    priority: u32,
    [region, zone, sub_zone]: [&str; 3],
    lb_endpoints: Vec<LbEndpoint>,
) -> LocalityLbEndpoints {
    let weights = lb_endpoints.iter().filter_map(|host| host.load_balancing_weight);
    // gRPC ignores a locality without a weight.
    let weight = weights.map(|weight| weight.value).fold(0, u32::saturating_add);
    LocalityLbEndpoints {
        locality: Some(Locality {
            region: region.to_owned(),
            zone: zone.to_owned(),
            sub_zone: sub_zone.to_owned(),
        }),
        lb_endpoints,
        priority,
        load_balancing_weight: Some(UInt32Value { value: weight }),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
