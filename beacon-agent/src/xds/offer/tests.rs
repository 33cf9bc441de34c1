use std::net::{Ipv4Addr, SocketAddr};

use prost::Message;
use tower_common::view::EGRESS;
use tower_proto::envoy::envoy::config::route::v3::RouteConfiguration;

use super::*;
use crate::xds::testing::composition;

fn offer(services: &[&str]) -> Offer {
    let egress = SocketAddr::from((Ipv4Addr::LOCALHOST, 5875));
    Offer::new(&NodeView::new(egress), &composition(services))
}

fn names(layer: &Layer) -> Vec<&str> {
    layer.keys().map(|name| &**name).collect()
}

/// The services in the composed routes.
fn pieces(offer: &Offer) -> Vec<String> {
    let routes = RouteConfiguration::decode(offer.routes[EGRESS].body.clone()).unwrap();
    routes.virtual_hosts.iter().skip(1).map(|host| host.name.clone()).collect()
}

/// Sends the routes as they are now, and has them accepted.
fn exchange(offer: &mut Offer) {
    offer.routes_sent();
    let version = offer.routes[EGRESS].version;
    offer.routes_accepted(version);
    offer.release(BTreeSet::new);
}

#[test]
fn a_cluster_that_goes_stays_until_routes_without_it_were_sent() {
    let mut offer = offer(&["a", "b"]);
    offer.compose_routes(|_| true);
    exchange(&mut offer);
    offer.update(&composition(&["a"]), BTreeSet::new);
    assert_eq!(names(&offer.clusters), ["a", "b"]);
    assert_eq!(names(&offer.assignments), ["a", "b"]);
    offer.compose_routes(|_| true);
    assert_eq!(pieces(&offer), ["a"]);
    offer.routes_sent();
    offer.release(BTreeSet::new);
    assert_eq!(names(&offer.clusters), ["a", "b"], "the client may go back to what it has");
    exchange(&mut offer);
    assert_eq!(names(&offer.clusters), ["a"]);
    assert_eq!(names(&offer.assignments), ["a"]);
}

#[test]
fn a_cluster_that_comes_back_in_time_has_never_gone() {
    let mut offer = offer(&["a", "b"]);
    offer.compose_routes(|_| true);
    exchange(&mut offer);
    offer.update(&composition(&["a"]), BTreeSet::new);
    offer.update(&composition(&["a", "b"]), BTreeSet::new);
    assert!(offer.retired.is_empty());
    offer.compose_routes(|_| false);
    assert_eq!(pieces(&offer), ["a", "b"], "the client has these routes");
}

#[test]
fn a_cluster_to_which_the_client_has_no_route_goes_at_once() {
    let mut offer = offer(&["a", "b"]);
    offer.update(&composition(&["a"]), BTreeSet::new);
    assert_eq!(names(&offer.clusters), ["a"]);
    offer.compose_routes(|_| true);
    exchange(&mut offer);
    offer.update(&composition(&[]), BTreeSet::new);
    assert_eq!(names(&offer.clusters), ["a"]);
    offer.routes_unwanted();
    offer.release(BTreeSet::new);
    assert!(offer.clusters.is_empty());
}

#[test]
fn only_the_route_to_a_cluster_that_is_not_accepted_waits() {
    let mut offer = offer(&["a", "b"]);
    offer.compose_routes(|name| name == "b");
    assert_eq!(pieces(&offer), ["b"]);
    offer.compose_routes(|_| true);
    assert_eq!(pieces(&offer), ["a", "b"]);
}

#[test]
fn routes_are_composed_for_a_reason_only() {
    let mut offer = offer(&["a"]);
    offer.compose_routes(|_| true);
    let before = offer.routes.clone();
    let mut changed = composition(&["a"]);
    changed.clusters = offer.composition.clusters.clone();
    changed.virtual_hosts = offer.composition.virtual_hosts.clone();
    offer.update(&changed, BTreeSet::new);
    offer.compose_routes(|_| true);
    assert!(Arc::ptr_eq(&before, &offer.routes));
}

#[test]
fn neighbours_are_asked_for_under_their_own_name() {
    let mut offer = offer(&["a", "b"]);
    let names = ["a", "tower:local/b", "tower:local/x"].map(Arc::from).into();
    offer.resolve(ResourceType::Endpoint, &names);
    assert_eq!(names_of(&offer), ["a", "b", "tower:local/b"]);
    offer.update(&composition(&["a"]), BTreeSet::new);
    assert_eq!(names_of(&offer), ["a"]);
    offer.update(&composition(&["b"]), BTreeSet::new);
    assert_eq!(names_of(&offer), ["b", "tower:local/b"]);
    offer.resolve(ResourceType::Endpoint, &["a"].map(Arc::from).into());
    assert_eq!(names_of(&offer), ["b"]);
}

fn names_of(offer: &Offer) -> Vec<&str> {
    names(&offer.assignments)
}
