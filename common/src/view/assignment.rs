//! A service's ClusterLoadAssignment, from its endpoints.
//!
//! Whatever a source says, what comes out here is accepted by Envoy and gRPC: one bad endpoint in a
//! response would cost its neighbours their update.

use std::{collections::BTreeMap, net::IpAddr};

use tower_proto::{
    envoy::{
        envoy::config::{
            core::v3::{
                Address, HealthStatus, Locality, SocketAddress, address, socket_address::PortSpecifier,
            },
            endpoint::v3::{
                ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint::HostIdentifier,
            },
        },
        google::protobuf::UInt32Value,
    },
    v1,
};

use super::XdsResource;

/// Weights of a service that are not all whole numbers are multiplied by this, and rounded.
const WEIGHT_SCALE: f64 = 1000.0;

/// The sum of the weights of an assignment, at most (Envoy's documentation of `load_balancing_weight`).
const MAX_TOTAL_WEIGHT: f64 = u32::MAX as f64;

/// The assignment of a service. Endpoints with a port name are left out: they are not what the service's
/// name stands for. Endpoints that no client would accept are left out as well; a source reports them.
pub fn assignment<'a>(service: &str, endpoints: impl Iterator<Item = &'a v1::Endpoint>) -> XdsResource {
    let mut usable: BTreeMap<(IpAddr, u16), &v1::Endpoint> = BTreeMap::new();
    for endpoint in endpoints.filter(|endpoint| endpoint.port_name.is_empty()) {
        let (Ok(ip), Ok(port @ 1..)) = (endpoint.address.parse(), u16::try_from(endpoint.port)) else {
            continue;
        };
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
    let mut localities: BTreeMap<[&str; 3], Vec<LbEndpoint>> = BTreeMap::new();
    for ((ip, port), endpoint) in &usable {
        let locality = endpoint.locality.as_ref();
        let locality = locality.map_or([""; 3], |l| [&l.region, &l.zone, &l.sub_zone]);
        localities.entry(locality).or_default().push(lb_endpoint(*ip, *port, endpoint, scale));
    }
    let assignment = ClusterLoadAssignment {
        cluster_name: service.to_owned(),
        endpoints: localities.into_iter().map(|(locality, hosts)| group(locality, hosts)).collect(),
        ..Default::default()
    };
    XdsResource::new(service, &assignment)
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

fn preference(status: HealthStatus) -> u8 {
    match status {
        HealthStatus::Unknown | HealthStatus::Healthy => 0,
        HealthStatus::Degraded => 1,
        HealthStatus::Draining => 2,
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
        ..Default::default()
    }
}

fn group([region, zone, sub_zone]: [&str; 3], lb_endpoints: Vec<LbEndpoint>) -> LocalityLbEndpoints {
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
        load_balancing_weight: Some(UInt32Value { value: weight }),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn endpoint(address: &str, port: u32) -> v1::Endpoint {
        v1::Endpoint { address: address.into(), port, ..Default::default() }
    }

    fn compose(endpoints: &[v1::Endpoint]) -> ClusterLoadAssignment {
        ClusterLoadAssignment::decode(assignment("web", endpoints.iter()).body).unwrap()
    }

    fn weights(values: &[f64]) -> Vec<(u32, HealthStatus)> {
        let endpoints: Vec<_> = (1..)
            .zip(values)
            .map(|(port, weight)| v1::Endpoint { weight: Some(*weight), ..endpoint("10.0.0.1", port) })
            .collect();
        let hosts = compose(&endpoints).endpoints.remove(0).lb_endpoints;
        hosts.iter().map(|h| (h.load_balancing_weight.unwrap().value, h.health_status())).collect()
    }

    #[test]
    fn no_endpoints_make_an_empty_assignment() {
        let composed = compose(&[]);
        assert_eq!(composed.cluster_name, "web");
        assert!(composed.endpoints.is_empty());
    }

    #[test]
    fn weights_become_whole_numbers_of_at_least_one() {
        use HealthStatus::{Draining, Unknown};
        assert_eq!(weights(&[1.0, 3.0]), [(1, Unknown), (3, Unknown)]);
        assert_eq!(weights(&[0.5, 2.0]), [(500, Unknown), (2000, Unknown)]);
        assert_eq!(weights(&[0.000_01, 1.5]), [(1, Unknown), (1500, Unknown)]);
        assert_eq!(weights(&[0.0, -1.0, f64::NAN]), [(1, Draining), (1, Draining), (1, Unknown)]);
    }

    #[test]
    fn endpoints_that_no_client_accepts_are_left_out() {
        let named = v1::Endpoint { port_name: "admin".into(), ..endpoint("10.0.0.3", 3) };
        let composed = compose(&[
            endpoint("host.example", 1),
            endpoint("10.0.0.1", 0),
            endpoint("10.0.0.2", 70_000),
            named,
        ]);
        assert!(composed.endpoints.is_empty());
    }

    #[test]
    fn an_endpoint_known_twice_is_there_once_in_its_better_state() {
        let mut down = endpoint("2001:DB8::1", 80);
        down.set_state(v1::endpoint::State::Down);
        let composed = compose(&[down, endpoint("2001:db8:0::1", 80)]);
        let hosts = &composed.endpoints[0].lb_endpoints;
        assert_eq!(hosts.len(), 1);
        assert_eq!(hosts[0].health_status(), HealthStatus::Unknown);
    }

    #[test]
    fn zones_become_localities_with_weights() {
        let zoned = |zone: &str, port| v1::Endpoint {
            locality: Some(v1::Locality { zone: zone.into(), ..Default::default() }),
            ..endpoint("10.0.0.1", port)
        };
        let composed = compose(&[zoned("b", 1), zoned("a", 2), zoned("b", 3), endpoint("10.0.0.1", 4)]);
        let found: Vec<_> = composed
            .endpoints
            .iter()
            .map(|l| (l.locality.as_ref().unwrap().zone.as_str(), l.load_balancing_weight.unwrap().value))
            .collect();
        assert_eq!(found, [("", 1), ("a", 1), ("b", 2)]);
    }

    proptest! {
        #[test]
        fn whatever_the_weights_their_sum_fits(values in prop::collection::vec(any::<f64>(), 1..50)) {
            let sum = weights(&values).iter().map(|(weight, _)| u64::from(*weight)).sum::<u64>();
            prop_assert!(sum <= u64::from(u32::MAX));
        }
    }
}
