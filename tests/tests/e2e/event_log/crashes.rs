//! Processes that are killed lose nothing that was acknowledged, and invent nothing.

use std::{collections::BTreeMap, os::unix::process::ExitStatusExt, time::Duration};

use anyhow::{Result, ensure};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tower_server::event_log::EventLog;
use tower_tests::{ZooKeeper, rounds};

use super::{
    child::{Running, Said, Work, follow, script, state},
    places::{Place, all},
};
use crate::support::seed;

const SIGKILL: i32 = 9;

/// No script has so many writes.
const MANY: usize = 200;

/// Kills a process that follows the script at each of its writes, and has the script ended by another.
async fn killed_at_every_write(place: impl AsyncFn() -> Result<Place>) -> Result<usize> {
    for killed_at in 0..MANY {
        let place = place().await?;
        let mut child = Running::start(&place, Work::Script { killed_at })?;
        let (said, status) = child.end().await?;
        if status.success() {
            return Ok(killed_at);
        }
        ensure!(status.signal() == Some(SIGKILL), "at write {killed_at} it ends with {status}");
        let log = place.open().await?;
        is_what_was_said(&log, &said)
            .await
            .map_err(|error| error.context(format!("killed at write {killed_at}")))?;
        // Whoever comes next ends what was begun.
        follow(&log, |_| Ok(())).await?;
        let ids: Vec<String> = all(&log).await?.into_iter().map(|entry| entry.command_id).collect();
        ensure!(ids == ["small", "large", "long", "plain", "last"], "killed at write {killed_at}: {ids:?}");
        let checkpoint = log.latest_checkpoint().await?.expect("a checkpoint");
        ensure!(checkpoint.index == 5 && checkpoint.state == state(5), "killed at write {killed_at}");
        let kept = place.checkpoints().await?;
        ensure!(kept.len() == 2, "killed at write {killed_at}: {kept:?}");
    }
    anyhow::bail!("the script has more than {MANY} writes")
}

/// Whether all that was acknowledged is there, and nothing else but perhaps what was about to be.
async fn is_what_was_said(log: &EventLog, said: &[Said]) -> Result<()> {
    let entries = all(log).await?;
    let appended = said.iter().filter(|said| matches!(said, Said::Appended(..))).count();
    let saved =
        said.iter().filter_map(|said| if let Said::Saved(index) = said { Some(*index) } else { None });
    let script = script();
    ensure!(
        entries.len() == appended || entries.len() == appended + 1,
        "{} entries, and {appended} were acknowledged",
        entries.len()
    );
    for (found, (meant, bodies)) in entries.iter().zip(&script) {
        ensure!(found.command_id == meant.command_id && found.events == meant.events, "another entry");
        ensure!(found.reason == meant.reason, "another reason");
        for body in bodies {
            ensure!(log.body(blake3::hash(body).as_bytes()).await? == body, "another body");
        }
    }
    let saved = saved.max().unwrap_or(0);
    let found = log.latest_checkpoint().await?;
    ensure!(found.as_ref().map_or(0, |found| found.index) >= saved, "checkpoint {saved} is lost");
    ensure!(found.is_none_or(|found| found.state == state(found.index)), "another state");
    Ok(())
}

#[tokio::test]
async fn embedded_a_kill_at_any_write_loses_nothing() -> Result<()> {
    let writes = killed_at_every_write(async || Place::embedded()).await?;
    ensure!(writes > 20, "only {writes} writes");
    Ok(())
}

#[tokio::test]
async fn in_zookeeper_a_kill_at_any_write_loses_nothing() -> Result<()> {
    let writes = killed_at_every_write(async || Place::zookeeper().await).await?;
    ensure!(writes > 20, "only {writes} writes");
    Ok(())
}

/// Commands that were acknowledged, with their indexes.
#[derive(Default)]
struct Acknowledged(BTreeMap<String, u64>);

impl Acknowledged {
    fn note(&mut self, said: impl IntoIterator<Item = Said>) -> Result<()> {
        for said in said {
            if let Said::Appended(id, index) = said {
                let known = self.0.insert(id.clone(), index);
                ensure!(known.is_none_or(|known| known == index), "{id} is at {known:?} and at {index}");
            }
        }
        Ok(())
    }

    /// How many commands of this writer there are.
    fn of(&self, name: &str) -> u64 {
        self.0.keys().filter(|id| id.starts_with(&format!("{name}-"))).count() as u64
    }

    /// Whether each is in the log once, where it was said to be.
    async fn are_in(&self, log: &EventLog) -> Result<usize> {
        let entries = all(log).await?;
        let mut found = BTreeMap::new();
        for entry in &entries {
            let before = found.insert(entry.command_id.clone(), entry.index);
            ensure!(before.is_none(), "{} is there twice", entry.command_id);
        }
        for (id, index) in &self.0 {
            ensure!(
                found.get(id) == Some(index),
                "{id} was acknowledged at {index}, and is at {:?}",
                found.get(id)
            );
        }
        Ok(entries.len())
    }
}

/// One writer after the other is killed at random, and in ZooKeeper the server as well.
async fn killed_at_random(place: Place, mut server: Option<ZooKeeper>) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed());
    let mut acknowledged = Acknowledged::default();
    for _ in 0..rounds(6, 100) {
        let from = acknowledged.of("c");
        let mut child = Running::start(&place, Work::Commands { name: "c", from, to: u64::MAX })?;
        for _ in 0..random.random_range(0..30) {
            acknowledged.note(child.next().await?)?;
        }
        if let Some(server) = &mut server
            && random.random()
        {
            server.kill();
            server.restart().await?;
            for _ in 0..5 {
                acknowledged.note(child.next().await?)?;
            }
        }
        tokio::time::sleep(Duration::from_micros(random.random_range(0..3_000))).await;
        acknowledged.note(child.kill().await?)?;
        let entries = acknowledged.are_in(&place.open().await?).await? as u64;
        let known = acknowledged.of("c");
        ensure!(entries == known || entries == known + 1, "{entries} entries, and {known} acknowledged");
    }
    Ok(())
}

#[tokio::test]
async fn embedded_a_kill_at_any_time_loses_nothing() -> Result<()> {
    killed_at_random(Place::embedded()?, None).await
}

#[tokio::test]
async fn in_zookeeper_a_kill_of_writer_or_server_loses_nothing() -> Result<()> {
    let server = ZooKeeper::start().await?;
    killed_at_random(Place::in_server(&server).await?, Some(server)).await
}

#[tokio::test]
async fn of_three_writers_one_is_killed_and_all_read_the_same() -> Result<()> {
    const WRITERS: [&str; 3] = ["a", "b", "c"];
    let mut random = StdRng::seed_from_u64(seed());
    let place = Place::zookeeper().await?;
    let each = rounds(100, 1_700) as u64;
    let mut acknowledged = Acknowledged::default();
    let start = |name, from| Running::start(&place, Work::Commands { name, from, to: each });
    let (mut one, mut two) = (start(WRITERS[0], 0)?, start(WRITERS[1], 0)?);
    let killed = async {
        let mut all = Acknowledged::default();
        for _ in 0..rounds(3, 20) {
            let mut child = start(WRITERS[2], all.of(WRITERS[2]))?;
            for _ in 0..random.random_range(1..each / 5) {
                all.note(child.next().await?)?;
            }
            all.note(child.kill().await?)?;
        }
        let (said, status) = start(WRITERS[2], all.of(WRITERS[2]))?.end().await?;
        all.note(said)?;
        anyhow::Ok((all, status))
    };
    let (first, second, third) = tokio::join!(one.end(), two.end(), killed);
    let (said, status) = first?;
    ensure!(status.success(), "{status}");
    acknowledged.note(said)?;
    let (said, status) = second?;
    ensure!(status.success(), "{status}");
    acknowledged.note(said)?;
    let (third, status) = third?;
    ensure!(status.success(), "{status}");
    acknowledged.0.extend(third.0);
    let (tower, other) = (place.open_as("one").await?, place.open_as("other").await?);
    // What was in the log when its writer was killed is acknowledged to the next.
    ensure!(acknowledged.are_in(&tower).await? as u64 == 3 * each, "an event was invented");
    ensure!(acknowledged.0.len() as u64 == 3 * each, "a command is missing");
    ensure!(all(&tower).await? == all(&other).await?, "two Towers read different logs");
    Ok(())
}
