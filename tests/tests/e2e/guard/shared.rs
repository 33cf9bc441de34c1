//! Towers that share an event log: what an operator decides at one, all of them do.

use anyhow::{Context, Result, ensure};
use http::{Request, header::AUTHORIZATION};
use tower_tests::{Registry, Tower, ZooKeeper, eventually};

use super::options;
use crate::{registrar::member, support::SOON};

async fn tower(registry: &Registry, log: &Registry) -> Result<Tower> {
    let mut options = options(&registry.discovery("hostport"), "10m");
    let ensemble = ZooKeeper::shared().await?.connect_string();
    options.flags.push(format!("--event-log=zk://{ensemble}{}", log.absolute("tower")));
    let tower = Tower::start(options).await?;
    tower.wait_ready(SOON).await?;
    Ok(tower)
}

/// The token of the admin, which one of them has.
fn token(towers: &[&Tower]) -> Result<String> {
    let tokens: Vec<String> = towers.iter().filter_map(|tower| tower.admin_token()).collect();
    let [token] = &tokens[..] else { anyhow::bail!("{} Towers have a token, and not one", tokens.len()) };
    Ok(token.clone())
}

#[tokio::test]
async fn a_hold_that_is_released_at_one_is_released_at_all_and_the_next_one_is_not() -> Result<()> {
    let zookeeper = ZooKeeper::shared().await?;
    let (registry, log) = (zookeeper.root().await?, zookeeper.root().await?);
    let (one, mut other) = tokio::try_join!(tower(&registry, &log), tower(&registry, &log))?;
    let token = eventually(SOON, "one of them has a token", async || token(&[&one, &other])).await;
    let ask = async |tower: &Tower, method: &str, path: &str| {
        let request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        tower.ask(request.header(AUTHORIZATION, format!("Bearer {token}")), "").await
    };
    let holds = async |tower: &Tower| {
        let answer = ask(tower, "GET", "/holds").await?.ok()?.json()?;
        Ok::<_, anyhow::Error>(answer["holds"].as_array().context("no list")?.clone())
    };
    let held = async |tower: &Tower| {
        eventually(SOON, "it is held", async || {
            let holds = holds(tower).await?;
            let [hold] = &holds[..] else { anyhow::bail!("not one hold: {holds:?}") };
            Ok(hold["id"].as_str().context("no id")?.to_owned())
        })
        .await
    };
    let lose = async || {
        let doomed = registry.doomed_session().await?;
        doomed.create_ephemeral(&member("one"), b"127.0.0.1:1").await?;
        for tower in [&one, &other] {
            eventually(SOON, "it is registered", async || {
                let endpoints = ask(tower, "GET", "/services/web/endpoints").await?.ok()?.json()?;
                ensure!(endpoints["endpoints"].as_array().is_some_and(|all| all.len() == 1), "{endpoints}");
                ensure!(holds(tower).await?.is_empty(), "what is there again is not held");
                Ok(())
            })
            .await;
        }
        drop(doomed);
        Ok::<_, anyhow::Error>(())
    };

    lose().await?;
    let id = held(&one).await;
    held(&other).await;
    ask(&one, "POST", &format!("/holds/{id}/release")).await?.ok()?;
    assert!(holds(&one).await?.is_empty());
    eventually(SOON, "the other one has released it", async || {
        ensure!(holds(&other).await?.is_empty());
        Ok(())
    })
    .await;
    let activity = ask(&other, "GET", "/activity?command=release-hold").await?.ok()?.json()?;
    assert_eq!(activity["entries"][0]["events"][0]["data"]["source"], "zk", "{activity}");

    // The next loss is another one, also for a Tower that reads of the release at its start.
    lose().await?;
    held(&one).await;
    held(&other).await;
    other.kill();
    other.restart().await?;
    other.wait_ready(SOON).await?;
    held(&other).await;
    held(&one).await;
    Ok(())
}
