//! Endpoints that are registered, or held, and cannot be reached.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;
use tower_tests::{Envoy, Load, Mode, Protocol, TowerOptions, Upstream, ZooKeeper, eventually, rounds};

use crate::{
    registrar::{Format, Registrar, member, payload},
    support::{Mesh, SOON, answered_by, callers},
};

/// As long as this no endpoint that was passed over is tried again.
const PASSED_OVER: Duration = Duration::from_secs(4);

/// How long the guard holds, unless it is told otherwise.
const HOLD: usize = 60;

/// Requests so far, and how many of them failed.
async fn counted(load: &Load) -> (u64, u64) {
    let failed = load.failures().await.values().map(|failures| failures.count).sum();
    (load.good() + failed, failed)
}

/// Waits until so many requests have been made.
async fn made(load: &Load, requests: u64) -> (u64, u64) {
    eventually(SOON, format!("{requests} requests are made"), async || {
        let (made, failed) = counted(load).await;
        ensure!(made >= requests, "{made}");
        Ok((made, failed))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_of_ten_that_are_dead_and_held_cost_the_first_requests_only() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let mut upstreams = Vec::new();
    for number in 0..10 {
        let upstream = Upstream::start(&format!("u{number}")).await?;
        registry.create(&member(upstream.name()), &payload(Format::Hostport, upstream.address())).await?;
        upstreams.push(upstream);
    }
    let options = TowerOptions {
        discovery: vec![format!("{}&id=zk", registry.discovery("hostport"))],
        flags: vec!["--guard-hold=10m".to_owned()],
        ..TowerOptions::default()
    };
    let mesh = Mesh::with(options).await?;
    let names: Vec<String> = upstreams.iter().map(|upstream| upstream.name().to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let envoys = mesh.envoys_in(&[Mode::Delta, Mode::SotwPerType]).await?;
    answered_by(&callers(&envoys), "web", &names).await;

    for name in &names[2..] {
        registry.delete(&member(name)).await?;
    }
    upstreams.truncate(2);
    eventually(SOON, "they are held", async || {
        let held = mesh.tower.http_get("/api/v1/holds").await?.ok()?.json()?;
        ensure!(held["holds"][0]["endpoint_count"] == 8, "{held}");
        Ok(())
    })
    .await;
    for envoy in &envoys {
        costs_the_first_requests_only(envoy).await?;
    }
    Ok(())
}

async fn costs_the_first_requests_only(envoy: &Envoy) -> Result<()> {
    let start = Instant::now();
    let load = Load::start(envoy.egress(), &["web"], 200);
    let (_, first) = made(&load, 100).await;
    tokio::time::sleep_until(start + PASSED_OVER).await;
    let (requests, failed) = counted(&load).await;
    eprintln!(
        "of the first 100 requests {first} failed, of {} after them {}",
        requests - 100,
        failed - first
    );
    assert!(first > 0, "they are not dead");
    assert!(
        requests >= 300 && failed == first,
        "of {requests} requests {failed} failed: {:?}",
        load.failures().await
    );

    // As long as they are held they are tried again now and then. Who fails then has met two of them.
    let more = 200 * rounds(0, HOLD) as u64;
    if more > 0 {
        tokio::time::sleep(Duration::from_secs(HOLD as u64)).await;
        let (all, all_failed) = counted(&load).await;
        eprintln!("of {} requests in the {HOLD} s after that {} failed", all - requests, all_failed - failed);
        assert!(
            (all_failed - failed) * 200 < all - requests,
            "more than half a percent: {:?}",
            load.failures().await
        );
    }
    Ok(())
}

#[tokio::test]
async fn whoever_comes_back_is_called_at_once_if_there_is_nobody_else() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;
    registrar.register(alpha.address()).await?;
    answered_by(&callers(&envoys), "web", &["alpha"]).await;
    let alpha = restarted(&envoys, vec![alpha]).await?;

    registrar.register(beta.address()).await?;
    answered_by(&callers(&envoys), "web", &["alpha", "beta"]).await;
    restarted(&envoys, alpha.into_iter().chain([beta]).collect()).await?;
    Ok(())
}

/// All instances of the service are away, long enough for that to be noticed, and come back.
async fn restarted(envoys: &[Envoy], upstreams: Vec<Upstream>) -> Result<Vec<Upstream>> {
    let places: Vec<_> = upstreams.iter().map(|up| (up.name().to_owned(), up.address())).collect();
    drop(upstreams);
    let callers: Vec<_> = envoys.iter().map(|envoy| envoy.caller(Protocol::Http1)).collect();
    for caller in &callers {
        eventually(SOON, "nobody answers", async || {
            let tally = caller.tally("web", 50).await?;
            ensure!(tally.answers.is_empty(), "{tally}");
            Ok(())
        })
        .await;
    }
    let mut back = Vec::new();
    for (name, address) in places {
        back.push(Upstream::start_at(&name, address).await?);
    }
    for caller in &callers {
        let tally = caller.tally("web", 50).await?;
        ensure!(tally.failures.is_empty(), "{tally}");
    }
    Ok(back)
}
