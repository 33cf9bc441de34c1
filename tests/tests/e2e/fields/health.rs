//! Health checks, outlier detection, and what happens when few endpoints are well.

use anyhow::{Result, ensure};
use tower_tests::{Ask, Echo, Protocol, eventually};

use super::rig::{Instance, Rig, Running};
use crate::support::{SOON, answered_by};

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
    answered_by(&[running.envoy.caller(Protocol::Http1)], "web", &["alpha"]).await;
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
#[ignore = "counts exactly what several workers of an Envoy share unevenly: fails now and then"]
async fn who_answers_badly_is_left_out_for_a_while() -> Result<()> {
    let (bad, good) = (Echo::start("bad").await?, Echo::start("good").await?);
    bad.answer(500);
    let both = [Instance::at(bad.address()), Instance::at(good.address())];
    let detect = |of: &str, time: &str| {
        format!(
            "callers: {{outlierDetection: {{{of}, interval: 100ms, baseEjectionTime: {time}, maxEjectionPercent: 50}}}}"
        )
    };
    let running = Rig::default()
        .service("status", &detect("consecutive5xx: 2", "1s"), &both)?
        .service("gateway", &detect("consecutive5xx: 0, consecutiveGatewayErrors: 2", "1h"), &both)?
        .start()
        .await?;
    let caller = running.envoy.caller(Protocol::Http1);
    ejected(&running, "status", "consecutive_5xx").await;
    let tally = caller.tally("gateway", 20).await?;
    assert_eq!(tally.failures, [(500, 10)].into(), "500 is none of 502, 503, 504: {tally}");
    bad.answer(503);
    ejected(&running, "gateway", "consecutive_gateway_failure").await;
    answered_by(&[caller], "gateway", &["good"]).await;
    bad.answer(200);
    answered_by(&[caller], "status", &["bad", "good"]).await;
    Ok(())
}

/// Calls until an endpoint was left out for this reason.
async fn ejected(running: &Running, service: &str, reason: &str) {
    let stat = format!("cluster.{service}.outlier_detection.ejections_enforced_{reason}");
    eventually(SOON, format!("{service} leaves one out"), async || {
        running.envoy.caller(Protocol::Http1).tally(service, 4).await?;
        let ejected = running.envoy.stat(&stat).await?;
        ensure!(ejected == Some(1), "{ejected:?}");
        Ok(())
    })
    .await;
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
    ejected(&running, "web", "consecutive_local_origin_failure").await;
    answered_by(&[running.envoy.caller(Protocol::Http1)], "web", &["good"]).await;
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
    answered_by(&[caller], "strict", &["good"]).await;
    for service in ["panics", "balanced"] {
        let tally = caller.tally(service, 20).await?;
        assert!(
            tally.failures.contains_key(&500) && tally.answers.contains_key("good"),
            "{service}: {tally}"
        );
    }
    good.answer(500);
    eventually(SOON, "nobody is better than the ill", async || {
        let reply = running.ask(&Ask::get("strict", "/")).await?;
        ensure!(reply.status == 503, "{}", reply.status);
        Ok(())
    })
    .await;
    Ok(())
}
