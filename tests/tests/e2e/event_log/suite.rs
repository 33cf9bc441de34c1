//! What a log promises to whoever appends and reads.

use anyhow::{Result, ensure};
use bytes::Bytes;
use tower_server::event_log::{AppendError, MAX_BODY_BYTES, MAX_ENTRY_BYTES, OpenError, ReadError, State};
use tower_tests::eventually;

use super::places::{Place, all, body, entry, hash, with_body};
use crate::support::SOON;

#[tokio::test]
async fn what_is_appended_is_read_in_its_order() -> Result<()> {
    for place in Place::each().await? {
        let log = place.open().await?;
        let mut head = log.head();
        assert_eq!(*head.borrow_and_update(), 0);
        assert!(log.read(1, 10).await?.is_empty());
        for at in 0..5 {
            assert_eq!(log.append(at, entry(format!("c{at}")), &[]).await?, at + 1);
            assert_eq!(*head.borrow_and_update(), at + 1, "an append is known when it returns");
        }
        let entries = log.read(1, 10).await?;
        let ids: Vec<&str> = entries.iter().map(|entry| entry.command_id.as_str()).collect();
        assert_eq!(ids, ["c0", "c1", "c2", "c3", "c4"]);
        assert_eq!(log.read(2, 2).await?, entries[1..3]);
        assert_eq!(log.read(6, 2).await?, []);
        assert_eq!(*log.state().borrow(), State::Live);
        assert_eq!(*log.members().borrow(), ["tower-1"]);
        let incarnation = log.incarnation().to_owned();
        drop(log);
        let log = place.open().await?;
        assert_eq!(log.incarnation(), incarnation);
        assert_eq!(*log.head().borrow(), 5);
        assert_eq!(all(&log).await?, entries);
    }
    Ok(())
}

#[tokio::test]
async fn of_two_writers_one_wins_and_the_other_is_told() -> Result<()> {
    for place in Place::each().await? {
        let log = place.open().await?;
        // In ZooKeeper the other is another Tower.
        let other = if place.shared.is_some() { place.open_as("tower-2").await? } else { log.clone() };
        for at in 0..20 {
            let (one, two) = tokio::join!(
                log.append(at, entry(format!("one-{at}")), &[]),
                other.append(at, entry(format!("two-{at}")), &[])
            );
            let lost = AppendError::Conflict { head: at + 1 };
            match (&one, &two) {
                (Ok(index), Err(error)) | (Err(error), Ok(index)) => {
                    assert_eq!((*index, error), (at + 1, &lost));
                }
                _ => panic!("{one:?} and {two:?}"),
            }
        }
        assert_eq!(all(&log).await?.len(), 20);
        assert_eq!(all(&log).await?, all(&other).await?);
    }
    Ok(())
}

#[tokio::test]
async fn a_command_is_in_the_log_once() -> Result<()> {
    for place in Place::each().await? {
        let log = place.open().await?;
        log.append(0, entry("a"), &[]).await?;
        log.append(1, entry("b"), &[]).await?;
        for at in [0, 1, 2, 9] {
            assert_eq!(log.append(at, entry("a"), &[]).await, Ok(1), "whatever head is thought of");
        }
        assert_eq!(log.append(0, entry("c"), &[]).await, Err(AppendError::Conflict { head: 2 }));
        assert_eq!(log.append(9, entry("c"), &[]).await, Err(AppendError::Conflict { head: 2 }));
        assert_eq!(all(&log).await?.len(), 2);
    }
    Ok(())
}

#[tokio::test]
async fn bodies_are_there_before_what_refers_to_them() -> Result<()> {
    for place in Place::each().await? {
        let log = place.open().await?;
        let sizes = [0, 1, 64 << 10, (64 << 10) + 1, 512 << 10, (512 << 10) + 1, (2 << 20) - 7];
        let bodies: Vec<Bytes> = sizes.iter().zip(0..).map(|(size, seed)| body(seed, *size)).collect();
        log.append(0, with_body("a", &bodies[0]), &bodies).await?;
        for body in &bodies {
            assert_eq!(log.body(&hash(body)).await?, body);
        }
        // Written twice, they are there once.
        log.append(1, with_body("b", &bodies[6]), &bodies).await?;
        let missing = log.body(&hash(&Bytes::from_static(b"never"))).await.unwrap_err();
        assert!(
            matches!(&missing, ReadError::Bytes { problem, .. } if problem == "it is not there"),
            "{missing}"
        );
        assert!(log.body(b"short").await.is_err());
    }
    Ok(())
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_written() -> Result<()> {
    for place in Place::each().await? {
        let log = place.open().await?;
        let mut large = entry("a");
        large.reason = "x".repeat(MAX_ENTRY_BYTES);
        let check = |result: Result<u64, AppendError>, words: &str| {
            let error = result.unwrap_err();
            assert!(error.is_not_applied() && error.to_string().contains(words), "{error}");
        };
        check(log.append(0, large.clone(), &[]).await, "an entry has 524");
        let body = Bytes::from(vec![0; MAX_BODY_BYTES + 1]);
        check(log.append(0, entry("a"), &[body]).await, "a body has 67108865 bytes, and 67108864");
        check(log.append(0, entry(""), &[]).await, "a command id has 1 to 256 bytes, and this one has 0");
        check(log.append(0, entry("x".repeat(257)), &[]).await, "a command id has 1 to 256");
        // What is just not too large goes in.
        large.reason.truncate(MAX_ENTRY_BYTES - 100);
        assert_eq!(log.append(0, large.clone(), &[]).await, Ok(1));
        assert_eq!(log.read(1, 1).await?[0].reason, large.reason);
    }
    Ok(())
}

#[tokio::test]
async fn checkpoints_replace_one_another_and_damage_costs_one() -> Result<()> {
    for place in Place::each().await? {
        let log = place.open().await?;
        assert_eq!(log.latest_checkpoint().await?, None);
        for at in 0..6 {
            log.append(at, entry(at.to_string()), &[]).await?;
        }
        let saved = async |index: u64, length| {
            let state = body(index, length);
            log.save_checkpoint(index, state.clone()).await?;
            anyhow::Ok(state)
        };
        saved(2, 1 << 20).await?;
        let second = saved(4, (1 << 20) + 1).await?;
        let third = saved(5, 10).await?;
        // One that comes late changes nothing.
        saved(3, 10).await?;
        let latest = log.latest_checkpoint().await?.expect("a checkpoint");
        assert_eq!((latest.index, &latest.state), (5, &third));
        assert!(matches!(log.save_checkpoint(7, Bytes::new()).await, Err(AppendError::Refused(_))));
        assert_eq!(place.checkpoints().await?.len(), 2, "those before are removed");
        drop(log);

        place.damage_newest_checkpoint().await?;
        let log = place.open().await?;
        let latest = log.latest_checkpoint().await?.expect("the one before");
        assert_eq!((latest.index, &latest.state), (4, &second));
        // The tail follows it.
        let tail = log.read(5, 10).await?;
        assert_eq!(tail.len(), 2);
        assert_eq!(tail[0].command_id, "4");
    }
    Ok(())
}

#[tokio::test]
async fn an_embedded_log_is_one_towers() -> Result<()> {
    let place = Place::embedded()?;
    let _log = place.open().await?;
    let error = place.try_open("tower-2", Default::default()).await.err().expect("it is locked");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    Ok(())
}

#[tokio::test]
async fn towers_see_one_another_and_what_the_others_append() -> Result<()> {
    let place = Place::zookeeper().await?;
    let (one, two) = (place.open_as("one").await?, place.open_as("two").await?);
    assert_eq!(one.incarnation(), two.incarnation());
    let members = async |expected: &[&str]| {
        eventually(SOON, format!("the Towers are {expected:?}"), async || {
            ensure!(*one.members().borrow() == expected, "{:?}", one.members().borrow());
            Ok(())
        })
        .await;
    };
    members(&["one", "two"]).await;
    let mut head = one.head();
    two.append(0, entry("a"), &[]).await?;
    tokio::time::timeout(SOON, head.wait_for(|head| *head == 1)).await??;
    assert_eq!(all(&one).await?, all(&two).await?);
    drop(two);
    members(&["one"]).await;
    Ok(())
}
