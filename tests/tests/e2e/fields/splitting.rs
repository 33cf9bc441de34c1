//! Subsets, weights and copies.

use anyhow::{Result, ensure};
use tower_tests::{Ask, Echo, Protocol, eventually};

use super::rig::{Instance, Rig};
use crate::support::SOON;

const SUBSETS: &str = "subsets: {stable: {release: stable}, canary: {release: canary}}";

async fn two() -> Result<(Echo, Echo, [Instance; 2])> {
    let (stable, canary) = (Echo::start("stable").await?, Echo::start("canary").await?);
    let instances = [
        Instance::at(stable.address()).label("release", "stable"),
        Instance::at(canary.address()).label("release", "canary"),
    ];
    Ok((stable, canary, instances))
}

#[tokio::test]
async fn weights_are_relative() -> Result<()> {
    let (_stable, _canary, instances) = two().await?;
    let spec = format!(
        "callers: {{{SUBSETS}, routes: [{{name: a, backendRefs: [{{subset: stable, weight: 3}}, {{subset: canary}}]}}]}}"
    );
    let running = Rig::default().service("web", &spec, &instances)?.start().await?;
    let tally = running.envoy.caller(Protocol::Http1).tally("web", 400).await?;
    // Five standard deviations of 400 draws around 100.
    let canary = tally.answers.get("canary").copied().unwrap_or_default();
    assert!(tally.is_exactly(&["stable", "canary"]) && (57..=143).contains(&canary), "{tally}");
    Ok(())
}

#[tokio::test]
async fn a_subset_is_only_its_endpoints_and_the_service_all_of_them() -> Result<()> {
    let (_stable, _canary, instances) = two().await?;
    let spec = format!(
        "
callers:
  {SUBSETS}
  routes:
  - {{name: canary, matches: [{{headers: [{{name: x-canary, type: Present}}]}}], backendRefs: [{{subset: canary}}]}}
  - {{name: none, matches: [{{path: {{value: /none}}}}], backendRefs: [{{subset: canary, weight: 0}}, {{subset: stable, weight: 1}}]}}
  - {{name: all}}
"
    );
    let running = Rig::default().service("web", &spec, &instances)?.start().await?;
    for _ in 0..20 {
        let reply = running.ask(&Ask::get("web", "/").header("x-canary", "1")).await?.ok()?;
        assert_eq!(reply.body, "canary");
        assert_eq!(running.ask(&Ask::get("web", "/none")).await?.ok()?.body, "stable");
    }
    let tally = running.envoy.caller(Protocol::Http1).tally("web", 20).await?;
    assert!(tally.is_exactly(&["stable", "canary"]), "{tally}");
    Ok(())
}

#[tokio::test]
async fn copies_go_elsewhere_and_nobody_waits_for_them() -> Result<()> {
    let (alpha, copies) = (Echo::start("alpha").await?, Echo::start("copies").await?);
    copies.answer(500);
    let spec = "
callers:
  routes:
  - {name: half, matches: [{path: {value: /half}}], mirror: {service: shadow, percent: 50}}
  - {name: all, mirror: {service: shadow}}
";
    let running = Rig::default()
        .service("web", spec, &[Instance::at(alpha.address())])?
        .service("shadow", "callers: {}", &[Instance::at(copies.address())])?
        .start()
        .await?;
    for _ in 0..10 {
        assert_eq!(running.ask(&Ask::get("web", "/x")).await?.ok()?.body, "alpha");
    }
    eventually(SOON, "all are copied", async || {
        let seen = copies.seen();
        ensure!(seen.len() == 10 && seen.iter().all(|seen| seen.path == "/x"), "{}", seen.len());
        Ok(())
    })
    .await;
    for _ in 0..200 {
        running.ask(&Ask::get("web", "/half")).await?.ok()?;
    }
    eventually(SOON, "half are copied", async || {
        let copied = copies.seen().len() - 10;
        ensure!((65..=135).contains(&copied), "{copied} of 200");
        Ok(())
    })
    .await;
    Ok(())
}
