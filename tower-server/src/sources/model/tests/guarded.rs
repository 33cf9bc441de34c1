//! What is read no more, and what becomes of it.

use std::collections::BTreeSet;

use super::*;
use crate::sources::{
    format::{Factor, Select, WeightRule},
    guard::{Now, SETTLE},
};

const HOLD: Duration = Duration::from_secs(60);
const POLICY: Policy = Policy { hold: HOLD, settle: SETTLE, window: Duration::from_secs(90) };

impl Fixture {
    /// With so many members of web.
    fn with_members(members: u8) -> Self {
        let mut fixture = Self::guarded(POLICY);
        fixture.load(reading(10, 0..members));
        fixture
    }

    /// Lets time pass, as the actor does.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.model.next_judgement().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.publish();
        }
        self.now = end;
        self.publish();
    }

    fn publish(&mut self) {
        if let Some(transaction) = self.take() {
            self.store.apply(transaction);
        }
    }

    fn go(&mut self, index: u64, members: std::ops::Range<u8>) {
        self.change(index, members.map(|number| gone(&path(number), index)).collect());
    }

    fn held(&mut self) -> usize {
        self.model.guard().sizes().1
    }

    /// Another process, with what this one has left on disk.
    fn restarted(&mut self) -> Self {
        let now = Now { at: self.now, unix_ms: 1_000_000 };
        let (saved, record) = (self.model.save(), self.model.guard().record(now));
        let mut again = Self::guarded(POLICY);
        again.now = self.now;
        again.model.restore(saved, &record, now);
        again.publish();
        again
    }
}

fn path(number: u8) -> String {
    format!("/d/web/{number:03}")
}

fn member_of(number: u8, index: u64) -> Entry {
    entry(&path(number), 5, index, &[&format!("10.0.0.{number}:80")])
}

fn reading(index: u64, members: std::ops::Range<u8>) -> Load {
    load(index, vec![place("/d/web", 2, index)], members.map(|number| member_of(number, 5)).collect(), vec![])
}

#[test]
fn a_delete_that_a_create_follows_is_no_removal_and_delays_nothing_else() {
    let mut fixture = Fixture::with_members(3);
    fixture.go(11, 0..1);
    let changes = fixture.change(12, vec![Change::Entry(entry("/d/web/new", 12, 12, &["10.0.0.9:80"]))]);
    assert_eq!((changes.upserted.len(), changes.removed.len()), (1, 0), "additions do not wait");
    let again = entry("/d/web/other", 13, 13, &["10.0.0.0:80"]);
    assert!(fixture.change(13, vec![Change::Entry(again)]).upserted.is_empty());
    fixture.wait(HOLD);
    assert_eq!(fixture.endpoints("web").len(), 4);
}

#[test]
fn announced_within_the_same_reading_is_announced() {
    let mut fixture = Fixture::with_members(3);
    let mut draining = member_of(0, 11);
    draining.registrations[0].state = v1::endpoint::State::Draining;
    let mut parked = member_of(1, 11);
    parked.registrations[0].weight = Some(0.0);
    let changes = vec![
        Change::Entry(draining),
        Change::Entry(parked),
        gone(&path(0), 12),
        gone(&path(1), 12),
        gone(&path(2), 12),
    ];
    let changes = fixture.change(12, changes);
    assert_eq!(changes.removed.len(), 2);
    fixture.wait(SETTLE);
    assert_eq!((fixture.endpoints("web").len(), fixture.held()), (1, 1), "the last one had said nothing");
}

#[test]
fn a_root_that_goes_event_by_event_takes_nothing_with_it() {
    let mut fixture = Fixture::with_members(8);
    for number in 0..8 {
        fixture.go(11 + u64::from(number), number..number + 1);
        fixture.wait(Duration::from_millis(5));
    }
    fixture.change(20, vec![gone("/d/web", 20)]);
    fixture.load(Load { warning: Some("root /d is gone, or was never made".to_owned()), ..Load::default() });
    fixture.wait(HOLD * 100);
    assert_eq!((fixture.services(), fixture.endpoints("web").len()), (vec!["web".to_owned()], 8));
    assert_eq!((fixture.state(), fixture.held()), (v1::SourceState::Stale, 0), "not even judged");

    assert_eq!(fixture.model.adopt("none").unwrap().incarnation, "i1+1");
    fixture.publish();
    assert!(fixture.store.is_empty());
    assert_eq!(fixture.state(), v1::SourceState::Live);
}

#[test]
fn a_service_stays_as_long_as_something_of_it_is_held() {
    let mut fixture = Fixture::with_members(1);
    fixture.change(11, vec![gone("/d/web", 11)]);
    fixture.wait(HOLD - Duration::from_millis(1));
    assert_eq!((fixture.services(), fixture.held()), (vec!["web".to_owned()], 1));
    fixture.wait(Duration::from_millis(1));
    assert!(fixture.store.is_empty());
}

#[test]
fn a_reading_in_full_is_guarded_like_its_changes() {
    let mut fixture = Fixture::with_members(20);
    fixture.load(reading(30, 0..2));
    fixture.wait(SETTLE);
    assert_eq!((fixture.endpoints("web").len(), fixture.held()), (20, 18));
    fixture.load(reading(31, 0..15));
    assert_eq!(fixture.held(), 5);
    // Out of touch, time stands still for what is held.
    fixture.input(Input::OutOfTouch { reason: "the connection broke".to_owned() });
    fixture.wait(HOLD * 10);
    assert_eq!(fixture.endpoints("web").len(), 20);
    fixture.load(reading(31, 0..15));
    fixture.wait(POLICY.window);
    assert_eq!((fixture.endpoints("web").len(), fixture.held()), (15, 0));
}

#[test]
fn a_position_that_went_back_is_quarantined() {
    let older = |partial| Load { partial, ..reading(9, 0..3) };
    let mut fixture = Fixture::with_members(3);
    fixture.load(older(true));
    let reason = fixture.reason();
    assert!(reason.starts_with("/d/web is older than it was"), "{reason}");

    let mut fixture = Fixture::with_members(3);
    fixture.load(load(9, vec![], vec![], vec![]));
    let reason = fixture.reason();
    assert!(reason.starts_with("position 9 was found where 10 was read before"), "{reason}");
    assert_eq!((fixture.state(), fixture.endpoints("web").len()), (v1::SourceState::Stale, 3));
    // What could not be read may have the highest position.
    fixture
        .load(Load { partial: true, ..load(9, vec![], vec![], vec![problem("/d/web", "not authorized")]) });
    assert_eq!(fixture.state(), v1::SourceState::Live);
}

#[test]
fn what_is_adopted_is_what_is_there_by_then() {
    let mut fixture = Fixture::with_members(20);
    fixture.load(Load { incarnation: Some("i2".to_owned()), ..reading(3, 0..3) });
    fixture.change(4, vec![gone(&path(0), 4), Change::Entry(entry("/d/web/new", 4, 4, &["10.0.1.1:80"]))]);
    assert_eq!(fixture.endpoints("web").len(), 20);
    let report = fixture.model.quarantine().unwrap();
    assert_eq!((report.incarnation.as_str(), report.index, report.entries), ("i2", 4, 3));
    assert_eq!(report.published.incarnation, "i1");

    assert_eq!(
        fixture.model.adopt("i3"),
        Err(AdoptError::Another { expected: "i3".to_owned(), found: "i2".to_owned() })
    );
    assert_eq!(fixture.model.adopt("i2").unwrap(), Position { incarnation: "i2".to_owned(), index: 4 });
    fixture.publish();
    assert_eq!(fixture.endpoints("web"), ["10.0.0.1:80@zk", "10.0.0.2:80@zk", "10.0.1.1:80@zk"]);
    assert_eq!((fixture.state(), fixture.held()), (v1::SourceState::Live, 0));
    assert_eq!(fixture.model.adopt("i2"), Err(AdoptError::NotQuarantined("zk".to_owned())));
}

#[test]
fn an_earlier_time_that_is_adopted_is_a_history_of_its_own() {
    let mut fixture = Fixture::with_members(3);
    for (index, incarnation) in [(9, "i1+1"), (8, "i1+2")] {
        fixture.load(reading(index, 0..2));
        let adopted = fixture.model.adopt("i1").unwrap();
        assert_eq!(adopted, Position { incarnation: incarnation.to_owned(), index });
        fixture.publish();
        fixture.load(reading(index + 1, 0..2));
        assert_eq!(fixture.state(), v1::SourceState::Live);
        assert_eq!(fixture.model.position().unwrap().incarnation, incarnation);
        fixture.load(reading(index, 0..2));
        assert_eq!(fixture.state(), v1::SourceState::Stale);
        fixture.load(reading(index + 1, 0..2));
    }
}

#[test]
fn a_restart_serves_what_was_there_until_the_source_has_been_read() {
    let mut fixture = Fixture::with_members(20);
    fixture.change(11, vec![Change::Kept(problem(&path(19), "not JSON"))]);
    fixture.go(12, 0..12);
    fixture.wait(SETTLE);
    let mut again = fixture.restarted();
    assert_eq!(again.store.digest(), fixture.store.digest());
    assert_eq!((again.state(), again.held()), (v1::SourceState::Stale, 12));
    assert!(again.reason().contains("kept on disk"), "{}", again.reason());
    assert_eq!(again.store.sources().next().unwrap().position.as_ref().unwrap().index, 12);
    again.wait(HOLD * 10);
    assert_eq!(again.endpoints("web").len(), 20, "unread, nothing goes by time");

    // Read at last: one has come back, and one is still malformed.
    let mut found = reading(13, 11..19);
    found.kept.push(problem(&path(19), "not JSON"));
    let changes = again.load(found);
    assert!(changes.upserted.is_empty());
    assert_eq!(again.state(), v1::SourceState::Live);
    assert_eq!(again.endpoints("web").len(), 9, "the time of what was held was over");
    again.change(14, vec![gone(&path(19), 14)]);
    again.wait(SETTLE);
    assert_eq!(again.endpoints("web").len(), 8);
}

#[test]
fn a_restored_entry_that_cannot_be_read_stays_when_its_place_is_weighed_anew() {
    let mut again = Fixture::with_members(1).restarted();
    let mut found = reading(11, 1..2);
    found.kept.push(problem(&path(0), "not JSON"));
    found.entries[0].weights =
        vec![WeightRule { select: Select::Member("001".into()), factor: Factor::Times(2.0) }];
    again.load(found);
    again.wait(HOLD * 2);
    assert_eq!(again.endpoints("web").len(), 2);
}

#[test]
fn a_restart_meets_another_history_as_a_running_tower_does() {
    let mut again = Fixture::with_members(3).restarted();
    again.load(Load { incarnation: Some("i2".to_owned()), ..load(3, vec![], vec![], vec![]) });
    assert_eq!((again.state(), again.endpoints("web").len()), (v1::SourceState::Stale, 3));
    let mut once_more = again.restarted();
    once_more.load(Load { incarnation: Some("i2".to_owned()), ..load(3, vec![], vec![], vec![]) });
    assert_eq!(once_more.endpoints("web").len(), 3);
    once_more.model.adopt("i2").unwrap();
    once_more.publish();
    assert!(once_more.store.is_empty());
    assert!(once_more.restarted().store.is_empty());
}

#[test]
fn a_restart_knows_the_addresses_of_names() {
    let mut fixture = Fixture::guarded(POLICY);
    let named = |index| {
        load(index, vec![place("/d/web", 2, 5)], vec![entry("/d/web/a", 5, 5, &["h.example:80"])], vec![])
    };
    fixture.load(named(10));
    fixture.resolved("h.example", Ok(&["10.0.0.1"]));
    let mut again = fixture.restarted();
    assert_eq!(again.endpoints("web"), ["10.0.0.1:80@zk"]);
    again.load(named(11));
    assert_eq!(again.model.take_new_names(), BTreeSet::from(["h.example".into()]));
    again.wait(HOLD * 2);
    assert_eq!((again.endpoints("web").len(), again.state()), (1, v1::SourceState::Live));
}

#[test]
fn what_shrank_while_tower_did_not_run_is_held() {
    let mut again = Fixture::with_members(20).restarted();
    again.load(reading(11, 0..3));
    again.wait(SETTLE);
    assert_eq!((again.endpoints("web").len(), again.held()), (20, 17));
}
