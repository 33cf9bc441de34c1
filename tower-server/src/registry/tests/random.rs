//! Random commands by anybody: what is decided folds, and what must hold, holds.

use proptest::prelude::*;
use tower_proto::v1::{self, activation_ended::Outcome, event::Event};

use super::{World, hash};
use crate::registry::{
    Command, State,
    commands::{
        Abort, Activate, Adopt, Approve, Deactivate, EditPart, End, IssueToken, Plan, RecordHold,
        ReleaseHold, Report, Retire, RevokeToken, RollBack, Step, Traffic, Upload,
    },
    permission::TOWER,
    service::Activation,
};

/// What a command is made of, before the state is known.
#[derive(Debug, Clone)]
struct Ask {
    what: u8,
    by: usize,
    ads: bool,
    small: u64,
    flags: u8,
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (0..22_u8, 0..6_usize, any::<bool>(), 1..5_u64, any::<u8>())
        .prop_map(|(what, by, ads, small, flags)| Ask { what, by, ads, small, flags });
    prop::collection::vec(ask, 1..80)
}

fn command(world: &World, ask: &Ask) -> (&'static str, Command) {
    let service = if ask.ads { "ads" } else { "web" }.to_owned();
    let owner = if ask.ads { "bob" } else { "ann" };
    let by = [owner, owner, "admin", "pat", "sue", "vic"][ask.by];
    let number = ask.small;
    let flag = |bit: u8| ask.flags & (1 << bit) != 0;
    let held = world.state.service(&service);
    let last = held.and_then(|held| held.activations.last());
    let passing = held.and_then(|held| held.stands_for_a_time()).filter(|_| flag(5));
    let activation = passing.or(last).map_or_else(|| format!("{service}-1"), |last| last.id().to_owned());
    let step = last.map_or(0, |last| last.step);
    let ttl_ms = flag(0).then_some(5);
    let audience = ["everyone", "everyone", "zone=a", "10%"][usize::from(ask.flags >> 6)].parse().unwrap();
    let plan = Plan { audience, steps: None, at_once: flag(1), ttl_ms };
    let text = number.to_string();
    let command = match ask.what {
        0 | 1 => Command::Upload(Upload { service, file: String::new(), text }),
        2 => Command::Approve(Approve { service, version: number }),
        3 => Command::Retire(Retire { service, version: number }),
        4..=6 => Command::Activate(Activate { service, version: number, plan, again: flag(2) }),
        7 => Command::Traffic(Traffic {
            service,
            weights: [("canary".to_owned(), ask.small.try_into().unwrap())].into(),
            route: None,
            plan,
        }),
        8 => Command::RollBack(RollBack { service, to: flag(0).then_some(number) }),
        9 => Command::Deactivate(Deactivate { service }),
        10 => Command::Abort(Abort { service, activation: flag(0).then_some(activation) }),
        11..=13 => {
            return (TOWER, Command::Step(Step { service, activation, step: step + 1 }));
        }
        14 => {
            let reported = v1::ActivationReported {
                activation,
                step,
                tower: text,
                hosts: 4,
                accepted: ask.small.try_into().unwrap(),
            };
            return (TOWER, Command::Report(Report { service, reported }));
        }
        15 | 16 => {
            let outcome = [Outcome::Succeeded, Outcome::Rejected, Outcome::Expired, Outcome::TimedOut]
                [number as usize - 1];
            let ended = v1::ActivationEnded { activation, outcome: outcome.into(), ..Default::default() };
            return (TOWER, Command::End(End { service, ended }));
        }
        17 => Command::EditPart(EditPart {
            owner: if flag(0) { v1::part_edited::Owner::Platform } else { v1::part_edited::Owner::Security },
            service: flag(1).then_some(service),
            file: String::new(),
            text: flag(2).then_some(text),
        }),
        18 => Command::IssueToken(IssueToken {
            issued: v1::TokenIssued {
                id: format!("t-{number}"),
                name: text.clone(),
                hash: hash(&text).into(),
                roles: vec!["viewer".into()],
                ..Default::default()
            },
        }),
        19 => Command::RevokeToken(RevokeToken { id: format!("t-{number}") }),
        20 => {
            let hold = v1::HoldRecorded { source: "zk".into(), hold: text, endpoints: 2 };
            return (TOWER, Command::RecordHold(RecordHold { hold }));
        }
        _ if flag(0) => Command::ReleaseHold(ReleaseHold { source: "zk".into(), hold: text }),
        _ => Command::Adopt(Adopt { source: "zk".into(), incarnation: text }),
    };
    (by, command)
}

/// Commands after which every service serves what it served before.
fn changes_nothing(command: &Command) -> bool {
    matches!(
        command,
        Command::Upload(_)
            | Command::Approve(_)
            | Command::Retire(_)
            | Command::EditPart(_)
            | Command::Report(_)
            | Command::IssueToken(_)
            | Command::RevokeToken(_)
    )
}

fn assignments(state: &State) -> Vec<(String, v1::Assignment)> {
    let of = |(name, service): (&str, &std::sync::Arc<crate::registry::Service>)| {
        (name.to_owned(), service.assignment.clone())
    };
    let all = state.services().map(of);
    all.filter(|(_, assignment)| *assignment != v1::Assignment::default()).collect()
}

fn no_step_after_a_rejection(entries: &[v1::LogEntry]) -> bool {
    let mut rejected = Vec::new();
    for event in entries.iter().flat_map(|entry| &entry.events) {
        match event.event.as_ref().unwrap() {
            Event::ActivationEnded(ended) if ended.outcome() == Outcome::Rejected => {
                rejected.push(ended.activation.clone());
            }
            Event::ActivationStepped(stepped) if rejected.contains(&stepped.activation) => return false,
            _ => {}
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whatever_is_decided_folds_and_leaves_what_must_hold(asks in asks()) {
        let mut world = World::new();
        let mut half_way = None;
        for (place, ask) in asks.iter().enumerate() {
            let (by, command) = command(&world, ask);
            let before = assignments(&world.state);
            if world.run(by, command.clone()).is_ok() && changes_nothing(&command) {
                prop_assert_eq!(&assignments(&world.state), &before, "{:?}", command);
            }
            for (name, service) in world.state.services() {
                let of = |release: &str| service.release(release).is_some();
                prop_assert!(service.published().into_iter().all(of), "{name} lacks a release");
                prop_assert!(service.stood.len() <= 10 && service.activations.len() <= 20);
                let older = service.activations.iter().rev().skip(1);
                prop_assert!(older.clone().all(|record| !record.is_running()));
                let ended = service.activations.iter().filter(|record| !record.is_running());
                prop_assert!(ended.filter(|record| record.temporary).count() <= 1, "one is in force at most");
            }
            if place == asks.len() / 2 {
                half_way = Some((world.entries.len(), world.state.to_checkpoint()));
            }
        }
        prop_assert!(no_step_after_a_rejection(&world.entries));

        let checkpoint = world.state.to_checkpoint();
        let mut from_the_start = State::default();
        for entry in &world.entries {
            from_the_start.apply(entry).unwrap();
        }
        prop_assert_eq!(&from_the_start.to_checkpoint(), &checkpoint);
        prop_assert_eq!(&State::from_checkpoint(&checkpoint).unwrap(), &world.state);
        let (count, bytes) = half_way.unwrap();
        let mut resumed = State::from_checkpoint(&bytes).unwrap();
        for entry in &world.entries[count..] {
            resumed.apply(entry).unwrap();
        }
        prop_assert_eq!(resumed.to_checkpoint(), checkpoint);
    }
}
