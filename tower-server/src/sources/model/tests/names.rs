//! Host names and their addresses.

use super::*;

#[test]
fn names_become_addresses_and_keep_the_last_good_ones() {
    let mut fixture = Fixture::new();
    fixture.load(load(
        10,
        vec![place("/d/web", 2, 5)],
        vec![
            entry("/d/web/a", 5, 5, &["h.example:80"]),
            entry("/d/web/b", 6, 6, &["H.example:81", "10.0.0.9:80"]),
        ],
        vec![],
    ));
    assert_eq!(fixture.endpoints("web"), ["10.0.0.9:80@zk"]);
    assert_eq!(fixture.state(), v1::SourceState::Loading, "what a name stands for is not known yet");
    assert_eq!(fixture.model.take_new_names(), BTreeSet::from(["h.example".into()]));
    assert!(fixture.model.take_new_names().is_empty());

    fixture.resolved("h.example", Ok(&["10.0.0.2", "10.0.0.1", "10.0.0.2"]));
    assert_eq!(fixture.state(), v1::SourceState::Live);
    let all = ["10.0.0.1:80@zk", "10.0.0.1:81@zk", "10.0.0.2:80@zk", "10.0.0.2:81@zk", "10.0.0.9:80@zk"];
    assert_eq!(fixture.endpoints("web"), all);

    fixture.resolved("h.example", Err("no answer"));
    assert_eq!(fixture.endpoints("web"), all);
    assert_eq!(
        fixture.problems(),
        ["/d/web/a: host name \"h.example\": no answer", "/d/web/b: host name \"h.example\": no answer"]
    );
    // One more with a name that cannot be resolved has the same problem from the start.
    fixture.change(11, vec![Change::Entry(entry("/d/web/c", 11, 11, &["h.example:82"]))]);
    assert_eq!(fixture.problems().len(), 3);

    fixture.resolved("h.example", Ok(&["10.0.0.1"]));
    assert!(fixture.problems().is_empty());
    assert_eq!(
        fixture.endpoints("web"),
        ["10.0.0.1:80@zk", "10.0.0.1:81@zk", "10.0.0.1:82@zk", "10.0.0.9:80@zk"]
    );

    fixture.resolved("h.example", Err("no answer"));
    fixture.change(
        12,
        vec![
            gone("/d/web/a", 12),
            gone("/d/web/c", 12),
            Change::Entry(entry("/d/web/b", 6, 12, &["10.0.0.9:80"])),
        ],
    );
    assert_eq!(fixture.endpoints("web"), ["10.0.0.9:80@zk"]);
    assert!(fixture.problems().is_empty());
    assert_eq!(fixture.model.names().count(), 0);
    fixture.resolved("h.example", Ok(&["10.0.0.1"]));
    assert_eq!(fixture.endpoints("web").len(), 1, "an answer that comes too late");
}

#[test]
fn a_name_that_fails_at_first_does_not_hold_the_source_up() {
    let mut fixture = Fixture::new();
    fixture.load(load(
        10,
        vec![place("/d/web", 2, 5)],
        vec![entry("/d/web/a", 5, 5, &["h.example:80"])],
        vec![],
    ));
    fixture.resolved("h.example", Err("does not exist"));
    assert_eq!(fixture.state(), v1::SourceState::Live);
    assert_eq!(fixture.problems().len(), 1);
    assert!(fixture.endpoints("web").is_empty());
}

#[test]
fn a_name_and_an_address_of_the_same_host_are_one_endpoint() {
    let mut fixture = Fixture::loaded();
    fixture.change(11, vec![Change::Entry(entry("/d/web/b", 11, 11, &["h.example:80"]))]);
    fixture.resolved("h.example", Ok(&["10.0.0.1"]));
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk"]);
    fixture.change(12, vec![gone("/d/web/a", 12)]);
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk"]);
}

#[test]
fn hosts_of_registrations_are_what_the_model_is_told() {
    // The fixture's shorthand is worth its name only if names stay names.
    assert_eq!(entry("/d/web/a", 1, 1, &["h:1"]).registrations[0].host, Host::Name("h".into()));
}
