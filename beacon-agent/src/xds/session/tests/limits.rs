//! What a server must survive, and what it refuses.

use bytes::Bytes;
use tower_common::{
    clock,
    view::{Composition, XdsResource},
};
use tower_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator,
};

use crate::xds::{
    delta::Delta,
    kind::{ResourceType, Scope},
    protocol::{Limits, Protocol, Received},
    selection::{Batch, MESSAGE_BYTES},
    session::Session,
    sotw::Sotw,
    testing::{composition, script::node},
};

const LIMITS: Limits = Limits { names: 3, name_bytes: 10 };

fn sotw() -> DiscoveryRequest {
    DiscoveryRequest { type_url: ResourceType::Endpoint.url().to_owned(), ..Default::default() }
}

fn delta() -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest { type_url: ResourceType::Endpoint.url().to_owned(), ..Default::default() }
}

/// The message with which a stream ends that receives these requests.
fn refusal<P: Protocol>(requests: impl IntoIterator<Item = P::Request>) -> String {
    let mut session = Session::<P>::new(Scope::Aggregated, &node(), LIMITS, &composition(&["a"]));
    let error = requests.into_iter().find_map(|request| session.handle(request).err());
    let status = tonic::Status::from(error.expect("a refusal"));
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    status.message().to_owned()
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn a_type_is_needed() {
    let message = "type_url is missing; each request on an aggregated stream has to name it";
    assert_eq!(refusal::<Sotw>([DiscoveryRequest::default()]), message);
    assert_eq!(refusal::<Delta>([DeltaDiscoveryRequest::default()]), message);
}

#[test]
fn names_are_limited_in_number_and_length() {
    let many = strings(&["a", "b", "c", "d"]);
    assert_eq!(
        refusal::<Sotw>([DiscoveryRequest { resource_names: many, ..sotw() }]),
        "resource_names: 4 names of eds are asked for on one stream; the limit is 3"
    );
    let halves = [["a", "b"], ["c", "d"]]
        .map(|half| DeltaDiscoveryRequest { resource_names_subscribe: strings(&half), ..delta() });
    assert_eq!(
        refusal::<Delta>(halves),
        "resource_names_subscribe: 4 names of eds are asked for on one stream; the limit is 3"
    );
    let long = strings(&["12345678901"]);
    assert_eq!(
        refusal::<Sotw>([DiscoveryRequest { resource_names: long, ..sotw() }]),
        "resource_names holds a name of 11 bytes; a name may have 10"
    );
    let initial = [("12345678901".to_owned(), String::new())].into();
    assert_eq!(
        refusal::<Delta>([DeltaDiscoveryRequest { initial_resource_versions: initial, ..delta() }]),
        "initial_resource_versions holds a name of 11 bytes; a name may have 10"
    );
}

#[test]
fn locators_are_refused_rather_than_taken_for_a_wildcard() {
    let request = DiscoveryRequest { resource_locators: vec![ResourceLocator::default()], ..sotw() };
    assert_eq!(refusal::<Sotw>([request]), "resource_locators is not supported; ask by name instead");
}

#[test]
fn a_name_given_repeatedly_counts_once() {
    let mut session = Session::<Sotw>::new(Scope::Aggregated, &node(), LIMITS, &composition(&["a"]));
    session.handle(DiscoveryRequest { resource_names: strings(&["a"; 20]), ..sotw() }).unwrap();
    assert_eq!(session.next_batch(clock::monotonic()).unwrap().resources.len(), 1);
}

#[test]
fn an_unknown_type_leaves_the_others_working() {
    let mut session = Session::<Sotw>::new(Scope::Aggregated, &node(), LIMITS, &composition(&["a"]));
    let url = "type.googleapis.com/envoy.service.health.v3.Capability".to_owned();
    let unknown = DiscoveryRequest { type_url: url.clone(), ..Default::default() };
    assert_eq!(session.handle(unknown), Ok(Received::UnknownType(url)));
    assert!(session.next_batch(clock::monotonic()).is_none());
    session.handle(DiscoveryRequest { resource_names: strings(&["a"]), ..sotw() }).unwrap();
    assert_eq!(session.next_batch(clock::monotonic()).unwrap().kind, ResourceType::Endpoint);
}

#[test]
fn names_are_opaque() {
    let names = ["/", "a:b", "[::]:8080", "?x=%20|", "ü ñ", "*a", "xdstp://x/y?a=b"];
    let composition = composition(&names);
    let mut session = Session::<Delta>::new(Scope::Aggregated, &node(), Limits::default(), &composition);
    session.handle(DeltaDiscoveryRequest { resource_names_subscribe: strings(&names), ..delta() }).unwrap();
    let batch = session.next_batch(clock::monotonic()).unwrap();
    let got: std::collections::BTreeSet<&str> = batch.resources.iter().map(|r| &*r.name).collect();
    assert_eq!(got, names.into());
}

/// A composition whose assignments have these sizes.
fn sized(sizes: &[usize]) -> Composition {
    let resources = sizes.iter().enumerate().map(|(index, size)| {
        let resource = XdsResource::from_body(format!("{index:03}").into(), Bytes::from(vec![0; *size]));
        (resource.name.clone(), resource)
    });
    let layer: tower_common::view::Layer = std::sync::Arc::new(resources.collect());
    Composition { complete: true, clusters: layer.clone(), assignments: layer, ..Composition::default() }
}

fn drain<P: Protocol>(session: &mut Session<P>) -> Vec<Batch> {
    std::iter::from_fn(|| session.next_batch(clock::monotonic())).collect()
}

/// Names and sizes of what comes, in messages that fit.
fn check_split(batches: &[Batch], sizes: &[usize]) {
    let bytes = |batch: &Batch| batch.resources.iter().map(|resource| resource.body.len()).sum::<usize>();
    for batch in batches {
        assert!(bytes(batch) <= MESSAGE_BYTES || batch.resources.len() == 1);
    }
    let got: Vec<usize> = batches.iter().flat_map(|b| &b.resources).map(|r| r.body.len()).collect();
    assert_eq!(got, sizes);
}

#[test]
fn large_answers_come_in_messages_that_fit() {
    let sizes: Vec<usize> = [1 << 20; 12].into_iter().chain([5 << 20, 1]).collect();
    let composition = sized(&sizes);
    let names: Vec<String> = composition.assignments.keys().map(ToString::to_string).collect();

    let mut session = Session::<Sotw>::new(Scope::Aggregated, &node(), Limits::default(), &composition);
    session.handle(DiscoveryRequest { resource_names: names.clone(), ..sotw() }).unwrap();
    check_split(&drain(&mut session), &sizes);

    let mut session = Session::<Delta>::new(Scope::Aggregated, &node(), Limits::default(), &composition);
    session.handle(DeltaDiscoveryRequest { resource_names_subscribe: names, ..delta() }).unwrap();
    check_split(&drain(&mut session), &sizes);

    let mut session = Session::<Delta>::new(Scope::Aggregated, &node(), Limits::default(), &composition);
    let type_url = ResourceType::Cluster.url().to_owned();
    session.handle(DeltaDiscoveryRequest { type_url, ..Default::default() }).unwrap();
    check_split(&drain(&mut session), &sizes);
}

#[test]
fn all_clusters_come_in_one_message_of_state_of_the_world() {
    let mut session =
        Session::<Sotw>::new(Scope::Aggregated, &node(), Limits::default(), &sized(&[1 << 20; 5]));
    let type_url = ResourceType::Cluster.url().to_owned();
    session.handle(DiscoveryRequest { type_url, ..Default::default() }).unwrap();
    let batches = drain(&mut session);
    assert_eq!((batches.len(), batches[0].resources.len()), (1, 5));
}
