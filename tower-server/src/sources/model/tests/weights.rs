//! What one entry says of the weights of others.

use prost::Message;

use super::*;
use crate::sources::format::{Factor, Select, WeightRule};

fn vector(path: &str, index: u64, rules: &[(Select, Factor)]) -> Entry {
    let rules = rules.iter().map(|(select, factor)| WeightRule { select: select.clone(), factor: *factor });
    Entry { weights: rules.collect(), ..entry(path, index, index, &[]) }
}

fn member(name: &str) -> Select {
    Select::Member(name.into())
}

/// Members a and b of web.
fn two() -> Fixture {
    let mut fixture = Fixture::loaded();
    let mut b = entry("/d/web/b", 6, 6, &["10.0.0.2:80"]);
    b.registrations[0].weight = Some(3.0);
    b.registrations[0].labels.insert("shard".to_owned(), "7".to_owned());
    fixture.change(11, vec![Change::Entry(b)]);
    fixture
}

/// The weights of a and b, where 1 is what nobody spoke of. None if it drains.
fn weights(fixture: &Fixture) -> Vec<Option<f64>> {
    let endpoints = fixture.store.of_service("", v1::Kind::Endpoint, "web");
    let weight = |endpoint: v1::Endpoint| match endpoint.state() {
        v1::endpoint::State::Draining => None,
        _ => Some(endpoint.weight.unwrap_or(1.0)),
    };
    endpoints.map(|resource| weight(v1::Endpoint::decode(resource.body().clone()).unwrap())).collect()
}

#[test]
fn vectors_come_change_and_go() {
    let mut fixture = two();
    assert_eq!(weights(&fixture), [Some(1.0), Some(3.0)]);
    let changes = |fixture: &mut Fixture, index, change| {
        let input = Input::Changed { changes: vec![change], index, events: 1 };
        fixture.model.handle(input, fixture.now);
        let transaction = fixture.take();
        let count = transaction.as_ref().map_or(0, |transaction| transaction.upserts.len());
        transaction.map(|transaction| fixture.store.apply(transaction));
        count
    };
    // What is not selected is not sent again.
    let once = vector("/d/web/v1", 12, &[(member("a"), Factor::Times(2.0))]);
    assert_eq!(changes(&mut fixture, 12, Change::Entry(once)), 1);
    assert_eq!(weights(&fixture), [Some(2.0), Some(3.0)]);

    // Several multiply, within a vector and among them, whatever selects.
    let ip = Host::Ip("10.0.0.2".parse().unwrap());
    let second = [
        (Select::Address(ip, 80), Factor::Times(0.5)),
        (Select::Shard(7), Factor::Times(4.0)),
        (member("a"), Factor::Times(3.0)),
        (member("nobody"), Factor::Times(9.0)),
    ];
    assert_eq!(changes(&mut fixture, 13, Change::Entry(vector("/d/web/v2", 13, &second))), 2);
    assert_eq!(weights(&fixture), [Some(6.0), Some(6.0)]);

    let excluded = vector("/d/web/v1", 14, &[(member("a"), Factor::Excluded)]);
    changes(&mut fixture, 14, Change::Entry(excluded));
    assert_eq!(weights(&fixture), [None, Some(6.0)]);

    // A malformed vector keeps its last good contents, and is a problem.
    changes(&mut fixture, 15, Change::Kept(problem("/d/web/v1", "not JSON")));
    assert_eq!(weights(&fixture), [None, Some(6.0)]);
    assert_eq!(fixture.problems(), ["/d/web/v1: not JSON"]);

    changes(&mut fixture, 16, gone("/d/web/v1", 16));
    assert_eq!(weights(&fixture), [Some(3.0), Some(6.0)]);
    assert_eq!(changes(&mut fixture, 17, gone("/d/web/v2", 17)), 2);
    assert_eq!(weights(&fixture), [Some(1.0), Some(3.0)]);
    let origin = fixture.store.of_service("", v1::Kind::Endpoint, "web").next().unwrap().origin();
    assert_eq!(origin.index, 17);
}

#[test]
fn a_vector_is_of_its_own_place_only_and_waits_for_members() {
    let mut fixture = two();
    let elsewhere = vector("/d/api/v", 12, &[(member("a"), Factor::Times(2.0))]);
    fixture.change(12, vec![Change::Entry(elsewhere)]);
    assert_eq!(weights(&fixture), [Some(1.0), Some(3.0)]);
    fixture.change(13, vec![Change::Entry(entry("/d/api/a", 13, 13, &["10.1.0.1:80"]))]);
    let resource = fixture.store.of_service("", v1::Kind::Endpoint, "api").next().unwrap();
    assert_eq!(v1::Endpoint::decode(resource.body().clone()).unwrap().weight, Some(2.0));
    // It goes with its place.
    fixture.change(14, vec![gone("/d/api", 14)]);
    fixture.change(15, vec![Change::Entry(entry("/d/api/a", 15, 15, &["10.1.0.1:80"]))]);
    let resource = fixture.store.of_service("", v1::Kind::Endpoint, "api").next().unwrap();
    assert_eq!(v1::Endpoint::decode(resource.body().clone()).unwrap().weight, None);
}

#[test]
fn a_complete_reading_weighs_too_and_the_same_again_changes_nothing() {
    let mut fixture = Fixture::new();
    let read = |weight| {
        load(
            20,
            vec![place("/d/web", 2, 5)],
            vec![
                entry("/d/web/a", 5, 5, &["h.example:80"]),
                vector(
                    "/d/web/v",
                    6,
                    &[(Select::Address(Host::Name("h.example".into()), 80), Factor::Times(weight))],
                ),
            ],
            vec![],
        )
    };
    fixture.load(read(0.5));
    fixture.resolved("h.example", Ok(&["10.0.0.1", "10.0.0.2"]));
    assert_eq!(weights(&fixture), [Some(0.5), Some(0.5)]);
    fixture.model.handle(Input::Loaded(read(0.5)), fixture.now);
    assert_eq!(fixture.take(), None);
    // A complete reading that finds the vector gone.
    fixture.load(load(
        30,
        vec![place("/d/web", 2, 25)],
        vec![entry("/d/web/a", 5, 5, &["h.example:80"])],
        vec![],
    ));
    assert_eq!(weights(&fixture), [Some(1.0), Some(1.0)]);
}
