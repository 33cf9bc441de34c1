//! Entries that no command makes. They are refused as a whole, and what was folded before stands.

use tower_proto::v1::{self, activation_ended::Outcome, event::Event};

use super::{World, hash};
use crate::registry::permission::TOWER;

fn entry(world: &World, by: &str, events: Vec<(&str, Event)>) -> v1::LogEntry {
    let events = events
        .into_iter()
        .map(|(service, event)| v1::Event { service: service.into(), event: Some(event) })
        .collect();
    v1::LogEntry {
        index: world.state.index() + 1,
        actor: Some(v1::Actor { name: by.into(), credential: by.into(), ..Default::default() }),
        command: "by-hand".into(),
        command_id: "by-hand".into(),
        events,
        ..Default::default()
    }
}

#[track_caller]
fn refused(world: &mut World, entry: &v1::LogEntry, why: &str) {
    let before = world.state.to_checkpoint();
    let error = world.state.apply(entry).unwrap_err().to_string();
    assert!(error.contains(why), "{error:?} does not say {why:?}");
    assert!(error.starts_with(&format!("entry {} of the log", entry.index)), "{error}");
    assert_eq!(world.state.to_checkpoint(), before);
}

fn uploaded(number: u64, text: &str) -> Event {
    Event::VersionUploaded(v1::VersionUploaded {
        number,
        hash: hash(text).into(),
        body: hash(text).into(),
        owner: String::new(),
    })
}

fn assigned(release: &str) -> Event {
    let assignment = v1::Assignment { rules: Vec::new(), default_release: release.into() };
    Event::Assigned(v1::Assigned { assignment: Some(assignment) })
}

#[test]
fn an_entry_folds_whole_or_not_at_all() {
    let mut world = World::new();
    let events = vec![("web", uploaded(1, "a")), ("web", uploaded(3, "b"))];
    let gap = entry(&world, "ann", events);
    refused(&mut world, &gap, "VersionUploaded of \"web\": the next version is 2, and not 3");
    assert!(world.state.service("web").is_none());
}

#[test]
fn an_unknown_event_stops_the_fold_with_the_name_of_its_command() {
    let mut world = World::new();
    let mut unknown = entry(&world, "ann", vec![]);
    unknown.command = "freeze".into();
    unknown.events.push(v1::Event { service: "web".into(), event: None });
    let error = world.state.apply(&unknown).unwrap_err();
    assert!(error.unknown);
    refused(&mut world, &unknown, "(command \"freeze\", by \"ann\")");
}

#[test]
fn entries_come_in_order_and_once() {
    let mut world = World::new();
    let mut late = entry(&world, "ann", vec![("web", uploaded(1, "a"))]);
    late.index += 1;
    refused(&mut world, &late, "the next entry is 7");
    let mut twice = entry(&world, "ann", vec![("web", uploaded(1, "a"))]);
    twice.command_id = "c-0".into();
    refused(&mut world, &twice, "its command id \"c-0\" is that of entry 1");
}

#[test]
fn what_was_never_made_is_not_assigned() {
    let mut world = World::new();
    world.stand("web", "a");
    let other = entry(&world, "admin", vec![("web", assigned("0123456789abcdef"))]);
    refused(&mut world, &other, "release \"0123456789abcdef\" was never made");
    let release = world.state.service("web").unwrap().assignment.default_release.clone();
    let foreign = entry(&world, "admin", vec![("ads", assigned(&release))]);
    refused(&mut world, &foreign, "was never made");
}

#[test]
fn after_a_rejection_there_is_no_step() {
    let mut world = World::new();
    world.stand("web", "a");
    world.upload("web", "b");
    let id = world.activate("web", 2, false);
    world.end(&id, Outcome::Rejected).unwrap();
    let stepped = v1::ActivationStepped { activation: id.clone(), step: 1 };
    let entry_1 = entry(&world, TOWER, vec![("web", Event::ActivationStepped(stepped))]);
    refused(&mut world, &entry_1, "it has ended: OUTCOME_REJECTED");
    let ended =
        v1::ActivationEnded { activation: id, outcome: Outcome::Succeeded.into(), ..Default::default() };
    let entry_2 = entry(&world, TOWER, vec![("web", Event::ActivationEnded(ended))]);
    refused(&mut world, &entry_2, "it has ended before: OUTCOME_REJECTED");
}

#[test]
fn a_rejection_without_a_way_back_does_not_fold() {
    let mut world = World::new();
    world.stand("web", "a");
    world.upload("web", "b");
    let ended = v1::ActivationEnded {
        activation: world.activate("web", 2, false),
        outcome: Outcome::Rejected.into(),
        ..Default::default()
    };
    let alone = entry(&world, TOWER, vec![("web", Event::ActivationEnded(ended))]);
    refused(&mut world, &alone, "what is assigned is not what stands");
}

#[test]
fn nobody_writes_what_they_may_not_ask_for() {
    let mut world = World::new();
    world.stand("web", "a");
    world.stand("web", "b");
    let service = world.state.service("web").unwrap();
    let first = service.releases[0].made.clone().unwrap().release;
    for by in ["bob", "pat", "vic", "nobody", "", TOWER] {
        for event in [uploaded(3, "c"), assigned(&first), assigned("")] {
            let entry = entry(&world, by, vec![("web", event)]);
            refused(
                &mut world,
                &entry,
                if ["nobody", ""].contains(&by) { "nobody has issued" } else { "may not" },
            );
        }
    }
    let part = |owner: v1::part_edited::Owner| {
        let edited = v1::PartEdited { owner: owner.into(), revision: 1, body: hash("x").into() };
        Event::PartEdited(edited)
    };
    for (by, owner) in [
        ("ann", v1::part_edited::Owner::Security),
        ("ann", v1::part_edited::Owner::Platform),
        ("pat", v1::part_edited::Owner::Security),
        ("sue", v1::part_edited::Owner::Platform),
    ] {
        let entry = entry(&world, by, vec![("web", part(owner))]);
        refused(&mut world, &entry, "may not edit");
    }
    let own = entry(&world, "ann", vec![("web", uploaded(3, "c")), ("ads", uploaded(1, "c"))]);
    refused(&mut world, &own, "credential ann may not upload a version");
}

#[test]
fn an_activation_that_an_owner_says_has_succeeded_has_not() {
    let mut world = World::new();
    world.upload("web", "a");
    let ended = v1::ActivationEnded {
        activation: world.activate("web", 1, true),
        outcome: Outcome::Succeeded.into(),
        ..Default::default()
    };
    let entry = entry(&world, "ann", vec![("web", Event::ActivationEnded(ended))]);
    refused(&mut world, &entry, "may not report for a Tower");
}

#[test]
fn names_and_hashes_have_a_form() {
    let mut world = World::new();
    for (service, why) in [("a/b", "must not contain '/'"), ("", "1 to 253 bytes")] {
        let entry = entry(&world, "admin", vec![(service, uploaded(1, "a"))]);
        refused(&mut world, &entry, why);
    }
    let short = v1::VersionUploaded { number: 1, hash: vec![1].into(), ..Default::default() };
    let entry = entry(&world, "admin", vec![("web", Event::VersionUploaded(short))]);
    refused(&mut world, &entry, "the hash of the document has 1 bytes, and not 32");
}

#[test]
fn a_level_that_this_build_does_not_know_stops_the_fold() {
    let mut world = World::new();
    let raised = |level| Event::FeatureLevelRaised(v1::FeatureLevelRaised { level });
    let high = entry(&world, "admin", vec![("", raised(tower_common::FEATURE_LEVEL + 1))]);
    refused(&mut world, &high, "needs a newer one");
    let known = entry(&world, "admin", vec![("", raised(tower_common::FEATURE_LEVEL))]);
    world.state.apply(&known).unwrap();
    assert_eq!(world.state.mesh().feature_level, tower_common::FEATURE_LEVEL);
}
