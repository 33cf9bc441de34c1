//! Types that discovery does not fill, and what gRPC asks for.

use std::{collections::BTreeMap, sync::Arc};

use prost::Message;
use tower_common::{
    clock,
    view::{
        ClientKind, Composition, Layer, NodeView, XdsResource, assignment::assignment,
        cluster::default_cluster, route::default_virtual_host,
    },
};
use tower_proto::envoy::envoy::{
    config::{listener::v3::Listener, route::v3::RouteConfiguration},
    extensions::transport_sockets::tls::v3::Secret,
    service::{
        discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest},
        runtime::v3::Runtime,
    },
};

use crate::xds::{
    delta::Delta,
    kind::{ResourceType, Scope},
    protocol::{Limits, Protocol},
    session::Session,
    sotw::Sotw,
    testing::script::node,
};

fn layer(resources: impl IntoIterator<Item = XdsResource>) -> Layer {
    let named = resources.into_iter().map(|resource| (resource.name.clone(), resource));
    Arc::new(named.collect::<BTreeMap<_, _>>())
}

fn secret(name: &str) -> XdsResource {
    XdsResource::new(name, &Secret { name: name.to_owned(), ..Default::default() })
}

fn secrets() -> Composition {
    Composition {
        complete: true,
        secrets: layer(["s1", "s2"].map(secret)),
        socket_secrets: layer(["s1", "s2", "key"].map(secret)),
        ..Composition::default()
    }
}

fn session<P: Protocol>(node: &NodeView, composition: &Composition) -> Session<P> {
    Session::new(Scope::Aggregated, node, Limits::default(), composition)
}

/// The names in the next response, and those that are gone.
fn next<P: Protocol>(session: &mut Session<P>) -> Option<(ResourceType, Vec<String>, Vec<String>)> {
    let batch = session.next_batch(clock::monotonic())?;
    let names = batch.resources.iter().map(|resource| resource.name.to_string()).collect();
    Some((batch.kind, names, batch.removed.iter().map(ToString::to_string).collect()))
}

fn sotw(kind: ResourceType, names: &[&str], nonce: &str) -> DiscoveryRequest {
    DiscoveryRequest {
        type_url: kind.url().to_owned(),
        resource_names: names.iter().map(|&name| name.to_owned()).collect(),
        response_nonce: nonce.to_owned(),
        ..Default::default()
    }
}

fn delta(kind: ResourceType, names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: kind.url().to_owned(),
        resource_names_subscribe: names.iter().map(|&name| name.to_owned()).collect(),
        ..Default::default()
    }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// envoyproxy/go-control-plane#249
#[test]
fn b10_one_of_two_secrets_can_be_asked_for() {
    let mut session = session::<Sotw>(&node(), &secrets());
    session.handle(sotw(ResourceType::Secret, &["s1"], "")).unwrap();
    assert_eq!(next(&mut session), Some((ResourceType::Secret, strings(&["s1"]), vec![])));
    assert_eq!(next(&mut session), None);
}

/// envoyproxy/envoy#33362: it lets a cluster leave warming.
#[test]
fn a_missing_secret_is_told_to_be_missing() {
    let mut session = session::<Delta>(&node(), &secrets());
    session.handle(delta(ResourceType::Secret, &["s1", "s3"])).unwrap();
    assert_eq!(next(&mut session), Some((ResourceType::Secret, strings(&["s1"]), strings(&["s3"]))));
}

#[test]
fn a_private_key_does_not_cross_a_network() {
    let local = NodeView { local: true, ..node() };
    let expected = [(node(), vec![], strings(&["key"])), (local, strings(&["key"]), vec![])];
    for (node, served, missing) in expected {
        let mut session = session::<Delta>(&node, &secrets());
        session.handle(delta(ResourceType::Secret, &["key"])).unwrap();
        assert_eq!(next(&mut session), Some((ResourceType::Secret, served, missing)));
    }
}

/// envoyproxy/go-control-plane#579
#[test]
fn b27_a_layer_that_is_published_later_arrives() {
    let mut composition = Composition { complete: true, ..Composition::default() };
    let mut session = session::<Sotw>(&node(), &composition);
    session.handle(sotw(ResourceType::Runtime, &["rtds"], "")).unwrap();
    assert_eq!(next(&mut session), None);
    let runtime = Runtime { name: "rtds".to_owned(), ..Default::default() };
    composition.runtimes = layer([XdsResource::new("rtds", &runtime)]);
    session.update(&composition);
    assert_eq!(next(&mut session), Some((ResourceType::Runtime, strings(&["rtds"]), vec![])));
    assert_eq!(next(&mut session), None);
}

fn services(names: &[&str]) -> Composition {
    Composition {
        complete: true,
        clusters: layer(names.iter().map(|name| default_cluster(name))),
        assignments: layer(names.iter().map(|name| assignment(name, [].iter()))),
        virtual_hosts: layer(names.iter().map(|name| default_virtual_host(name, name))),
        domains: Arc::new(names.iter().map(|&name| (name.into(), name.into())).collect()),
        ..Composition::default()
    }
}

fn grpc(composition: &Composition) -> Session<Sotw> {
    session(&NodeView { client: ClientKind::Grpc, ..node() }, composition)
}

/// envoyproxy/go-control-plane#349
#[test]
fn b10_grpc_gets_the_listener_of_its_target_and_no_other() {
    let mut session = grpc(&services(&["l1", "l2", "l3"]));
    session.handle(sotw(ResourceType::Listener, &["l2.mesh:80"], "")).unwrap();
    let batch = session.next_batch(clock::monotonic()).unwrap();
    let listener = Listener::decode(batch.resources[0].body.clone()).unwrap();
    assert_eq!((batch.resources.len(), listener.name.as_str()), (1, "l2.mesh:80"));
    assert!(listener.api_listener.is_some() && listener.address.is_none());

    session.handle(sotw(ResourceType::Route, &["l2.mesh:80"], "")).unwrap();
    let batch = session.next_batch(clock::monotonic()).unwrap();
    let routes = RouteConfiguration::decode(batch.resources[0].body.clone()).unwrap();
    assert_eq!((routes.name.as_str(), routes.virtual_hosts.len()), ("l2.mesh:80", 1));
    session.handle(sotw(ResourceType::Cluster, &["l2"], "")).unwrap();
    session.handle(sotw(ResourceType::Endpoint, &["l2"], "")).unwrap();
    assert_eq!(next(&mut session).map(|next| next.1), Some(strings(&["l2"])));
    assert_eq!(next(&mut session).map(|next| next.1), Some(strings(&["l2"])));
    assert_eq!(next(&mut session), None);
}

/// grpc/grpc-java#9632: the last watch ends with an empty list.
#[test]
fn b13_a_target_that_is_wanted_again_is_sent_again() {
    let mut session = grpc(&services(&["a", "b"]));
    session.handle(sotw(ResourceType::Listener, &["a"], "")).unwrap();
    assert_eq!(next(&mut session).map(|next| next.1), Some(strings(&["a"])));
    session.handle(sotw(ResourceType::Listener, &["a"], "1")).unwrap();
    session.handle(sotw(ResourceType::Listener, &[], "1")).unwrap();
    session.update(&services(&["a", "b", "c"]));
    assert_eq!(next(&mut session), None);
    session.handle(sotw(ResourceType::Listener, &["a"], "1")).unwrap();
    assert_eq!(next(&mut session).map(|next| next.1), Some(strings(&["a"])));
}

#[test]
fn a_target_that_appears_is_sent_and_one_that_goes_is_omitted() {
    let mut session = grpc(&services(&["a"]));
    session.handle(sotw(ResourceType::Listener, &["a", "egress"], "")).unwrap();
    assert_eq!(next(&mut session).map(|next| next.1), Some(strings(&["a"])), "there is no egress for gRPC");
    session.handle(sotw(ResourceType::Listener, &["a", "egress"], "1")).unwrap();
    session.update(&services(&["a", "egress"]));
    assert_eq!(next(&mut session).map(|next| next.1), Some(strings(&["a", "egress"])));
    session.handle(sotw(ResourceType::Listener, &["a", "egress"], "2")).unwrap();
    session.update(&services(&["egress"]));
    assert_eq!(next(&mut session).map(|next| next.1), Some(strings(&["egress"])));
}
