//! States, positions, and whose contents they are.

use super::*;

#[test]
fn a_source_is_announced_as_loading_and_then_live() {
    let mut fixture = Fixture::new();
    let first = fixture.take().unwrap();
    assert!(first.upserts.is_empty() && first.removals.is_empty());
    assert_eq!(first.sources[0].state(), v1::SourceState::Loading);
    assert_eq!(first.sources[0].position, None);
    assert!(fixture.take().is_none(), "nothing changed since");

    fixture.model.handle(Input::Loaded(load(7, vec![place("/d/web", 2, 5)], vec![], vec![])), fixture.now);
    let second = fixture.take().unwrap();
    assert_eq!(second.sources[0].state(), v1::SourceState::Live);
    let position = second.sources[0].position.clone().unwrap();
    assert_eq!((position.source.as_str(), position.incarnation.as_str(), position.index), ("zk", "i1", 7));
    assert_eq!(second.upserts.len(), 1);
    assert_eq!(second.upserts[0].key().to_string(), "SERVICE web/zk");
    assert_eq!(second.upserts[0].origin().index, 2);
}

#[test]
fn reading_the_same_again_changes_nothing() {
    let mut fixture = Fixture::loaded();
    let same = || {
        load(
            10,
            vec![place("/d/web", 2, 5), place("/d/api", 3, 3)],
            vec![entry("/d/web/a", 5, 5, &["10.0.0.1:80"])],
            vec![],
        )
    };
    fixture.model.handle(Input::Loaded(same()), fixture.now);
    assert_eq!(fixture.take(), None);
    // Written again with the same contents: the position moves, and nothing else.
    let again = Change::Entry(entry("/d/web/a", 5, 12, &["10.0.0.1:80"]));
    fixture.model.handle(Input::Changed { changes: vec![again], index: 12, events: 1 }, fixture.now);
    assert_eq!(fixture.take(), None);
    let position = fixture.model.take_transaction(fixture.now, true).unwrap();
    assert!(position.upserts.is_empty());
    assert_eq!(position.sources[0].position.as_ref().unwrap().index, 12);
}

#[test]
fn out_of_touch_is_stale_then_lost_and_never_a_removal() {
    let mut fixture = Fixture::loaded();
    let changes = fixture.input(Input::OutOfTouch { reason: "the connection broke".to_owned() });
    assert!(changes.removed.is_empty());
    assert_eq!(
        (fixture.state(), fixture.reason().as_str()),
        (v1::SourceState::Stale, "the connection broke")
    );
    fixture.now += LOST_AFTER - Duration::from_millis(1);
    assert_eq!(fixture.take(), None);
    fixture.input(Input::OutOfTouch { reason: "no server".to_owned() });
    fixture.now += Duration::from_millis(1);
    let lost = fixture.take().unwrap();
    assert_eq!(lost.sources[0].state(), v1::SourceState::Lost, "since it was out of touch first");
    assert!(lost.sources[0].position.is_some());
    fixture.store.apply(lost);
    assert_eq!(fixture.endpoints("web").len(), 1);

    fixture.load(load(
        31,
        vec![place("/d/web", 2, 5)],
        vec![entry("/d/web/a", 5, 5, &["10.0.0.1:80"])],
        vec![],
    ));
    assert_eq!((fixture.state(), fixture.reason().as_str()), (v1::SourceState::Live, ""));
    assert_eq!(fixture.model.counters().reconnects, 1);
}

#[test]
fn a_source_that_was_never_read_is_loading_however_long_it_takes() {
    let mut fixture = Fixture::new();
    fixture.input(Input::OutOfTouch { reason: "no server".to_owned() });
    fixture.now += LOST_AFTER * 100;
    fixture.input(Input::OutOfTouch { reason: "no server yet".to_owned() });
    assert_eq!((fixture.state(), fixture.reason().as_str()), (v1::SourceState::Loading, "no server yet"));
    // Changes without a reading to build on are nothing.
    fixture.change(5, vec![Change::Entry(entry("/d/web/a", 5, 5, &["10.0.0.1:80"]))]);
    assert!(fixture.store.is_empty());
}

#[test]
fn a_root_that_was_never_made_is_known_to_be_empty() {
    let mut fixture = Fixture::new();
    let missing =
        || Load { warning: Some("root /d is gone, or was never made".to_owned()), ..Load::default() };
    fixture.load(missing());
    assert_eq!((fixture.state(), fixture.reason()), (v1::SourceState::Live, missing().warning.unwrap()));
    assert_eq!(fixture.model.position(), Some(&Position { incarnation: String::new(), index: 0 }));
    fixture.load(load(9, vec![place("/d/web", 2, 5)], vec![], vec![]));
    assert_eq!((fixture.services().len(), fixture.reason().as_str()), (1, ""));
    assert_eq!(fixture.model.position().unwrap().incarnation, "i1");

    fixture.load(missing());
    assert_eq!(fixture.services(), ["web"]);
    assert_eq!(fixture.state(), v1::SourceState::Stale);
    assert!(fixture.reason().starts_with(&missing().warning.unwrap()), "{}", fixture.reason());
    assert_eq!(fixture.model.position().unwrap().index, 9);
}

#[test]
fn another_incarnation_is_not_adopted_while_something_is_held() {
    let mut fixture = Fixture::loaded();
    let other = || Load { incarnation: Some("i2".to_owned()), ..load(3, vec![], vec![], vec![]) };
    fixture.load(other());
    assert_eq!(fixture.endpoints("web").len(), 1);
    assert_eq!(fixture.state(), v1::SourceState::Stale);
    let reason = fixture.reason();
    assert!(
        reason.contains("\"i1\"") && reason.contains("\"i2\"") && reason.contains("/sources/zk/adopt"),
        "{reason}"
    );
    // Changes of the other history are not ours.
    fixture.change(4, vec![gone("/d/web/a", 4), Change::Entry(entry("/d/web/b", 4, 4, &["10.0.0.2:80"]))]);
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk"]);
    assert_eq!(fixture.model.position().unwrap().index, 10);
    // The old one back again.
    fixture.load(load(12, vec![place("/d/web", 2, 11)], vec![], vec![]));
    assert_eq!(fixture.state(), v1::SourceState::Live);
    assert!(fixture.endpoints("web").is_empty());
    fixture.change(13, vec![gone("/d/web", 13)]);
    fixture.load(other());
    assert_eq!(
        (fixture.state(), fixture.model.position().unwrap().index),
        (v1::SourceState::Live, 3),
        "nothing was held"
    );
}

#[test]
fn positions_never_go_back_within_an_incarnation() {
    let mut fixture = Fixture::loaded();
    fixture.change(50, vec![]);
    fixture.change(40, vec![]);
    fixture.load(load(45, vec![place("/d/web", 2, 5)], vec![], vec![]));
    assert_eq!(fixture.model.position().unwrap().index, 50);
}
