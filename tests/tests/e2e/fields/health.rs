//! Health checks, outlier detection, and what happens when few endpoints are well.

use anyhow::{Result, ensure};
use tower_tests::{Ask, Echo, Protocol, eventually};

use super::rig::{Instance, Rig, Running};
use crate::support::SOON;

async fn healthy(running: &Running, service: &str, expected: u64) {
    eventually(SOON, format!("{service} has {expected} healthy endpoints"), async || {
        let healthy = running.envoy.stat(&format!("cluster.{service}.membership_healthy")).await?;
        ensure!(healthy == Some(expected), "{healthy:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn endpoints_are_asked_whether_they_are_well() -> Result<()> {
    let (alpha, beta) = (Echo::start("alpha").await?, Echo::start("beta").await?);
    let both = [Instance::at(alpha.address()), Instance::at(beta.address())];
    let check = "interval: 100ms, timeout: 1s, healthyThreshold: 1, unhealthyThreshold: 2";
    let spec = format!(
        "callers: {{healthChecks: [{{http: {{path: /health, host: probe, expectedStatuses: [200, 204]}}, {check}}}]}}"
    );
    let tcp = format!("callers: {{healthChecks: [{{tcp: {{}}, {check}}}]}}");
    beta.answer(204);
    let running = Rig::default().service("web", &spec, &both)?.service("tcp", &tcp, &both)?.start().await?;
    healthy(&running, "web", 2).await;
    healthy(&running, "tcp", 2).await;
    let seen = beta.last()?;
    assert_eq!((seen.path.as_str(), seen.host.as_str()), ("/health", "probe"));
    beta.answer(500);
    healthy(&running, "web", 1).await;
    let tally = running.envoy.caller(Protocol::Http1).tally("web", 20).await?;
    assert!(tally.is_exactly(&["alpha"]), "{tally}");
    healthy(&running, "tcp", 2).await;
    beta.answer(200);
    healthy(&running, "web", 2).await;
    drop(beta);
    healthy(&running, "tcp", 1).await;
    Ok(())
}

#[tokio::test]
async fn grpc_has_its_own_health_check() -> Result<()> {
    let alpha = Echo::start("alpha").await?;
    let spec = "callers: {protocol: grpc, healthChecks: [{grpc: {service: a.B}, interval: 100ms, \
                unhealthyThreshold: 1}]}";
    let running = Rig::default().service("web", spec, &[Instance::at(alpha.address())])?.start().await?;
    eventually(SOON, "it is asked", async || {
        ensure!(alpha.last()?.path == "/grpc.health.v1.Health/Check");
        Ok(())
    })
    .await;
    healthy(&running, "web", 0).await;
    Ok(())
}

#[tokio::test]
async fn who_answers_badly_is_left_out_for_a_while() -> Result<()> {
    let (bad, good) = (Echo::start("bad").await?, Echo::start("good").await?);
    bad.answer(500);
    let both = [Instance::at(bad.address()), Instance::at(good.address())];
    let detect = |of: &str| {
        format!(
            "callers: {{outlierDetection: {{{of}, interval: 100ms, baseEjectionTime: 1s, maxEjectionPercent: 50}}}}"
        )
    };
    let running = Rig::default()
        .service("status", &detect("consecutive5xx: 2"), &both)?
        .service("gateway", &detect("consecutive5xx: 0, consecutiveGatewayErrors: 2"), &both)?
        .start()
        .await?;
    let caller = running.envoy.caller(Protocol::Http1);
    let tally = caller.tally("status", 20).await?;
    assert_eq!(tally.failures, [(500, 2)].into(), "{tally}");
    assert_eq!(running.envoy.stat("cluster.status.outlier_detection.ejections_active").await?, Some(1));
    let tally = caller.tally("gateway", 20).await?;
    assert_eq!(tally.failures, [(500, 10)].into(), "500 is none of 502, 503, 504: {tally}");
    bad.answer(503);
    let tally = caller.tally("gateway", 20).await?;
    assert_eq!(tally.failures, [(503, 2)].into(), "{tally}");
    bad.answer(200);
    eventually(SOON, "it is asked again", async || {
        let tally = caller.tally("status", 4).await?;
        ensure!(tally.is_exactly(&["bad", "good"]), "{tally}");
        Ok(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn who_cannot_be_reached_is_told_apart_from_bad_answers() -> Result<()> {
    let good = Echo::start("good").await?;
    let both = [Instance::at(tower_tests::ports::free_address()), Instance::at(good.address())];
    let spec = "
callers:
  outlierDetection: {consecutive5xx: 0, consecutiveLocalFailures: 2, interval: 100ms, maxEjectionPercent: 100}
  routes: [{name: a, retry: {attempts: 0}}]
";
    let running = Rig::default().service("web", spec, &both)?.start().await?;
    let tally = running.envoy.caller(Protocol::Http1).tally("web", 20).await?;
    assert_eq!(tally.failures, [(503, 2)].into(), "{tally}");
    Ok(())
}

#[tokio::test]
async fn with_few_well_endpoints_all_are_used_only_if_the_owner_says_so() -> Result<()> {
    let (bad, good) = (Echo::start("bad").await?, Echo::start("good").await?);
    let both = [Instance::at(bad.address()), Instance::at(good.address())];
    let spec = |more: &str| {
        format!(
            "callers: {{{more} healthChecks: [{{http: {{path: /}}, interval: 100ms, healthyThreshold: 1, \
             unhealthyThreshold: 1}}]}}"
        )
    };
    let running = Rig::default()
        .service("strict", &spec(""), &both)?
        .service("panics", &spec("panicThresholdPercent: 60,"), &both)?
        .service("balanced", &spec("panicThresholdPercent: 60, loadBalancer: {type: LeastRequest},"), &both)?
        .start()
        .await?;
    for service in ["strict", "panics", "balanced"] {
        healthy(&running, service, 2).await;
    }
    bad.answer(500);
    for service in ["strict", "panics", "balanced"] {
        healthy(&running, service, 1).await;
    }
    let caller = running.envoy.caller(Protocol::Http1);
    let tally = caller.tally("strict", 20).await?;
    assert!(tally.is_exactly(&["good"]), "{tally}");
    for service in ["panics", "balanced"] {
        let tally = caller.tally(service, 20).await?;
        assert!(
            tally.failures.contains_key(&500) && tally.answers.contains_key("good"),
            "{service}: {tally}"
        );
    }
    good.answer(500);
    healthy(&running, "strict", 0).await;
    assert_eq!(running.ask(&Ask::get("strict", "/")).await?.status, 503, "nobody is better than the ill");
    Ok(())
}
