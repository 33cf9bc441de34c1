//! The task on an embedded log, with a store.

use std::path::Path;

use tower_proto::v1::{self, event::Event};

use super::*;
use crate::{
    registry::{
        Command, RefusalKind, SubmitError,
        commands::{EditPart, RecordHold, RevokeToken},
        permission::TOWER,
        replay::At,
    },
    store_actor::Describe,
};

pub(crate) mod support;

use self::support::{by, issue, options, store, until};

async fn log(data_dir: &Path) -> EventLog {
    EventLog::open(&Target::Embedded, data_dir, event_log::Options::default()).await.unwrap()
}

fn record(hold: &str) -> Command {
    let hold = v1::HoldRecorded { source: "zk".into(), hold: hold.into(), endpoints: 1 };
    Command::RecordHold(RecordHold { hold })
}

#[actix::test]
async fn a_command_is_answered_when_its_entry_is_applied_and_is_one_however_often_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let store = store();
    let registry = start(options(dir.path(), &store)).await.unwrap();
    let answer = registry.submit(issue("admin", "admin"), by(TOWER, "first")).await.unwrap();
    assert_eq!((answer.index, answer.events.len(), answer.repeated), (1, 1, false));
    assert_eq!((registry.read(State::index), *registry.applied().borrow()), (1, 1));
    let again = registry.submit(issue("admin", "admin"), by(TOWER, "first")).await.unwrap();
    assert_eq!((again.index, again.repeated), (1, true));
    let SubmitError::Refused(refusal) = registry.submit(record("a"), by(TOWER, "first")).await.unwrap_err()
    else {
        panic!("another command with the same id was taken");
    };
    assert_eq!(refusal.code, "command-id-reused");
    let SubmitError::Refused(refusal) =
        registry.submit(issue("other", "viewer"), by("nobody", "")).await.unwrap_err()
    else {
        panic!("nobody issued a token");
    };
    assert_eq!(refusal.kind, RefusalKind::Forbidden);
    let none = registry.submit(record("a"), by(TOWER, "")).await.unwrap();
    let same = registry.submit(record("a"), by(TOWER, "")).await.unwrap();
    assert_eq!((none.index, same.index, &*same.note), (2, 2, "it is recorded"));
    let entries = registry.entries(1, 10).await.unwrap();
    assert_eq!(
        entries.iter().map(|entry| &*entry.command).collect::<Vec<_>>(),
        ["issue-token", "record-hold"]
    );
    assert!(registry.entries(3, 10).await.unwrap().is_empty());
    let before = registry.state_at(At::Index(1)).await.unwrap();
    assert!(before.mesh().holds.is_empty());
}

#[actix::test]
async fn a_restart_comes_to_the_same_state_by_checkpoint_and_by_folding() {
    let dir = tempfile::tempdir().unwrap();
    let store = store();
    let registry = start(options(dir.path(), &store)).await.unwrap();
    registry.submit(issue("admin", "admin"), by(TOWER, "")).await.unwrap();
    for number in 0..8 {
        registry.submit(record(&number.to_string()), by(TOWER, "")).await.unwrap();
    }
    let before = registry.read(State::to_checkpoint);
    let folded = registry.state_at(At::Time(u64::MAX)).await.unwrap();
    assert_eq!(folded.to_checkpoint(), before);
    let log = registry.shared.log.read().clone().unwrap();
    assert_eq!(log.latest_checkpoint().await.unwrap().unwrap().index, 5);
    drop(registry);
    let restarted = spawn(options(dir.path(), &store), Ok(log));
    until(&restarted, |status| status.state == LogState::Live).await;
    assert_eq!(restarted.read(State::to_checkpoint), before);
}

#[actix::test]
async fn the_store_is_whole_only_when_the_log_was_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = store();
    let held = log(dir.path()).await;
    let waiting = spawn(options(dir.path(), &store), Err("it is out of reach".into()));
    until(&waiting, |status| status.reason.contains("in use")).await;
    let summary = store.send(Describe).await.unwrap();
    assert!(!summary.complete, "it waits for the log");
    let refused = waiting.submit(record("a"), by(TOWER, "")).await.unwrap_err();
    assert!(matches!(&refused, SubmitError::Unavailable(why) if why.contains("in use")), "{refused}");
    drop(held);
    until(&waiting, |status| status.state == LogState::Live).await;
    assert!(store.send(Describe).await.unwrap().complete);
    waiting.submit(record("a"), by(TOWER, "")).await.unwrap();
}

#[actix::test]
async fn an_entry_that_does_not_fold_stops_all_change_and_what_was_stands() {
    let dir = tempfile::tempdir().unwrap();
    let store = store();
    let log = log(dir.path()).await;
    let registry = spawn(options(dir.path(), &store), Ok(log.clone()));
    registry.submit(record("a"), by(TOWER, "")).await.unwrap();
    let before = registry.read(State::to_checkpoint);
    let revoked = v1::TokenRevoked { id: "nobody".into() };
    let event = v1::Event { service: String::new(), event: Some(Event::TokenRevoked(revoked)) };
    let by_hand = v1::LogEntry {
        command_id: "by-hand".into(),
        actor: by("mallory", "").actor.into(),
        command: "revoke".into(),
        events: vec![event],
        ..Default::default()
    };
    log.append(1, by_hand, &[]).await.unwrap();
    let status = until(&registry, |status| status.state == LogState::Stale).await;
    assert!(status.reason.contains("entry 2 of the log (command \"revoke\", by \"mallory\")"), "{status:?}");
    assert!(status.reason.contains(&log.path_of(2)), "{status:?}");
    assert_eq!(registry.read(State::to_checkpoint), before);
    let refused = registry.submit(record("b"), by(TOWER, "")).await.unwrap_err();
    assert!(matches!(&refused, SubmitError::Unavailable(why) if why.contains("mallory")), "{refused}");
    assert!(store.send(Describe).await.unwrap().complete, "what was known is served");
}

#[actix::test]
async fn two_towers_that_write_at_once_both_succeed_and_agree() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path()).await;
    let towers = [store(), store()].map(|store| spawn(options(dir.path(), &store), Ok(log.clone())));
    towers[0].submit(issue("admin", "admin"), by(TOWER, "")).await.unwrap();
    let commands = (0..40).map(|number| {
        let tower = &towers[number % 2];
        tower.submit(record(&number.to_string()), by(TOWER, &format!("c-{number}")))
    });
    let answers = futures::future::join_all(commands).await;
    let mut indexes: Vec<u64> = answers.into_iter().map(|answer| answer.unwrap().index).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, (2..=41).collect::<Vec<_>>());
    for tower in &towers {
        let mut applied = tower.applied();
        applied.wait_for(|index| *index == 41).await.unwrap();
    }
    assert_eq!(towers[0].read(State::to_checkpoint), towers[1].read(State::to_checkpoint));
}

#[actix::test]
async fn of_two_who_write_from_the_same_state_one_wins_and_the_other_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path()).await;
    let towers = [store(), store()].map(|store| spawn(options(dir.path(), &store), Ok(log.clone())));
    towers[0].submit(issue("admin", "admin"), by(TOWER, "")).await.unwrap();
    towers[0].submit(issue("sue", "security"), by("admin", "")).await.unwrap();
    let gone = |service: &str| {
        Command::EditPart(EditPart {
            owner: v1::part_edited::Owner::Security,
            service: Some(service.into()),
            file: String::new(),
            text: None,
        })
    };
    let revoke = |tower: &Registry| {
        let command = Command::RevokeToken(RevokeToken { id: "sue".into() });
        let tower = tower.clone();
        async move { tower.submit(command, by("admin", "")).await }
    };
    let (one, other) = futures::join!(revoke(&towers[0]), revoke(&towers[1]));
    let notes = [one.unwrap().note, other.unwrap().note];
    assert!(
        notes.contains(&String::new()) && notes.contains(&"token sue is revoked already".to_owned()),
        "{notes:?}"
    );
    let refused = towers[0].submit(gone("web"), by("sue", "")).await.unwrap_err();
    assert!(refused.to_string().contains("it was revoked"), "{refused}");
}
