//! `tower-server log`: a log as a file, and back into either kind.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use tower_tests::daemon;

use super::places::{Place, all, body, entry, hash, with_body};

/// Exit code, standard output, and standard error.
async fn run(place: &Place, arguments: &[&str]) -> Result<(i32, String, String)> {
    let (log, data_dir) = place.arguments();
    let (log, data_dir) = (format!("--event-log={log}"), format!("--data-dir={}", data_dir.display()));
    let all = [&["log"], arguments, &[&log, &data_dir]].concat();
    let output = daemon::run("tower-server", &all).await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr)))
}

async fn succeeds(place: &Place, arguments: &[&str], words: &str) -> Result<()> {
    let (code, stdout, stderr) = run(place, arguments).await?;
    assert!(code == 0 && stdout.starts_with(words), "{arguments:?}: {code}, {stdout:?}, {stderr}");
    Ok(())
}

async fn fails(place: &Place, arguments: &[&str], words: &[&str]) -> Result<()> {
    let (code, stdout, stderr) = run(place, arguments).await?;
    assert_eq!((code, stdout.as_str()), (1, ""), "{arguments:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?}: no {word:?}: {stderr}");
    }
    Ok(())
}

/// A log of 250 entries, of which every tenth refers to a body.
async fn fill(place: &Place) -> Result<()> {
    let log = place.open().await?;
    for at in 0..250 {
        let id = format!("c{at}");
        if at % 10 == 0 {
            let body = body(at, 100_000);
            log.append(at, with_body(&id, &body), &[body]).await?;
        } else {
            log.append(at, entry(id), &[]).await?;
        }
    }
    Ok(())
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

#[tokio::test]
async fn a_log_moves_from_one_kind_to_the_other() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (number, from) in Place::each().await?.into_iter().enumerate() {
        fill(&from).await?;
        let file = folder.path().join(format!("{number}.log"));
        succeeds(&from, &["verify"], "whole: entries 1 to 250, bodies 25, incarnation ").await?;
        succeeds(&from, &["verify", "--from", "241"], "whole: entries 241 to 250, bodies 1, ").await?;
        succeeds(&from, &["export", name(&file)], "exported: entries 1 to 250, bodies 25, ").await?;
        fails(&from, &["export", name(&file)], &["is there already"]).await?;
        fails(&from, &["import", name(&file)], &["a log with 250 entries at", "is there already"]).await?;
        let before = from.open().await?;
        for to in Place::each().await? {
            succeeds(&to, &["import", name(&file)], "imported: entries 1 to 250, bodies 25, ").await?;
            succeeds(&to, &["verify"], "whole: entries 1 to 250, bodies 25, ").await?;
            let after = to.open().await?;
            assert_eq!(all(&after).await?, all(&before).await?);
            assert_ne!(after.incarnation(), before.incarnation());
            assert_eq!(after.body(&hash(&body(240, 100_000))).await?, body(240, 100_000));
            // Commands are known, and it goes on.
            assert_eq!(after.append(250, entry("c7"), &[]).await, Ok(8));
            assert_eq!(after.append(250, entry("new"), &[]).await, Ok(251));
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_not_whole_changes_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let from = Place::embedded()?;
    fill(&from).await?;
    let file = folder.path().join("log");
    succeeds(&from, &["export", name(&file)], "exported: ").await?;
    let whole = fs::read(&file)?;
    let damaged = folder.path().join("damaged");
    let mut changed = whole.clone();
    let last = changed.len() - 1000;
    changed[last] ^= 1;
    for (bytes, words) in [
        (&changed[..], "byte "),
        (&whole[..whole.len() / 2], "within a record"),
        (b"x", "record"),
        (b"", "no end"),
    ] {
        fs::write(&damaged, bytes)?;
        for to in Place::each().await? {
            fails(&to, &["import", name(&damaged)], &["nothing is imported", name(&damaged), words]).await?;
            succeeds(&to, &["verify"], "whole: entries 1 to 0, bodies 0, ").await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_is_damaged_is_named() -> Result<()> {
    for place in Place::each().await? {
        fill(&place).await?;
        let hash = blake3::hash(&body(200, 100_000)).to_hex();
        let path = format!("bodies/{}/{hash}", &hash[..2]);
        match &place.shared {
            None => fs::write(place.data_dir().join("log").join(&path), b"something else")?,
            Some(shared) => shared.registry.set(&format!("tower/{path}/00000"), b"something else").await?,
        }
        let words = ["the log is not whole", &path, "are not what its name says"];
        fails(&place, &["verify"], &words).await?;
        let file = place.data_dir().join("file");
        fails(&place, &["export", name(&file)], &["nothing is exported", &path]).await?;
        assert!(!file.exists());
        succeeds(&place, &["verify", "--from", "202"], "whole: ").await?;
    }
    Ok(())
}

#[tokio::test]
async fn znodes_that_were_written_by_hand_stop_the_reading_there() -> Result<()> {
    let place = Place::zookeeper().await?;
    fill(&place).await?;
    let registry = &place.shared.as_ref().context("it is in ZooKeeper")?.registry;
    let forged = tower_proto::v1::LogEntry { index: 100, ..entry("forged") };
    registry.set("tower/log/0/100", &prost::Message::encode_to_vec(&forged)).await?;
    let at = registry.absolute("tower/log/0/100");
    fails(&place, &["verify"], &[&format!("entry 100 at {at} is refused"), "does not follow entry 99"])
        .await?;
    let log = place.open().await?;
    assert_eq!(log.read(90, 100).await?.len(), 10);
    assert!(log.read(100, 1).await.is_err());
    registry.delete("tower/log/0/100").await?;
    fails(&place, &["verify"], &[&format!("entry 100 at {at} is refused"), "it is not there"]).await
}
