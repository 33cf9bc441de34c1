use bytes::Bytes;
use prost::Message;
use tower_common::resource::{Origin, Resource, ResourceKey};

use super::*;

fn endpoint(service: &str, address: &str) -> Resource {
    let body = v1::Endpoint { address: address.into(), port: 80, ..Default::default() };
    let key = ResourceKey::new("", v1::Kind::Endpoint, service, address);
    let origin = Origin { source: "zk".into(), index: 5 };
    Resource::new(key, origin, Bytes::from(body.encode_to_vec()))
}

fn status(state: v1::SourceState) -> v1::SourceStatus {
    v1::SourceStatus { source: "zk".into(), state: state.into(), ..Default::default() }
}

fn at(index: u64) -> v1::SourceStatus {
    let position = v1::Position { source: "zk".into(), incarnation: "1".into(), index };
    v1::SourceStatus { position: Some(position), ..status(v1::SourceState::Live) }
}

/// A delivery from a Tower that holds `resources`.
fn delivery(scope: Scope, sent: Vec<Resource>, holds: &[Resource], status: v1::SourceStatus) -> Delivery {
    let mut tower = Store::new();
    tower.apply(Transaction { upserts: holds.to_vec(), ..Default::default() });
    Delivery {
        scope,
        transaction: Transaction { upserts: sent, sources: vec![status], ..Default::default() },
        to_revision: 1,
        digest: tower.digest().to_proto(),
    }
}

/// How a run of a Tower begins its streams that sends these services, or all.
fn welcome(tower: &str, services: Option<&[&str]>) -> v1::Welcome {
    let named = |services: &[&str]| services.iter().map(|service| (*service).to_owned()).collect();
    let served = services.map(|services| v1::Served { services: named(services) });
    v1::Welcome { tower: tower.to_owned(), served, ..Default::default() }
}

/// Everything that a Tower has, as the first delivery of its stream.
fn full(mirror: &mut Mirror, status: v1::SourceStatus, holds: &[Resource]) {
    mirror.begin(welcome("run", None));
    deliver(mirror, delivery(Scope::Everything, holds.to_vec(), holds, status));
}

fn deliver(mirror: &mut Mirror, delivery: Delivery) {
    mirror.deliver(delivery).unwrap();
    mirror.flush();
}

fn heartbeat(holds: &[Resource], status: v1::SourceStatus) -> v1::Heartbeat {
    let digest = delivery(Scope::Changes, vec![], holds, status.clone()).digest;
    v1::Heartbeat { revision: 1, sources: vec![status], digest: Some(digest), ..Default::default() }
}

fn services(mirror: &Mirror) -> Vec<String> {
    mirror.compositions().borrow().clusters.keys().map(|name| name.to_string()).collect()
}

#[test]
fn nothing_is_complete_before_a_source_is() {
    let mut mirror = Mirror::new("", NodeFacts::default());
    assert!(!mirror.compositions().borrow().complete);
    full(&mut mirror, status(v1::SourceState::Loading), &[]);
    assert!(!mirror.compositions().borrow().complete);
    full(&mut mirror, at(1), &[]);
    assert!(mirror.compositions().borrow().complete);
}

#[test]
fn a_restarted_tower_that_is_still_loading_takes_nothing_away() {
    let (mut mirror, web) = (Mirror::new("", NodeFacts::default()), endpoint("web", "10.0.0.1"));
    full(&mut mirror, at(1), std::slice::from_ref(&web));
    full(&mut mirror, status(v1::SourceState::Loading), &[]);
    assert_eq!(services(&mirror), ["web"]);
    assert!(mirror.compositions().borrow().complete);
    // Once it has read the source, what is gone goes.
    let api = endpoint("api", "10.0.0.1");
    let read = Scope::Sources(vec!["zk".into()]);
    deliver(&mut mirror, delivery(read, vec![api.clone()], &[api], at(2)));
    assert_eq!(services(&mirror), ["api"]);
    assert!(mirror.summary().equal_to_tower);
}

#[test]
fn a_tower_that_is_behind_changes_nothing_until_it_has_caught_up() {
    let (mut mirror, web, api) =
        (Mirror::new("", NodeFacts::default()), endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"));
    full(&mut mirror, at(9), std::slice::from_ref(&web));
    full(&mut mirror, at(8), std::slice::from_ref(&api));
    assert_eq!(services(&mirror), ["web"]);
    assert!(mirror.take_comparison().is_none());
    let late = delivery(Scope::Changes, vec![endpoint("late", "10.0.0.1")], &[], at(8));
    deliver(&mut mirror, late);
    assert_eq!(services(&mirror), ["web"]);

    mirror.heartbeat(heartbeat(std::slice::from_ref(&api), at(10))).unwrap();
    assert!(mirror.take_comparison().is_some());
    assert!(mirror.take_comparison().is_none(), "it has been asked");
    let numbers = (0..1).collect();
    let buckets = Scope::Buckets { count: 1, numbers };
    deliver(&mut mirror, delivery(buckets, vec![api.clone()], &[api], at(10)));
    assert_eq!(services(&mirror), ["api"]);
    assert!(mirror.summary().equal_to_tower);
}

#[test]
fn at_an_equal_position_nothing_is_removed_until_it_moves_on() {
    let (mut mirror, web, api) =
        (Mirror::new("", NodeFacts::default()), endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"));
    full(&mut mirror, at(9), std::slice::from_ref(&web));
    full(&mut mirror, at(9), std::slice::from_ref(&api));
    assert_eq!(services(&mirror), ["api", "web"]);
    assert!(mirror.take_comparison().is_none());
    mirror.heartbeat(heartbeat(std::slice::from_ref(&api), at(10))).unwrap();
    assert!(mirror.take_comparison().is_some());
    let buckets = Scope::Buckets { count: 1, numbers: vec![0] };
    deliver(&mut mirror, delivery(buckets, vec![api.clone()], &[api], at(10)));
    assert_eq!(services(&mirror), ["api"]);
}

#[test]
fn what_is_kept_at_an_equal_position_goes_when_a_delivery_moves_on() {
    let (mut mirror, web, api) =
        (Mirror::new("", NodeFacts::default()), endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"));
    full(&mut mirror, at(9), std::slice::from_ref(&web));
    // This Tower has let it go without moving.
    full(&mut mirror, at(9), &[]);
    assert_eq!(services(&mirror), ["web"]);
    deliver(&mut mirror, delivery(Scope::Changes, vec![api.clone()], std::slice::from_ref(&api), at(10)));
    assert_eq!(services(&mirror), ["api", "web"]);
    assert!(mirror.take_comparison().is_some());
    let buckets = Scope::Buckets { count: 1, numbers: vec![0] };
    deliver(&mut mirror, delivery(buckets, vec![api.clone()], &[api], at(10)));
    assert_eq!(services(&mirror), ["api"]);
}

#[test]
fn what_differs_from_tower_is_not_served_until_it_has_been_compared() {
    let (mut mirror, web, api) =
        (Mirror::new("", NodeFacts::default()), endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"));
    full(&mut mirror, at(1), std::slice::from_ref(&web));
    deliver(&mut mirror, delivery(Scope::Changes, vec![api.clone()], &[], at(2)));
    assert_eq!(services(&mirror), ["web"]);
    assert!(!mirror.is_sound());
    let mut hello = v1::Hello::default();
    mirror.introduce(&mut hello);
    assert!(hello.tower.is_empty(), "it is at no revision");
    assert!(mirror.take_comparison().is_some());
    let buckets = Scope::Buckets { count: 1, numbers: vec![0] };
    deliver(&mut mirror, delivery(buckets, vec![api.clone()], &[api], at(2)));
    assert_eq!(services(&mirror), ["api"]);
    mirror.introduce(&mut hello);
    assert_eq!((hello.tower.as_str(), hello.revision), ("run", 1));
}

#[test]
fn what_cannot_be_made_equal_is_fetched_anew() {
    let (mut mirror, web, api) =
        (Mirror::new("", NodeFacts::default()), endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"));
    full(&mut mirror, at(1), std::slice::from_ref(&web));
    let wrong =
        delivery(Scope::Buckets { count: 1, numbers: vec![] }, vec![], std::slice::from_ref(&api), at(2));
    assert!(mirror.deliver(wrong).is_err());
    assert_eq!(services(&mirror), ["web"]);
    let mut hello = v1::Hello::default();
    mirror.introduce(&mut hello);
    assert_eq!(hello, v1::Hello::default(), "it has nothing that could be built on");
    full(&mut mirror, at(2), std::slice::from_ref(&api));
    assert_eq!(services(&mirror), ["api"]);
    assert!(mirror.is_sound());
}

#[test]
fn the_disk_is_served_when_tower_does_not_answer() {
    let web = endpoint("web", "10.0.0.1");
    let restored = || {
        let mut mirror = Mirror::new("", NodeFacts::default());
        let mut store = Store::new();
        store.apply(Transaction { upserts: vec![web.clone()], sources: vec![at(5)], ..Default::default() });
        mirror.restore(Snapshot { store, taken_unix_ms: 0 });
        mirror.flush();
        assert!(services(&mirror).is_empty() && !mirror.summary().complete);
        mirror
    };
    let mut mirror = restored();
    mirror.serve_from_disk();
    assert_eq!(services(&mirror), ["web"]);
    assert!(mirror.summary().complete);

    let mut mirror = restored();
    let mut compositions = mirror.compositions();
    full(&mut mirror, at(6), &[endpoint("api", "10.0.0.1")]);
    assert_eq!(services(&mirror), ["api"]);
    compositions.mark_unchanged();
    mirror.serve_from_disk();
    assert!(!compositions.has_changed().unwrap());

    // A Tower that is still reading has nothing better.
    let mut mirror = restored();
    full(&mut mirror, status(v1::SourceState::Loading), &[]);
    assert_eq!(services(&mirror), ["web"]);
}

#[test]
fn a_full_delivery_of_the_same_changes_nothing_for_clients() {
    let (mut mirror, web) = (Mirror::new("", NodeFacts::default()), endpoint("web", "10.0.0.1"));
    full(&mut mirror, at(1), std::slice::from_ref(&web));
    let mut compositions = mirror.compositions();
    compositions.mark_unchanged();
    full(&mut mirror, at(2), std::slice::from_ref(&web));
    assert!(!compositions.has_changed().unwrap());
}

#[test]
fn a_heartbeat_moves_positions_and_notices_a_gap() {
    let mut mirror = Mirror::new("", NodeFacts::default());
    full(&mut mirror, at(1), &[]);
    assert!(mirror.heartbeat(heartbeat(&[], at(9))).unwrap());
    assert_eq!(mirror.summary().sources[0].index, 9);
    assert!(mirror.heartbeat(v1::Heartbeat { revision: 2, ..heartbeat(&[], at(9)) }).is_err());
}

#[test]
fn what_a_tower_does_not_serve_goes_however_little_it_has_read() {
    let both = [endpoint("api", "10.0.0.1"), endpoint("web", "10.0.0.1")];
    for offered in [at(9), at(5), status(v1::SourceState::Loading), status(v1::SourceState::Lost)] {
        let mut mirror = Mirror::new("", NodeFacts::default());
        full(&mut mirror, at(9), &both);
        let served = &both[1..];
        mirror.begin(welcome("restarted", Some(&["web"])));
        assert_eq!(services(&mirror), ["api", "web"], "until something is delivered");
        deliver(&mut mirror, delivery(Scope::Changes, vec![], served, offered.clone()));
        assert_eq!(services(&mirror), ["web"], "{offered:?}");
        // Its own word for nothing.
        mirror.begin(welcome("restarted again", Some(&[])));
        deliver(&mut mirror, delivery(Scope::Everything, vec![], &[], offered.clone()));
        assert_eq!(services(&mirror), Vec::<String>::new(), "{offered:?}");
        assert!(mirror.compositions().borrow().complete, "known to be empty");
    }
}

#[test]
fn what_is_on_disk_and_not_served_goes_when_tower_is_reached() {
    let mut store = Store::new();
    let upserts = vec![endpoint("api", "10.0.0.1"), endpoint("web", "10.0.0.1")];
    store.apply(Transaction { upserts, sources: vec![at(5)], ..Default::default() });
    let mut mirror = Mirror::new("", NodeFacts::default());
    mirror.restore(Snapshot { store, taken_unix_ms: 0 });
    mirror.serve_from_disk();
    assert_eq!(services(&mirror), ["api", "web"]);
    mirror.begin(welcome("run", Some(&["web"])));
    deliver(&mut mirror, delivery(Scope::Changes, vec![], &[endpoint("web", "10.0.0.1")], at(5)));
    assert_eq!(services(&mirror), ["web"]);
    assert!(mirror.summary().equal_to_tower && mirror.take_comparison().is_none());
}

#[test]
fn what_is_served_again_is_asked_for_although_the_source_has_not_moved() {
    let (web, api) = (endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"));
    let mut mirror = Mirror::new("", NodeFacts::default());
    mirror.begin(welcome("run", Some(&["web"])));
    deliver(&mut mirror, delivery(Scope::Everything, vec![web.clone()], std::slice::from_ref(&web), at(9)));
    let all = [api, web];
    // By its positions nothing is new.
    mirror.begin(welcome("restarted", None));
    deliver(&mut mirror, delivery(Scope::Changes, vec![], &all, at(9)));
    assert_eq!(services(&mirror), ["web"]);
    assert!(mirror.take_comparison().is_some());
    let buckets = Scope::Buckets { count: 1, numbers: vec![0] };
    deliver(&mut mirror, delivery(buckets, all.to_vec(), &all, at(9)));
    assert_eq!(services(&mirror), ["api", "web"]);
    assert!(mirror.summary().equal_to_tower);

    // Where nothing else is served, nothing is asked.
    mirror.begin(welcome("restarted again", None));
    deliver(&mut mirror, delivery(Scope::Changes, vec![], &[], at(9)));
    assert!(mirror.take_comparison().is_none());
}

/// A source of that name in a state.
fn source(name: &str, state: v1::SourceState) -> v1::SourceStatus {
    v1::SourceStatus { source: name.into(), optional: true, ..status(state) }
}

#[test]
fn what_differs_is_noticed_while_a_source_is_loading_of_which_nothing_is_known() {
    let (web, api) = (endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"));
    let mut mirror = Mirror::new("", NodeFacts::default());
    mirror.begin(welcome("run", None));
    let mut first = delivery(Scope::Everything, vec![web.clone()], std::slice::from_ref(&web), at(1));
    first.transaction.sources.push(source("k8s", v1::SourceState::Loading));
    deliver(&mut mirror, first);
    assert!(mirror.summary().equal_to_tower);
    // A delivery that lacks what Tower has.
    deliver(&mut mirror, delivery(Scope::Changes, vec![], &[web, api], at(2)));
    assert!(!mirror.is_sound() && mirror.take_comparison().is_some());
}

#[test]
fn an_equal_store_does_not_let_a_tower_that_is_still_reading_bring_back_what_is_gone() {
    let mut mirror = Mirror::new("", NodeFacts::default());
    full(&mut mirror, at(9), &[]);
    full(&mut mirror, status(v1::SourceState::Loading), &[]);
    assert!(mirror.summary().equal_to_tower);
    assert_eq!(mirror.summary().sources[0].index, 9);
    // Half of what it was long ago.
    let old = endpoint("web", "10.0.0.1");
    deliver(
        &mut mirror,
        delivery(Scope::Changes, vec![old.clone()], &[old], status(v1::SourceState::Loading)),
    );
    assert_eq!(services(&mirror), Vec::<String>::new());
}

/// Whether the mirror could go on with a Tower that offers this.
fn can_go_on(
    mirror: &Mirror,
    tower: &str,
    revision: u64,
    offered: v1::SourceStatus,
    holds: &[Resource],
) -> bool {
    let delivery =
        Delivery { to_revision: revision, ..delivery(Scope::Everything, holds.to_vec(), holds, offered) };
    mirror.can_go_on_with(&welcome(tower, None), &delivery)
}

#[test]
fn a_stream_takes_over_when_it_is_as_far() {
    let (mut mirror, web) = (Mirror::new("", NodeFacts::default()), endpoint("web", "10.0.0.1"));
    full(&mut mirror, at(9), std::slice::from_ref(&web));
    let other = |offered| can_go_on(&mirror, "other", 99, offered, &[]);
    assert!(other(at(9)) && other(at(10)));
    assert!(!other(at(8)) && !other(status(v1::SourceState::Loading)));
    assert!(can_go_on(&mirror, "other", 1, at(8), &[web]), "nothing differs");
    // The same run counts by revisions.
    assert!(can_go_on(&mirror, "run", 1, at(8), &[]));
    assert!(!can_go_on(&mirror, "run", 0, at(10), &[]));
}

#[test]
fn what_a_hand_over_leaves_different_is_asked_for() {
    let (web, api, new) =
        (endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"), endpoint("new", "10.0.0.1"));
    let mut mirror = Mirror::new("", NodeFacts::default());
    full(&mut mirror, at(9), std::slice::from_ref(&web));
    // It was made before `api` came on the stream that is left, and the other Tower has dropped that again.
    let start = delivery(
        Scope::Buckets { count: 1024, numbers: vec![] },
        vec![new.clone()],
        &[web.clone(), new.clone()],
        at(11),
    );
    deliver(
        &mut mirror,
        Delivery { ..delivery(Scope::Changes, vec![api.clone()], &[web.clone(), api], at(10)) },
    );
    mirror.hand_over(welcome("other", None), start);
    mirror.flush();
    assert_eq!(services(&mirror), ["api", "web"], "the last state of which it is known that it was one");
    assert!(mirror.take_comparison().is_some());
    let all = [new, web];
    deliver(&mut mirror, delivery(Scope::Buckets { count: 1, numbers: vec![0] }, all.to_vec(), &all, at(11)));
    assert_eq!(services(&mirror), ["new", "web"]);
    assert!(mirror.summary().equal_to_tower && mirror.is_sound());
}

#[test]
fn an_equal_store_does_not_let_a_tower_that_is_behind_go_back() {
    let (web, api) = (endpoint("web", "10.0.0.1"), endpoint("api", "10.0.0.1"));
    let mut mirror = Mirror::new("", NodeFacts::default());
    full(&mut mirror, at(9), std::slice::from_ref(&web));
    full(&mut mirror, at(5), std::slice::from_ref(&web));
    assert!(mirror.summary().equal_to_tower);
    assert_eq!(mirror.summary().sources[0].index, 9, "how far it has been read");
    // What was at 6, and not any more at 9.
    let both = [web.clone(), api];
    deliver(&mut mirror, delivery(Scope::Changes, vec![both[1].clone()], &both, at(6)));
    assert_eq!(services(&mirror), ["web"]);
    assert!(mirror.take_comparison().is_none());

    full(&mut mirror, at(5), std::slice::from_ref(&web));
    // From an equal store nothing has to be compared when it moves on.
    deliver(&mut mirror, delivery(Scope::Changes, vec![both[1].clone()], &both, at(10)));
    assert_eq!(services(&mirror), ["api", "web"]);
    assert!(mirror.summary().equal_to_tower && mirror.take_comparison().is_none());
    assert_eq!(mirror.summary().sources[0].index, 10);
}
