//! What happens to registries, and what is made of it.

use super::*;

#[test]
fn what_shrinks_by_less_than_the_limit_leaves_after_a_moment() {
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..10);
    assert_eq!(fixture.published("web"), 20, "it may come back at once");
    fixture.wait(SETTLE - Duration::from_millis(1));
    assert_eq!(fixture.published("web"), 20);
    fixture.wait(Duration::from_millis(1));
    assert_eq!((fixture.published("web"), fixture.held()), (10, (0, 0)));
}

#[test]
fn a_shrink_beyond_the_limit_is_held_and_then_passes() {
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..11);
    fixture.settle();
    assert_eq!((fixture.published("web"), fixture.held()), (20, (1, 11)));
    let [report] = &fixture.reports()[..] else { panic!("one hold") };
    assert_eq!((report.id.as_str(), report.service.as_deref()), ("zk-1", Some("web")));
    assert_eq!((report.largest, report.left, report.endpoint_count), (20, 9, 11));
    assert_eq!(report.endpoints[0], "web/10.0.0.0:80");
    assert_eq!(report.ends_unix_ms - report.since_unix_ms, 59_500, "a minute from when they went");

    fixture.wait(HOLD - SETTLE - Duration::from_millis(1));
    assert_eq!(fixture.published("web"), 20);
    fixture.wait(Duration::from_millis(1));
    assert_eq!((fixture.published("web"), fixture.held()), (9, (0, 0)));
    assert_eq!(fixture.guard.counters(), Counters { held: 11, expired: 11, ..Counters::default() });
}

#[test]
fn the_last_endpoint_is_held_and_a_real_scale_to_zero_gets_through() {
    let mut fixture = Fixture::with(1);
    fixture.deregister("web", 0..1);
    fixture.settle();
    assert_eq!((fixture.published("web"), fixture.held()), (1, (1, 1)));
    fixture.wait(HOLD);
    assert_eq!((fixture.published("web"), fixture.held()), (0, (0, 0)));
}

#[test]
fn what_was_announced_leaves_at_once_and_counts_as_no_loss() {
    let mut fixture = Fixture::with(20);
    fixture.announce("web", 0..20);
    fixture.deregister("web", 0..19);
    assert_eq!((fixture.published("web"), fixture.held()), (1, (0, 0)));
    fixture.deregister("web", 19..20);
    assert_eq!(fixture.published("web"), 0);

    // Half of it announced, and then nearly all the rest not.
    let mut fixture = Fixture::with(20);
    fixture.announce("web", 0..10);
    fixture.deregister("web", 0..10);
    fixture.deregister("web", 10..16);
    fixture.settle();
    assert_eq!((fixture.published("web"), fixture.held()), (10, (1, 6)));
    assert_eq!(fixture.reports()[0].largest, 10);
}

#[test]
fn the_last_endpoint_in_service_is_the_last_one() {
    let mut fixture = Fixture::with(2);
    fixture.announce("web", 0..1);
    fixture.deregister("web", 1..2);
    fixture.settle();
    assert_eq!((fixture.published("web"), fixture.held()), (2, (1, 1)));
}

#[test]
fn deleted_and_created_again_is_no_removal() {
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..20);
    fixture.wait(SETTLE - Duration::from_millis(1));
    fixture.register("web", 0..20);
    fixture.wait(HOLD * 2);
    assert_eq!((fixture.published("web"), fixture.guard.counters()), (20, Counters::default()));
}

#[test]
fn what_registers_again_is_held_no_more() {
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..20);
    fixture.settle();
    fixture.register("web", 0..12);
    assert_eq!((fixture.published("web"), fixture.held()), (20, (1, 8)));
    fixture.wait(HOLD);
    assert_eq!((fixture.published("web"), fixture.held()), (12, (0, 0)));
    let counters = fixture.guard.counters();
    assert_eq!((counters.held, counters.returned, counters.expired), (20, 12, 8));
}

#[test]
fn replacements_offset_losses() {
    // In time: nothing is held.
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..20);
    fixture.register("web", 100..118);
    fixture.settle();
    assert_eq!((fixture.published("web"), fixture.held()), (18, (0, 0)));
    // Later: what is held leaves when as many have come as were lost.
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..20);
    fixture.settle();
    fixture.register("web", 100..119);
    assert_eq!((fixture.published("web"), fixture.held()), (39, (1, 20)));
    fixture.register("web", 119..120);
    assert_eq!((fixture.published("web"), fixture.held()), (20, (0, 0)));
    assert_eq!(fixture.guard.counters().replaced, 20);
}

#[test]
fn an_address_that_registers_for_another_service_is_dropped_at_once() {
    let mut fixture = Fixture::with(3);
    fixture.deregister("web", 0..3);
    fixture.register("api", 2..3);
    assert_eq!(fixture.published("web"), 2, "it need not even be held");
    fixture.settle();
    assert_eq!(fixture.held(), (1, 2));
    fixture.register("api", 0..1);
    assert_eq!((fixture.published("web"), fixture.held()), (1, (1, 1)));
    assert_eq!(fixture.guard.counters().dropped, 1);
    // Another port of the host says nothing about this one.
    let neighbour = EndpointKey { port: 81, ..key("api", 1) };
    fixture.tell(&neighbour, Registered::InService);
    fixture.leave();
    assert_eq!(fixture.published("web"), 1);
}

#[test]
fn an_address_of_two_services_may_go_and_return_with_both() {
    let mut fixture = Fixture::with(3);
    fixture.register("alias", 0..3);
    fixture.deregister("alias", 0..3);
    fixture.deregister("web", 0..3);
    fixture.settle();
    assert_eq!(fixture.held(), (2, 6));
    fixture.register("alias", 0..3);
    assert_eq!((fixture.published("web"), fixture.published("alias")), (3, 3));
    assert_eq!(fixture.held(), (1, 3));
}

#[test]
fn many_services_that_lose_some_at_once_are_a_loss_of_the_source() {
    let mut fixture = Fixture::new(POLICY);
    let services: Vec<String> = (0..10).map(|number| format!("service-{number}")).collect();
    for service in &services {
        fixture.register(service, 0..3);
    }
    // Two of three, nowhere beyond the limit of a service.
    for service in &services {
        fixture.deregister(service, 0..2);
    }
    fixture.settle();
    assert_eq!(fixture.published.len(), 30);
    let [report] = &fixture.reports()[..] else { panic!("one hold") };
    assert_eq!((&report.service, report.largest, report.left, report.endpoint_count), (&None, 30, 10, 20));
    fixture.wait(HOLD);
    assert_eq!((fixture.published.len(), fixture.held()), (10, (0, 0)));
}

#[test]
fn the_whole_source_may_go_one_by_one() {
    let mut fixture = Fixture::new(POLICY);
    for service in ["a", "b", "c"] {
        fixture.register(service, 0..4);
    }
    for service in ["a", "b", "c"] {
        for host in 0..4 {
            fixture.deregister(service, host..host + 1);
            fixture.wait(Duration::from_millis(20));
        }
    }
    fixture.settle();
    assert_eq!(fixture.published.len(), 12, "within a moment it is one event");
}

#[test]
fn a_slow_decline_is_compared_with_what_was_there_within_the_window() {
    let mut fixture = Fixture::with(20);
    for host in 0..18 {
        fixture.deregister("web", host..host + 1);
        fixture.wait(Duration::from_secs(20));
    }
    assert_eq!((fixture.published("web"), fixture.guard.counters().held), (2, 0));
    let mut fixture = Fixture::with(20);
    for host in 0..11 {
        fixture.deregister("web", host..host + 1);
        fixture.wait(Duration::from_secs(2));
    }
    assert_eq!((fixture.published("web"), fixture.held()), (10, (1, 1)), "the eleventh is held");
}

#[test]
fn an_operator_releases_a_hold_and_what_follows_is_a_new_shrink() {
    let mut fixture = Fixture::with(30);
    fixture.deregister("web", 0..16);
    fixture.settle();
    assert_eq!(fixture.guard.id_of("zk", "zk-2"), None);
    assert_eq!(fixture.guard.id_of("files", "zk-1"), None);
    let id = fixture.guard.id_of("zk", "zk-1").unwrap();
    assert_eq!(fixture.guard.release(id), Some(16));
    assert_eq!(fixture.guard.release(id), None);
    fixture.frozen = true;
    fixture.leave();
    assert_eq!((fixture.published("web"), fixture.held()), (14, (0, 0)), "whatever the source says");
    fixture.frozen = false;
    fixture.deregister("web", 16..22);
    fixture.settle();
    assert_eq!((fixture.published("web"), fixture.held()), (8, (0, 0)));
    fixture.deregister("web", 22..24);
    fixture.settle();
    assert_eq!((fixture.published("web"), fixture.held()), (8, (1, 2)));
    assert_eq!(fixture.reports()[0].id, "zk-2");
}

#[test]
fn nothing_leaves_while_the_source_is_out_of_touch_and_for_a_while_after() {
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..20);
    fixture.settle();
    fixture.frozen = true;
    fixture.wait(HOLD * 10);
    assert_eq!(fixture.published("web"), 20);
    fixture.frozen = false;
    fixture.guard.reconnected(fixture.now);
    fixture.wait(POLICY.window - Duration::from_millis(1));
    assert_eq!((fixture.published("web"), fixture.held()), (20, (1, 20)));
    fixture.wait(Duration::from_millis(1));
    assert_eq!(fixture.published("web"), 0);
}

#[test]
fn a_mass_expiry_after_an_outage_is_compared_with_what_was_there_before_it() {
    let mut fixture = Fixture::with(20);
    fixture.frozen = true;
    fixture.wait(HOLD * 10);
    fixture.frozen = false;
    fixture.guard.reconnected(fixture.now);
    fixture.wait(Duration::from_secs(40));
    fixture.deregister("web", 5..20);
    fixture.wait(HOLD - Duration::from_millis(1));
    assert_eq!((fixture.published("web"), fixture.held()), (20, (1, 15)));
}

#[test]
fn without_a_hold_only_a_moment_is_waited() {
    let mut fixture = Fixture::new(Policy { hold: Duration::ZERO, ..POLICY });
    fixture.register("web", 0..20);
    fixture.deregister("web", 0..20);
    assert_eq!(fixture.published("web"), 20);
    fixture.settle();
    assert_eq!((fixture.published("web"), fixture.guard.counters()), (0, Counters::default()));
}

#[test]
fn what_was_accepted_is_what_the_next_shrink_is_compared_with() {
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..14);
    fixture.settle();
    fixture.guard.accept();
    fixture.leave();
    assert_eq!((fixture.published("web"), fixture.held()), (6, (0, 0)));
    fixture.deregister("web", 14..19);
    fixture.settle();
    assert_eq!(fixture.published("web"), 1, "five of six");
}

#[test]
fn holds_survive_a_restart_and_what_left_them_does_not_return() {
    let mut fixture = Fixture::with(20);
    fixture.deregister("web", 0..12);
    fixture.settle();
    // One is lost to another service, which the last snapshot does not know.
    fixture.register("api", 11..12);
    let now = Now { at: fixture.now, unix_ms: 5_000_000 };
    assert!(fixture.guard.is_record_old());
    let record = fixture.guard.record(now);
    assert!(!fixture.guard.is_record_old(), "nothing changed since");
    let record: Record = serde_json::from_slice(&serde_json::to_vec(&record).unwrap()).unwrap();

    let restart = |after: Duration, policy: Policy| {
        let mut again = Fixture::new(policy);
        let unix_ms = now.unix_ms + u64::try_from(after.as_millis()).unwrap();
        let published = (0..20).map(|host| key("web", host)).filter(|key| !record.has_left(key));
        for key in published {
            again.tell(&key, Registered::InService);
        }
        let held = again.guard.restore(&record, &again.published, Now { at: again.now, unix_ms });
        for key in held {
            again.registered.insert(key, Registered::No);
        }
        again.leave();
        again
    };
    let mut again = restart(Duration::from_secs(20), POLICY);
    assert_eq!((again.published("web"), again.held()), (19, (1, 11)));
    assert_eq!((again.reports()[0].id.as_str(), again.reports()[0].largest), ("zk-1", 20));
    again.register("web", 0..1);
    again.wait(HOLD - SETTLE - Duration::from_secs(20) - Duration::from_millis(1));
    assert_eq!((again.published("web"), again.held()), (19, (1, 10)));
    again.wait(Duration::from_millis(1));
    assert_eq!(again.published("web"), 9);

    // A clock that was set back meanwhile holds for the whole time again, but not for longer.
    let mut again = restart(Duration::ZERO, POLICY);
    again.wait(HOLD);
    assert_eq!(again.published("web"), 8);
    // What is not to be held any more is not.
    let again = restart(Duration::ZERO, Policy { hold: Duration::ZERO, ..POLICY });
    assert_eq!(again.published("web"), 8);
}

#[test]
fn what_a_snapshot_has_is_not_recorded_any_more() {
    let mut fixture = Fixture::with(1);
    let record = |fixture: &mut Fixture| fixture.guard.record(Now { at: fixture.now, unix_ms: 0 });
    fixture.deregister("web", 0..1);
    fixture.settle();
    fixture.wait(HOLD);
    assert!(record(&mut fixture).has_left(&key("web", 0)));
    fixture.guard.snapshot_taken();
    fixture.guard.snapshot_written(false);
    assert!(!fixture.guard.is_record_old() && record(&mut fixture).has_left(&key("web", 0)));
    fixture.guard.snapshot_taken();
    fixture.guard.snapshot_written(true);
    assert!(fixture.guard.is_record_old() && !record(&mut fixture).has_left(&key("web", 0)));
}
