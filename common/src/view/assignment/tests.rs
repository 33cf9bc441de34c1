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
    let composed =
        compose(&[endpoint("host.example", 1), endpoint("10.0.0.1", 0), endpoint("10.0.0.2", 70_000), named]);
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

fn labelled(port: u32, labels: &[(&str, &str)]) -> v1::Endpoint {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    v1::Endpoint { labels: labels.collect(), ..endpoint("10.0.0.1", port) }
}

fn wanted() -> Endpoints {
    Endpoints { of: "web".into(), labels: BTreeMap::new(), port_name: String::new(), ranked: false }
}

fn ports(assignment: &ClusterLoadAssignment) -> Vec<u32> {
    let hosts = assignment.endpoints.iter().flat_map(|group| &group.lb_endpoints);
    let port = |host: &LbEndpoint| {
        let Some(HostIdentifier::Endpoint(endpoint)) = &host.host_identifier else { panic!("{host:?}") };
        let Some(address::Address::SocketAddress(address)) = endpoint.address.clone().unwrap().address else {
            panic!("{endpoint:?}")
        };
        let Some(PortSpecifier::PortValue(port)) = address.port_specifier else { panic!("{address:?}") };
        port
    };
    hosts.map(port).collect()
}

#[test]
fn a_cluster_has_the_endpoints_with_its_labels_and_port() {
    let admin = v1::Endpoint { port_name: "admin".into(), ..labelled(4, &[("model", "b")]) };
    let endpoints =
        [labelled(1, &[("model", "a")]), labelled(2, &[("model", "b"), ("x", "y")]), labelled(3, &[]), admin];
    let found = |wanted: &Endpoints| {
        let assembled = assemble("web/canary", endpoints.iter(), Some(wanted), &NodeFacts::default());
        let assignment = ClusterLoadAssignment::decode(assembled.resource.body).unwrap();
        assert_eq!(assignment.cluster_name, "web/canary");
        (ports(&assignment), assembled.in_service)
    };
    let b = Endpoints { labels: [("model".into(), "b".into())].into(), ..wanted() };
    assert_eq!(found(&wanted()), (vec![1, 2, 3], true));
    assert_eq!(found(&b), (vec![2], true));
    assert_eq!(found(&Endpoints { port_name: "admin".into(), ..b }), (vec![4], true));
    let none = Endpoints { labels: [("model".into(), "c".into())].into(), ..wanted() };
    assert_eq!(found(&none), (vec![], false));
}

#[test]
fn what_gets_no_traffic_is_not_in_service() {
    let draining = v1::Endpoint { weight: Some(0.0), ..endpoint("10.0.0.1", 1) };
    let in_service =
        |all: &[v1::Endpoint]| assemble("web", all.iter(), None, &NodeFacts::default()).in_service;
    assert!(!in_service(std::slice::from_ref(&draining)));
    assert!(in_service(&[draining, endpoint("10.0.0.1", 2)]));
}

#[test]
fn endpoints_are_ranked_by_where_the_host_is() {
    let at = |region: &str, zone: &str, port| v1::Endpoint {
        locality: Some(v1::Locality { region: region.into(), zone: zone.into(), sub_zone: String::new() }),
        ..endpoint("10.0.0.1", port)
    };
    let endpoints = [at("r1", "a", 1), at("r1", "b", 2), at("r2", "c", 3), at("", "", 4)];
    let priorities = |zone: &str, region: &str| {
        let labels = [("region".to_owned(), region.to_owned())].into();
        let node = NodeFacts { zone: zone.into(), labels, ..Default::default() };
        let ranked = Endpoints { ranked: true, ..wanted() };
        let assembled = assemble("web", endpoints.iter(), Some(&ranked), &node);
        let assignment = ClusterLoadAssignment::decode(assembled.resource.body).unwrap();
        let priorities = assignment.endpoints.iter().map(|group| group.priority);
        let local = local("tower:local/web", &XdsResource::new("web", &assignment)).unwrap();
        let local = ClusterLoadAssignment::decode(local.body).unwrap();
        assert!(local.endpoints.iter().all(|group| group.priority == 0));
        assert_eq!((local.cluster_name.as_str(), ports(&local)), ("tower:local/web", ports(&assignment)));
        ports(&assignment).into_iter().zip(priorities).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(priorities("a", "r1"), [(1, 0), (2, 1), (3, 2), (4, 2)].into());
    assert_eq!(priorities("c", ""), [(1, 1), (2, 1), (3, 0), (4, 1)].into());
    assert_eq!(priorities("x", "r2"), [(1, 1), (2, 1), (3, 0), (4, 1)].into(), "no gaps");
    assert_eq!(priorities("", ""), [(1, 0), (2, 0), (3, 0), (4, 0)].into());
}

/// What metadata say of TLS.
fn label(labels: &[(&str, &str)]) -> Option<Kind> {
    labels.iter().find(|(key, _)| *key == INBOUND_TLS).map(|(_, mode)| Kind::StringValue((*mode).to_owned()))
}

#[test]
fn an_endpoint_behind_an_envoy_is_dialled_there() {
    let dialled = |labels: &[(&str, &str)]| {
        let composed = compose(&[labelled(80, labels)]);
        let metadata = composed.endpoints[0].lb_endpoints[0].metadata.clone();
        let tls = metadata.map(|metadata| {
            let fields = &metadata.filter_metadata["envoy.transport_socket_match"].fields;
            assert_eq!((fields.len(), &fields[INBOUND_TLS].kind), (1, &label(labels)));
        });
        (ports(&composed)[0], tls.is_some())
    };
    assert_eq!(dialled(&[(INBOUND_PORT, "8443"), (INBOUND_TLS, "strict")]), (8443, true));
    assert_eq!(dialled(&[(INBOUND_PORT, "8443"), (INBOUND_TLS, "permissive")]), (8443, true));
    assert_eq!(dialled(&[(INBOUND_PORT, "8443"), (INBOUND_TLS, "off")]), (8443, false));
    assert_eq!(dialled(&[(INBOUND_PORT, "8443"), (INBOUND_TLS, "of course")]), (8443, false));
    assert_eq!(dialled(&[(INBOUND_PORT, "8443")]), (8443, false));
    for wrong in ["", "0", "65536", "x", "-1"] {
        assert_eq!(dialled(&[(INBOUND_PORT, wrong), (INBOUND_TLS, "strict")]), (80, false), "{wrong:?}");
    }
    let both = [labelled(80, &[(INBOUND_PORT, "8443")]), labelled(81, &[(INBOUND_PORT, "8443")])];
    assert_eq!(ports(&compose(&both)), [8443], "two applications behind one port are one endpoint");
}

proptest! {
    #[test]
    fn whatever_the_weights_their_sum_fits(values in prop::collection::vec(any::<f64>(), 1..50)) {
        let sum = weights(&values).iter().map(|(weight, _)| u64::from(*weight)).sum::<u64>();
        prop_assert!(sum <= u64::from(u32::MAX));
    }
}
