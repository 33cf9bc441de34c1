//! What people and Towers do to activations, in the order in which it goes wrong elsewhere.

use tower_common::audience::{AudienceSpec, Workload};
use tower_proto::v1::activation_ended::Outcome;

use super::{World, refused};
use crate::registry::{
    Command, RefusalKind,
    commands::{Abort, Activate, Deactivate, EditPart, Plan, Retire, Traffic, Upload},
    permission::TOWER,
    service::Activation,
};

fn abort(world: &mut World, id: Option<&str>) -> crate::registry::Decision {
    let abort = Abort { service: "web".into(), activation: id.map(str::to_owned) };
    world.run("ann", Command::Abort(abort)).unwrap()
}

fn traffic(world: &mut World, canary: u32, ttl_ms: Option<u64>) -> String {
    let weights = [("stable".to_owned(), 100 - canary), ("canary".to_owned(), canary)].into();
    let traffic =
        Traffic { service: "web".into(), weights, plan: Plan { ttl_ms, ..Plan::default() }, route: None };
    world.run("ann", Command::Traffic(traffic)).unwrap().activation.unwrap()
}

#[test]
fn an_upload_changes_nothing_and_is_one_by_content() {
    let mut world = World::new();
    assert_eq!(world.upload("web", "a"), 1);
    assert_eq!(world.upload("web", "b"), 2);
    let before = world.state.clone();
    assert_eq!(world.upload("web", "a"), 1, "the same content is the same version");
    assert_eq!(world.state, before);
    assert_eq!(world.assigned("web"), [0]);
}

#[test]
fn an_activation_goes_to_one_host_then_to_a_tenth_then_to_all() {
    let mut world = World::new();
    world.upload("web", "a");
    let id = world.activate("web", 1, false);
    assert_eq!(world.assigned("web"), [1, 0]);
    refused(world.end(&id, Outcome::Succeeded), "step");
    refused(world.step(&id, 2), "step");
    world.step(&id, 1).unwrap();
    assert_eq!(world.assigned("web"), [1, 1, 0]);
    world.step(&id, 2).unwrap();
    assert_eq!(world.assigned("web"), [1]);
    refused(world.step(&id, 3), "step");
    world.end(&id, Outcome::Succeeded).unwrap();
    assert_eq!(world.assigned("web"), [1]);
}

#[test]
fn a_rejection_takes_it_back_and_nothing_follows() {
    let mut world = World::new();
    world.stand("web", "a");
    world.upload("web", "b");
    let id = world.activate("web", 2, false);
    world.end(&id, Outcome::Rejected).unwrap();
    assert_eq!(world.assigned("web"), [1]);
    refused(world.step(&id, 1), "ended");
    refused(world.end(&id, Outcome::Succeeded), "ended");
    let again = Activate { service: "web".into(), version: 2, ..Default::default() };
    let refusal = refused(world.run("ann", Command::Activate(again.clone())), "held");
    assert!(refusal.message.contains("host-1: no"), "{refusal}");
    world.run("ann", Command::Activate(Activate { again: true, ..again })).unwrap();
}

#[test]
fn aborting_nothing_does_nothing_and_says_so() {
    let mut world = World::new();
    assert_eq!(abort(&mut world, None).note, "nothing of service web is in progress");
    world.stand("web", "a");
    let before = world.state.clone();
    assert!(abort(&mut world, None).events.is_empty());
    assert_eq!(world.state, before, "what stands, stands");
    let unknown = Abort { service: "web".into(), activation: Some("web-99".into()) };
    refused(world.run("ann", Command::Abort(unknown)), "no-such-activation");
}

#[test]
fn aborting_works_at_every_step_and_whoever_changed_what_meanwhile() {
    for step in 0..3 {
        let mut world = World::new();
        world.stand("web", "a");
        world.upload("web", "b");
        let id = world.activate("web", 2, false);
        for step in 1..=step {
            world.step(&id, step).unwrap();
        }
        world.upload("web", "c");
        abort(&mut world, Some(&id));
        assert_eq!(world.assigned("web"), [1], "no host has it any more");
        let twice = abort(&mut world, Some(&id));
        assert_eq!((twice.events.len(), twice.note), (0, format!("{id} has ended: aborted")));
    }
}

#[test]
fn a_new_activation_supersedes_and_goes_back_to_what_stood() {
    let mut world = World::new();
    world.stand("web", "a");
    world.upload("web", "b");
    world.upload("web", "c");
    let first = world.activate("web", 2, false);
    world.step(&first, 1).unwrap();
    let second = world.activate("web", 3, false);
    assert_eq!(world.assigned("web"), [3, 1], "nothing is left of the first");
    let record = world.state.activation(&first).unwrap().1.clone();
    let ended = record.ended.unwrap();
    assert_eq!((ended.outcome(), ended.detail), (Outcome::Superseded, format!("by {second}")));
    refused(world.step(&first, 2), "ended");
    abort(&mut world, Some(&second));
    assert_eq!(world.assigned("web"), [1], "not to the half of the first");
}

#[test]
fn what_is_active_is_not_activated_again() {
    let mut world = World::new();
    world.stand("web", "a");
    let again = Activate { service: "web".into(), version: 1, ..Default::default() };
    let decision = world.run("ann", Command::Activate(again.clone())).unwrap();
    assert_eq!((decision.events.len(), &*decision.note), (0, "web@1 is active there already"));
    world.upload("web", "b");
    let id = world.activate("web", 2, false);
    let decision = world.run("ann", Command::Activate(Activate { version: 2, ..again })).unwrap();
    assert_eq!((decision.events.len(), decision.activation), (0, Some(id)));
}

#[test]
fn a_rollback_goes_to_all_at_once_also_while_something_is_in_progress() {
    let mut world = World::new();
    world.stand("web", "a");
    world.stand("web", "b");
    world.upload("web", "c");
    world.activate("web", 3, false);
    let decision = world.roll_back("web", None).unwrap();
    assert_eq!((world.assigned("web"), decision.version), (vec![2], Some(2)), "what stood stands again");
    let id = decision.activation.unwrap();
    world.end(&id, Outcome::Succeeded).unwrap();
    let refusal = refused(world.roll_back("web", None), "rolled-back");
    assert!(refusal.message.contains("admin has gone back to web@2"), "{refusal}");
    let again = Activate { service: "web".into(), version: 3, ..Default::default() };
    refused(world.run("ann", Command::Activate(again)), "held");
    world.roll_back("web", Some(1)).unwrap();
    assert_eq!(world.assigned("web"), [1]);
}

#[test]
fn a_rollback_from_what_stands_is_not_undone_by_another() {
    let mut world = World::new();
    world.stand("web", "a");
    world.stand("web", "b");
    let id = world.roll_back("web", None).unwrap().activation.unwrap();
    assert_eq!(world.assigned("web"), [1]);
    world.end(&id, Outcome::Rejected).unwrap();
    assert_eq!(world.assigned("web"), [1], "there is nothing better to go to");
    refused(world.roll_back("web", None), "rolled-back");
}

#[test]
fn a_rollback_before_the_first_version_leaves_the_defaults() {
    let mut world = World::new();
    refused(world.roll_back("web", None), "no-such-service");
    world.upload("web", "a");
    refused(world.roll_back("web", None), "nothing-before");
    world.activate("web", 1, false);
    let decision = world.roll_back("web", None).unwrap();
    assert!(decision.note.contains("defaults"), "{decision:?}");
    assert_eq!(world.assigned("web"), [0]);
    assert!(world.state.service("web").unwrap().running().is_none());
}

#[test]
fn a_rollback_does_not_bring_back_what_security_has_replaced() {
    let mut world = World::new();
    world.stand("web", "a");
    let old = world.state.service("web").unwrap().assignment.default_release.clone();
    let edit = EditPart {
        owner: tower_proto::v1::part_edited::Owner::Security,
        service: None,
        file: String::new(),
        text: Some("strict".into()),
    };
    let before = world.state.service("web").unwrap().clone();
    world.run("sue", Command::EditPart(edit)).unwrap();
    assert_eq!(world.state.service("web").unwrap(), &before, "parts change nothing by themselves");
    world.stand("web", "b");
    world.roll_back("web", None).unwrap();
    let service = world.state.service("web").unwrap();
    let now = service.release(&service.assignment.default_release).unwrap();
    assert_eq!((now.version, now.security), (1, 1));
    assert_ne!(now.release, old);
}

#[test]
fn no_host_is_no_beginning_but_at_once_needs_none_and_a_reason() {
    let mut world = World::new();
    world.host = None;
    world.upload("web", "a");
    let activate = Activate { service: "web".into(), version: 1, ..Default::default() };
    refused(world.run("ann", Command::Activate(activate.clone())), "no-hosts");
    let at_once = Command::Activate(Activate { plan: Plan { at_once: true, ..Plan::default() }, ..activate });
    let mut context = world.context("ann");
    world.prepare(&at_once, &mut context);
    context.reason = " ".into();
    refused(world.run_with(&context, &at_once), "no-reason");
    context.reason = "the hosts come later".into();
    world.run_with(&context, &at_once).unwrap();
    assert!(world.state.service("web").unwrap().running().is_some(), "no host is no success");
}

#[test]
fn weights_for_a_time_return_to_what_stood_however_often_they_change() {
    let mut world = World::new();
    world.stand("web", "a");
    let first = traffic(&mut world, 10, Some(1_000));
    world.step(&first, 1).unwrap();
    world.step(&first, 2).unwrap();
    world.end(&first, Outcome::Succeeded).unwrap();
    assert_eq!(world.assigned("web"), [2]);
    let second = traffic(&mut world, 20, Some(1_000));
    refused(world.end(&first, Outcome::Expired), "ended");
    for step in [1, 2] {
        world.step(&second, step).unwrap();
    }
    world.end(&second, Outcome::Succeeded).unwrap();
    assert_eq!(world.assigned("web"), [3]);
    world.end(&second, Outcome::Expired).unwrap();
    assert_eq!(world.assigned("web"), [1], "not to the weights that were for a time");
    refused(world.end(&second, Outcome::Expired), "ended");
}

#[test]
fn weights_expire_also_in_the_middle_and_a_rollback_ends_them() {
    let mut world = World::new();
    world.stand("web", "a");
    let id = traffic(&mut world, 10, Some(1_000));
    world.end(&id, Outcome::Expired).unwrap();
    assert_eq!(world.assigned("web"), [1]);
    let id = traffic(&mut world, 30, Some(1_000));
    for step in [1, 2] {
        world.step(&id, step).unwrap();
    }
    world.end(&id, Outcome::Succeeded).unwrap();
    world.roll_back("web", None).unwrap();
    assert_eq!(world.assigned("web"), [1]);
    refused(world.end(&id, Outcome::Expired), "ended");
}

#[test]
fn what_is_for_a_time_stays_until_a_step_reaches_the_host_and_comes_back() {
    let mut world = World::new();
    world.stand("web", "a");
    let passing = traffic(&mut world, 50, Some(1_000));
    for step in [1, 2] {
        world.step(&passing, step).unwrap();
    }
    world.end(&passing, Outcome::Succeeded).unwrap();
    assert_eq!(world.assigned("web"), [2]);

    let zone = Plan { audience: "zone=a".parse().unwrap(), ..Plan::default() };
    let activate = Activate { service: "web".into(), version: 1, plan: zone, ..Default::default() };
    refused(world.run("ann", Command::Activate(activate)), "for-a-time");

    traffic(&mut world, 10, None);
    assert_eq!(world.assigned("web"), [3, 2], "hosts that no step has reached keep what they have");
    refused(world.end(&passing, Outcome::Expired), "ended");
    let second = traffic(&mut world, 20, Some(1_000));
    assert_eq!(world.assigned("web"), [4, 2]);
    world.end(&second, Outcome::Rejected).unwrap();
    assert_eq!(world.assigned("web"), [2], "it is in force again");
    let third = traffic(&mut world, 30, None);
    abort(&mut world, Some(&third));
    assert_eq!(world.assigned("web"), [2]);
    world.end(&passing, Outcome::Expired).unwrap();
    assert_eq!(world.assigned("web"), [1], "and ends when its time is over");

    let passing = traffic(&mut world, 50, Some(1_000));
    for step in [1, 2] {
        world.step(&passing, step).unwrap();
    }
    world.end(&passing, Outcome::Succeeded).unwrap();
    let last = traffic(&mut world, 10, None);
    for step in [1, 2] {
        world.step(&last, step).unwrap();
    }
    world.end(&last, Outcome::Succeeded).unwrap();
    assert_eq!(world.assigned("web"), [3]);
    refused(world.end(&passing, Outcome::Expired), "ended");
    world.roll_back("web", None).unwrap();
    assert_eq!(world.assigned("web"), [1], "what was for a time is nothing to go back to");
}

#[test]
fn giving_the_same_again_is_nothing_to_go_back_to() {
    let mut world = World::new();
    world.stand("web", "a");
    world.stand("web", "b");
    let passing = traffic(&mut world, 50, None);
    abort(&mut world, Some(&passing));
    let again = traffic(&mut world, 50, None);
    world.roll_back("web", None).unwrap();
    refused(world.end(&again, Outcome::Succeeded), "ended");
    let firm = world.state.service("web").unwrap().firm.clone();
    assert!(!world.state.service("web").unwrap().stood.contains(&firm));
}

#[test]
fn a_way_back_that_would_only_take_back_a_part_says_so() {
    let mut world = World::new();
    world.stand("web", "a");
    let edit = EditPart {
        owner: tower_proto::v1::part_edited::Owner::Platform,
        service: Some("web".into()),
        file: String::new(),
        text: Some("p".into()),
    };
    world.run("pat", Command::EditPart(edit)).unwrap();
    let id = world.activate("web", 1, true);
    world.end(&id, Outcome::Succeeded).unwrap();
    refused(world.roll_back("web", None), "parts-in-force");
}

#[test]
fn weights_of_what_is_not_everywhere_are_refused() {
    let mut world = World::new();
    world.upload("web", "a");
    let command = Traffic { service: "web".into(), ..Default::default() };
    refused(world.run("ann", Command::Traffic(command.clone())), "not-active");
    world.stand("web", "b");
    let plan = Plan { audience: "zone=a".parse().unwrap(), ..Plan::default() };
    let activate = Activate { service: "web".into(), version: 1, plan: plan.clone(), ..Default::default() };
    let id = world.run("ann", Command::Activate(activate)).unwrap().activation.unwrap();
    for step in [1, 2] {
        world.step(&id, step).unwrap();
    }
    world.end(&id, Outcome::Succeeded).unwrap();
    refused(world.run("ann", Command::Traffic(command.clone())), "several-versions");
    world.run("ann", Command::Traffic(Traffic { plan, ..command })).unwrap();
    assert_eq!(world.assigned("web"), [3, 1, 2], "for these hosts only");
}

#[test]
fn timing_out_goes_back_unless_all_have_been_asked() {
    let mut world = World::new();
    world.stand("web", "a");
    world.upload("web", "b");
    let id = world.activate("web", 2, false);
    world.step(&id, 1).unwrap();
    world.end(&id, Outcome::TimedOut).unwrap();
    assert_eq!(world.assigned("web"), [1]);
    let id = world.activate("web", 2, true);
    world.end(&id, Outcome::TimedOut).unwrap();
    assert_eq!(world.assigned("web"), [2], "one late host does not take it from all others");
    world.roll_back("web", None).unwrap();
    assert_eq!(world.assigned("web"), [1]);
}

#[test]
fn what_is_in_use_is_not_retired_and_what_is_retired_is_not_used() {
    let mut world = World::new();
    world.stand("web", "a");
    world.stand("web", "b");
    world.upload("web", "c");
    world.activate("web", 3, false);
    let retire = |version| Command::Retire(Retire { service: "web".into(), version });
    for used in [2, 3] {
        let refusal = refused(world.run("ann", retire(used)), "version-in-use");
        assert_eq!(refusal.kind, RefusalKind::Blocked);
    }
    world.run("ann", retire(1)).unwrap();
    assert_eq!(world.run("ann", retire(1)).unwrap().note, "web@1 is retired already");
    let activate = Activate { service: "web".into(), version: 1, ..Default::default() };
    refused(world.run("ann", Command::Activate(activate)), "retired");
    refused(world.roll_back("web", Some(1)), "retired");
    refused(world.run("ann", retire(9)), "no-such-version");
}

#[test]
fn deactivating_gives_the_defaults_back_and_can_be_rolled_back() {
    let mut world = World::new();
    world.stand("web", "a");
    world.upload("web", "b");
    let id = world.activate("web", 2, false);
    let deactivate = Command::Deactivate(Deactivate { service: "web".into() });
    world.run("ann", deactivate.clone()).unwrap();
    assert_eq!(world.assigned("web"), [0]);
    assert!(world.state.activation(&id).unwrap().1.ended.is_some());
    assert_eq!(world.run("ann", deactivate).unwrap().note, "service web has its defaults already");
    world.roll_back("web", None).unwrap();
    assert_eq!(world.assigned("web"), [1]);
}

#[test]
fn a_command_for_another_state_is_told_what_has_changed() {
    let mut world = World::new();
    world.upload("web", "a");
    let etag = world.state.service("web").unwrap().etag;
    world.stand("web", "b");
    let upload = Upload { service: "web".into(), file: String::new(), text: "c".into() };
    let command = Command::Upload(upload);
    let mut context = world.context("ann");
    world.prepare(&command, &mut context);
    context.if_match = Some(etag);
    let refusal = refused(world.run_with(&context, &command), "stale");
    assert_eq!(refusal.kind, RefusalKind::Stale);
    assert!(refusal.message.contains("upload by admin, \"because\" (\"8\"); activate by admin"), "{refusal}");
    context.if_match = Some(world.state.service("web").unwrap().etag);
    world.run_with(&context, &command).unwrap();
}

#[test]
fn a_way_back_stays_published() {
    let mut world = World::new();
    for text in ["a", "b", "c", "d", "e", "f"] {
        world.stand("web", text);
    }
    let service = world.state.service("web").unwrap();
    let published: Vec<u64> =
        service.published().into_iter().filter_map(|release| service.version_of(release)).collect();
    let mut published = published;
    published.sort_unstable();
    assert_eq!(published, [3, 4, 5, 6]);
}

#[test]
fn a_service_in_use_remembers_its_releases_however_many_are_made() {
    let mut world = World::new();
    world.stand("web", "a");
    for number in 0..40 {
        world.upload("web", &format!("other {number}"));
        world.activate("web", number + 2, false);
    }
    let id = world.state.service("web").unwrap().running().unwrap().id().to_owned();
    abort(&mut world, Some(&id));
    assert_eq!(world.assigned("web"), [1]);
    assert!(world.state.service("web").unwrap().releases.len() <= 21);
    assert!(world.run(TOWER, Command::Abort(Abort { service: "web".into(), activation: None })).is_ok());
}

#[test]
fn a_percentage_is_the_same_hosts_until_it_is_over() {
    let mut world = World::new();
    world.stand("web", "a");
    world.upload("web", "b");
    world.upload("web", "c");
    let tenth = |version| {
        let plan = Plan { audience: "10%".parse().unwrap(), at_once: true, ..Plan::default() };
        Command::Activate(Activate { service: "web".into(), version, plan, ..Default::default() })
    };
    let id = world.run("ann", tenth(2)).unwrap().activation.unwrap();
    world.end(&id, Outcome::Succeeded).unwrap();
    assert!(world.run("ann", tenth(2)).unwrap().note.contains("active there already"));
    let first = world.state.service("web").unwrap().assignment.rules[0].audience.clone();
    world.run("ann", tenth(3)).unwrap();
    assert_eq!(world.assigned("web"), [3, 1], "it takes the place of the other");
    assert_eq!(world.state.service("web").unwrap().assignment.rules[0].audience, first);
}

#[test]
fn tiers_are_the_clusters_that_the_document_names() {
    let mut world = World::new();
    world.upload("web", "a");
    let plan = Plan { audience: "tier=canary".parse().unwrap(), at_once: true, ..Plan::default() };
    let command = Activate { service: "web".into(), version: 1, plan, ..Default::default() };
    let command = Command::Activate(command);
    let refusal = refused(world.run("ann", command.clone()), "plan");
    assert!(refusal.message.contains("no tier \"canary\""), "{refusal}");
    let mut context = world.context("ann");
    world.prepare(&command, &mut context);
    let workload = Workload { service: "web".into(), cluster: "web-canary".into() };
    context.prepared.tiers.insert("canary".into(), vec![workload]);
    world.run_with(&context, &command).unwrap();
    let rule = &world.state.service("web").unwrap().assignment.rules[0];
    let audience = AudienceSpec::of(rule.audience.as_ref().unwrap()).unwrap();
    assert_eq!(audience.to_string(), "workload=web/web-canary");
}
