//! What registries lose is not always gone: the guard, quarantine, and Tower's last good state.

mod holds;
mod quarantine;
mod restart;
mod shared;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tower_tests::{Caller, Tower, TowerOptions, eventually};

use crate::support::SOON;

/// Options of a Tower whose only source is called `zk`, and holds for so long.
fn options(discovery: &str, hold: &str) -> TowerOptions {
    TowerOptions {
        discovery: vec![format!("{discovery}&id=zk")],
        flags: vec![format!("--guard-hold={hold}")],
        ..TowerOptions::default()
    }
}

/// The list at `/api/v1/<what>`.
async fn list(tower: &Tower, what: &str) -> Result<Vec<Value>> {
    let answer = tower.http_get(&format!("/api/v1/{what}")).await?.ok()?.json()?;
    let name = what.rsplit('/').next().unwrap_or(what);
    let list = answer.get(name).and_then(Value::as_array).cloned();
    list.with_context(|| format!("not the documented form: {answer}"))
}

/// The only hold.
async fn hold(tower: &Tower) -> Result<Value> {
    let holds = list(tower, "holds").await?;
    let [hold] = &holds[..] else { anyhow::bail!("not one hold: {holds:?}") };
    Ok(hold.clone())
}

/// The only quarantine.
async fn quarantine(tower: &Tower) -> Result<Value> {
    let quarantines = list(tower, "quarantines").await?;
    let [quarantine] = &quarantines[..] else { anyhow::bail!("not one quarantine: {quarantines:?}") };
    Ok(quarantine.clone())
}

/// Waits until nobody answers for a service that is still known.
async fn answered_by_nobody(callers: &[Caller<'_>], host: &str) {
    for caller in callers {
        eventually(SOON, format!("nobody answers for {host}"), async || {
            let reply = caller.get(host).await?;
            ensure!(reply.status == 503 || reply.status == 404, "{}: {}", reply.status, reply.body);
            Ok(())
        })
        .await;
    }
}

/// Waits until a file of Tower's source is on disk, and says so.
async fn kept(tower: &Tower, file: &str, words: &str) {
    let path = tower.folder().join("data/sources").join(file);
    eventually(SOON, format!("{} has {words:?}", path.display()), async || {
        let contents = std::fs::read(&path)?;
        ensure!(String::from_utf8_lossy(&contents).contains(words), "it has not");
        Ok(())
    })
    .await;
}
