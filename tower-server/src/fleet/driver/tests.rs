//! What is decided by what is seen.

mod flow;

use tower_proto::v1::held_release::State as Said;

use super::{
    super::{
        standing::HostStanding,
        testing::{held, node, report},
    },
    *,
};
use crate::registry::steps::careful;

/// An activation at a step, with what Towers have reported of it: (Tower, hosts, accepted).
fn record(step: u32, reports: &[(&str, u32, u32)]) -> v1::ActivationRecord {
    let started = v1::ActivationStarted {
        activation: "web-7".into(),
        release: "r2".into(),
        audience: Some(v1::Audience::default()),
        steps: careful(&v1::Audience::default(), "h0", "web-7"),
        ..Default::default()
    };
    let reports = reports.iter().map(|(tower, hosts, accepted)| v1::ActivationReported {
        activation: "web-7".into(),
        step,
        tower: (*tower).into(),
        hosts: *hosts,
        accepted: *accepted,
    });
    v1::ActivationRecord { started: Some(started), step, reports: reports.collect(), ..Default::default() }
}

/// Hosts of which each has said this.
fn sight_of(said: &[Option<Said>]) -> Sight {
    let fleet = Fleet::default();
    for (number, said) in said.iter().enumerate() {
        let name = format!("h{number}");
        fleet.connect(&node(&name, "a"), number as u64);
        match said {
            Some(said) => fleet.report(&name, number as u64, &report(5, &[held("web", "r2", *said)])),
            None => fleet.disconnect(&name, number as u64),
        }
    }
    let assignment = v1::Assignment { rules: Vec::new(), default_release: "r2".into() };
    let question = Question { service: "web", assignment: &assignment, revision: 5, since_unix_ms: u64::MAX };
    Sight::new(standing(&fleet, question, &[v1::Audience::default()]), clock::unix_millis())
}

const SECOND: Duration = Duration::from_secs(1);

fn decided(
    record: &v1::ActivationRecord,
    said: &[Option<Said>],
    members: &[&str],
    seconds: u32,
) -> Option<Next> {
    let members: Vec<String> = members.iter().map(|member| (*member).to_owned()).collect();
    let times = Times {
        in_step: SECOND * seconds,
        accepted_for: next::is_accepted(record, &members).then_some(SECOND * seconds),
        deadline: SECOND * 60,
    };
    next(record, &sight_of(said), "a", times)
}

#[test]
fn a_step_is_reported_when_every_host_with_an_envoy_has_accepted_it() {
    let fresh = record(0, &[]);
    let decided = |said: &[Option<Said>]| decided(&fresh, said, &["a"], 0);
    assert_eq!(decided(&[Some(Said::Accepted), Some(Said::Pending)]), None);
    assert_eq!(decided(&[Some(Said::Accepted), Some(Said::Unknown)]), None);
    assert_eq!(decided(&[Some(Said::Accepted), Some(Said::Host)]), None);
    let all = [Some(Said::Accepted), Some(Said::Accepted), Some(Said::Applied), None];
    assert_eq!(decided(&all), Some(Next::Report { hosts: 2, accepted: 2 }));
    assert_eq!(decided(&[]), Some(Next::Report { hosts: 0, accepted: 0 }), "other Towers may have hosts");
    let mut many = vec![Some(Said::Accepted); 19];
    many.push(Some(Said::Host));
    assert_eq!(decided(&many), Some(Next::Report { hosts: 20, accepted: 19 }), "a fault of one host");
}

#[test]
fn the_first_rejection_ends_it_whatever_else_is_so() {
    let said = [Some(Said::Accepted), Some(Said::Rejected), Some(Said::Pending)];
    for record in [record(0, &[]), record(1, &[("a", 1, 1)]), record(2, &[("a", 3, 3)])] {
        let Some(Next::Rejected(rejection)) = decided(&record, &said, &["a"], 100) else {
            panic!("it goes on");
        };
        assert_eq!((&*rejection.host, &*rejection.client, &*rejection.error), ("h1", "envoy", "it is wrong"));
    }
}

#[test]
fn a_step_follows_when_all_towers_have_accepted_and_it_has_stood() {
    let all = [Some(Said::Accepted)];
    let decided = |reports: &[(&str, u32, u32)], members: &[&str], seconds| {
        decided(&record(0, reports), &all, members, seconds)
    };
    assert_eq!(decided(&[("a", 1, 1)], &["a"], 2), None, "it stands for three seconds");
    assert_eq!(decided(&[("a", 1, 1)], &["a"], 3), Some(Next::Step(1)));
    assert_eq!(decided(&[("a", 1, 1)], &["a", "b"], 30), None, "another Tower has not said so");
    assert_eq!(decided(&[("a", 1, 1), ("b", 0, 0)], &["a", "b"], 3), Some(Next::Step(1)));
    assert_eq!(decided(&[("a", 1, 1), ("gone", 1, 1)], &["a"], 3), Some(Next::Step(1)));
}

#[test]
fn the_last_step_is_success_only_if_somebody_has_accepted() {
    let all = [Some(Said::Accepted)];
    assert_eq!(decided(&record(2, &[("a", 1, 1)]), &all, &["a"], 0), Some(Next::Succeeded));
    let nobody = record(2, &[("a", 0, 0)]);
    assert_eq!(decided(&nobody, &[None], &["a"], 30), None, "no host is no success");
    assert_eq!(
        decided(&nobody, &all, &["a"], 0),
        Some(Next::Report { hosts: 1, accepted: 1 }),
        "until one comes"
    );
    let Some(Next::TimedOut(why)) = decided(&nobody, &[None], &["a"], 60) else {
        panic!("it waits for ever")
    };
    assert_eq!(why, "step 3: no host has accepted it; of 1 hosts 1 are silent");
}

#[test]
fn who_holds_it_up_is_named() {
    let said = [Some(Said::Accepted), Some(Said::Pending)];
    let Some(Next::TimedOut(why)) = decided(&record(0, &[]), &said, &["a"], 60) else { panic!("it waits") };
    assert_eq!(why, "step 1: 1 of 2 hosts have accepted it; not h1 (an Envoy has not answered yet)");
    let waiting = |record: &v1::ActivationRecord, said: &[Option<Said>]| {
        waiting(record, &sight_of(said), &["a".into(), "b".into()])
    };
    assert_eq!(waiting(&record(0, &[]), &said), "waits for h1 (an Envoy has not answered yet)");
    assert_eq!(waiting(&record(0, &[("a", 1, 1)]), &said[..1]), "waits for the word of Tower b");
    let nobody = record(0, &[("a", 0, 0), ("b", 0, 0)]);
    assert!(waiting(&nobody, &[None]).starts_with("no connected host"));
}

#[test]
fn a_host_that_was_lost_is_waited_for_a_while() {
    let lost = |ago_ms: u64| HostStanding {
        host: "h1".into(),
        state: super::super::standing::HostState::Lost,
        wanted: "r2".into(),
        release: String::new(),
        why: String::new(),
        since_unix_ms: 100_000 - ago_ms,
        rejection: None,
    };
    let times = Times { in_step: SECOND, accepted_for: None, deadline: SECOND * 60 };
    let decided = |ago_ms| next(&record(0, &[]), &Sight::new(vec![lost(ago_ms)], 100_000), "a", times);
    assert_eq!(decided(29_000), None);
    assert_eq!(decided(30_000), Some(Next::Report { hosts: 0, accepted: 0 }));
}
