//! Services, members, and what is wrong with them.

use prost::Message;

use super::*;

#[test]
fn endpoints_carry_what_was_registered_and_where() {
    let fixture = Fixture::loaded();
    assert_eq!(fixture.services(), ["api", "web"]);
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk"]);
    let resource = fixture.store.of_service("", v1::Kind::Endpoint, "web").next().unwrap();
    assert_eq!((&*resource.origin().source, resource.origin().index), ("zk", 5));
    let endpoint = v1::Endpoint::decode(resource.body().clone()).unwrap();
    assert_eq!((endpoint.address.as_str(), endpoint.port), ("10.0.0.1", 80));
}

#[test]
fn members_come_change_and_go() {
    let mut fixture = Fixture::loaded();
    fixture.change(11, vec![Change::Entry(entry("/d/web/b", 11, 11, &["10.0.0.2:80", "10.0.0.2:81"]))]);
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk", "10.0.0.2:80@zk", "10.0.0.2:81@zk"]);

    fixture.model.handle(
        Input::Changed {
            changes: vec![Change::Entry(entry("/d/web/b", 11, 12, &["10.0.0.2:82"]))],
            index: 12,
            events: 1,
        },
        fixture.now,
    );
    let moved = fixture.take().unwrap();
    assert_eq!((moved.upserts.len(), moved.removals.len()), (1, 2));
    assert!(moved.removals.iter().all(|(_, origin)| origin.index == 12));

    fixture
        .model
        .handle(Input::Changed { changes: vec![gone("/d/web/b", 13)], index: 13, events: 1 }, fixture.now);
    let removed = fixture.take().unwrap();
    assert!(removed.upserts.is_empty());
    assert_eq!(removed.removals[0].0.name.as_ref(), "10.0.0.2:82@zk");
    assert_eq!(removed.removals[0].1.index, 13);
    assert_eq!(removed.sources[0].position.as_ref().unwrap().index, 13);
}

#[test]
fn what_came_and_went_unpublished_is_never_published() {
    let mut fixture = Fixture::loaded();
    let add = Change::Entry(entry("/d/web/b", 11, 11, &["10.0.0.2:80"]));
    let changes = vec![add, gone("/d/web/b", 12), gone("/d/web/never", 12)];
    fixture.model.handle(Input::Changed { changes, index: 12, events: 3 }, fixture.now);
    assert_eq!(fixture.take(), None);
}

#[test]
fn a_service_lives_as_long_as_its_places() {
    let mut fixture = Fixture::loaded();
    let other = Place { service: "web".into(), ..place("/e/web", 11, 11) };
    fixture.change(11, vec![Change::Place(other)]);
    fixture.change(12, vec![gone("/d/web/a", 12), gone("/d/web", 12)]);
    assert_eq!(fixture.services(), ["api", "web"]);
    assert!(fixture.endpoints("web").is_empty());
    fixture
        .model
        .handle(Input::Changed { changes: vec![gone("/e/web", 13)], index: 13, events: 1 }, fixture.now);
    let last = fixture.take().unwrap();
    assert_eq!(
        last.removals.iter().map(|(key, origin)| (key.to_string(), origin.index)).collect::<Vec<_>>(),
        [("SERVICE web/zk".to_owned(), 13)]
    );
    // A place takes its entries with it.
    fixture.change(14, vec![Change::Entry(entry("/d/api/a", 14, 14, &["10.0.0.9:1"]))]);
    assert_eq!(fixture.endpoints("api").len(), 1);
    fixture.change(15, vec![gone("/d/api", 15)]);
    assert!(fixture.endpoints("api").is_empty());
}

#[test]
fn of_two_registrations_of_one_address_the_younger_is_in_force() {
    let mut fixture = Fixture::loaded();
    let mut younger = entry("/d/web/b", 11, 11, &["10.0.0.1:80"]);
    younger.registrations[0].weight = Some(2.0);
    fixture.change(11, vec![Change::Entry(younger)]);
    let weight = |fixture: &Fixture| {
        let resource = fixture.store.of_service("", v1::Kind::Endpoint, "web").next().unwrap();
        v1::Endpoint::decode(resource.body().clone()).unwrap().weight
    };
    assert_eq!(weight(&fixture), Some(2.0));
    assert!(fixture.problems().is_empty(), "a session that is about to expire is no problem");

    fixture
        .model
        .handle(Input::Changed { changes: vec![gone("/d/web/a", 12)], index: 12, events: 1 }, fixture.now);
    assert_eq!(fixture.take(), None, "the older one goes unnoticed");

    fixture.change(13, vec![Change::Entry(entry("/d/web/a", 13, 13, &["10.0.0.1:80"]))]);
    assert_eq!(weight(&fixture), None);
    fixture.change(14, vec![gone("/d/web/a", 14)]);
    assert_eq!(weight(&fixture), Some(2.0), "the other one is still there");
    let resource = fixture.store.of_service("", v1::Kind::Endpoint, "web").next().unwrap();
    assert_eq!(resource.origin().index, 14, "positions of a key never go back");
}

#[test]
fn between_equals_the_first_path_keeps_an_endpoint() {
    let mut fixture = Fixture::loaded();
    fixture.load(load(
        20,
        vec![place("/f/web", 1, 1)],
        vec![
            entry("/f/web/b.yaml", 0, 20, &["10.0.0.1:80"]),
            entry("/f/web/a.yaml", 0, 20, &["10.0.0.1:80"]),
        ],
        vec![],
    ));
    assert_eq!(
        fixture.problems(),
        ["/f/web/b.yaml: 10.0.0.1:80 of service \"web\" is in /f/web/a.yaml too, which keeps it"]
    );
    fixture.change(21, vec![gone("/f/web/a.yaml", 21)]);
    assert!(fixture.problems().is_empty());
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk"]);
}

#[test]
fn a_malformed_member_keeps_what_it_was_and_never_costs_its_siblings() {
    let mut fixture = Fixture::loaded();
    let changes = vec![
        Change::Kept(problem("/d/web/a", "not JSON")),
        Change::Kept(problem("/d/web/new", "no data")),
        Change::Entry(entry("/d/web/z", 11, 11, &["10.0.0.9:80"])),
    ];
    fixture.change(11, changes);
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk", "10.0.0.9:80@zk"]);
    assert_eq!(fixture.problems(), ["/d/web/a: not JSON", "/d/web/new: no data"]);
    assert_eq!(fixture.model.counters().malformed, 2);

    // A complete reading that finds the same is no news.
    fixture.load(load(
        11,
        vec![place("/d/web", 2, 11)],
        vec![entry("/d/web/z", 11, 11, &["10.0.0.9:80"])],
        vec![problem("/d/web/a", "not JSON"), problem("/d/web/new", "no data")],
    ));
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk", "10.0.0.9:80@zk"]);
    assert_eq!(fixture.model.counters().malformed, 2);

    // Mended, and deleted.
    fixture
        .change(12, vec![Change::Entry(entry("/d/web/a", 5, 12, &["10.0.0.3:80"])), gone("/d/web/new", 12)]);
    assert_eq!(fixture.endpoints("web"), ["10.0.0.3:80@zk", "10.0.0.9:80@zk"]);
    assert!(fixture.problems().is_empty());
    // Malformed, then deleted: gone.
    fixture.change(13, vec![Change::Kept(problem("/d/web/a", "no data"))]);
    fixture.change(14, vec![gone("/d/web/a", 14)]);
    assert_eq!(fixture.endpoints("web"), ["10.0.0.9:80@zk"]);
    assert!(fixture.problems().is_empty());
}

#[test]
fn a_complete_reading_removes_what_it_does_not_find() {
    let mut fixture = Fixture::loaded();
    fixture.change(11, vec![Change::Entry(entry("/d/api/x", 11, 11, &["10.1.0.1:80"]))]);
    fixture.model.handle(Input::Loaded(load(30, vec![place("/d/web", 2, 25)], vec![], vec![])), fixture.now);
    let transaction = fixture.take().unwrap();
    let removals: BTreeMap<String, u64> =
        transaction.removals.iter().map(|(key, origin)| (key.to_string(), origin.index)).collect();
    assert_eq!(
        removals,
        BTreeMap::from([
            // Its directory tells when a member last went, the others are gone with theirs.
            ("ENDPOINT web/10.0.0.1:80@zk".to_owned(), 25),
            ("ENDPOINT api/10.1.0.1:80@zk".to_owned(), 30),
            ("SERVICE api/zk".to_owned(), 30),
        ])
    );
}

#[test]
fn what_cannot_be_read_stays_with_all_that_is_below() {
    let mut fixture = Fixture::loaded();
    let kept = vec![problem("/d/web", "not authorized")];
    fixture.load(load(30, vec![place("/d/api", 3, 3)], vec![], kept));
    assert_eq!(fixture.services(), ["api", "web"]);
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk"]);
    assert_eq!(fixture.problems(), ["/d/web: not authorized"]);
    // A name that merely begins alike is not below.
    let mut fixture = Fixture::loaded();
    fixture.load(load(30, vec![], vec![], vec![problem("/d/we", "not authorized")]));
    assert!(fixture.endpoints("web").is_empty());
}

#[test]
fn a_place_has_so_many_members_and_no_more() {
    let mut fixture = Fixture::loaded();
    let member = |number: usize| {
        let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
        Change::Entry(entry(&format!("/d/api/{number:05}"), 11, 11, &[&format!("10.1.{high}.{low}:80")]))
    };
    fixture.change(11, (0..=MAX_MEMBERS).map(member).collect());
    assert_eq!(fixture.endpoints("api").len(), MAX_MEMBERS);
    assert_eq!(fixture.problems(), ["/d/api: more than 20000 members; those that came last are left out"]);
    // One that is there already may change, and room is made by those that go.
    fixture.change(12, vec![gone("/d/api/00000", 12), member(MAX_MEMBERS)]);
    assert_eq!(fixture.endpoints("api").len(), MAX_MEMBERS);
}

#[test]
fn names_of_services() {
    for name in ["web", "My Service", "a.b_c-d", "ü", &"x".repeat(253)] {
        assert!(check_service_name(name).is_ok(), "{name}");
    }
    for (name, message) in [
        ("", "the service's name is empty"),
        ("a\nb", "the service's name has control characters"),
        (&"x".repeat(254), "the service's name has 254 bytes, more than 253"),
    ] {
        assert_eq!(check_service_name(name).unwrap_err().to_string(), message);
    }
}
