//! Circuit breakers and rate limits.

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tower_tests::{Ask, Echo, Protocol, eventually};

use super::rig::{Instance, Rig};
use crate::support::SOON;

#[tokio::test]
async fn so_many_requests_may_be_active() -> Result<()> {
    let slow = Echo::start("slow").await?;
    let at = [Instance::at(slow.address())];
    let running = Rig::default()
        .service("requests", "callers: {circuitBreaker: {maxRequests: 2}}", &at)?
        .service("waiting", "callers: {circuitBreaker: {maxConnections: 1, maxPendingRequests: 1}}", &at)?
        .service("unlimited", "callers: {}", &at)?
        .start()
        .await?;
    let egress = running.envoy.egress();
    for (host, at_most, stat) in
        [("requests", 2, "rq_active"), ("waiting", 2, "rq_pending_active"), ("unlimited", 6, "rq_active")]
    {
        slow.hold();
        let before = slow.seen().len();
        let mut active = JoinSet::new();
        // One by one, so that each finds the one before it counted.
        for number in 1..=at_most {
            let ask = Ask::get(host, "/");
            active.spawn(async move { ask.send(egress).await.map(|reply| reply.status) });
            let counted = if host == "waiting" { number - 1 } else { number };
            let stat = format!("cluster.{host}.upstream_{stat}");
            eventually(SOON, format!("{stat} is {counted}"), async || {
                let value = running.envoy.stat(&stat).await?;
                let asked = slow.seen().len() - before;
                ensure!(value == Some(counted) && asked > 0, "{value:?}, {asked} asked");
                Ok(())
            })
            .await;
        }
        if host != "unlimited" {
            assert_eq!(running.ask(&Ask::get(host, "/")).await?.status, 503, "{host}: no third one");
        }
        slow.let_go();
        let statuses = active.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
        assert!(statuses.iter().all(|status| *status == 200), "{host}: {statuses:?}");
    }
    Ok(())
}

#[tokio::test]
async fn callers_take_only_so_many_requests() -> Result<()> {
    let alpha = Echo::start("alpha").await?;
    let spec = "
callers:
  rateLimits: {local: {requests: 3, interval: 1h}}
  routes:
  - name: own
    matches: [{path: {value: /own}}, {path: {value: /also}}]
    rateLimits: {local: {requests: 1, interval: 1h, burst: 4}}
  - {name: shadow, matches: [{path: {value: /shadow}}], rateLimits: {local: {requests: 1, interval: 1h, mode: shadow}}}
  - {name: a, matches: [{path: {value: /a}}]}
  - {name: b}
";
    let running = Rig::default().service("web", spec, &[Instance::at(alpha.address())])?.start().await?;
    let statuses = async |paths: &[&str]| {
        let mut statuses = Vec::new();
        for path in paths {
            statuses.push(running.ask(&Ask::get("web", path)).await?.status);
        }
        anyhow::Ok(statuses)
    };
    let own = statuses(&["/own", "/also", "/own", "/also", "/own", "/also"]).await?;
    assert_eq!(own, [200, 200, 200, 200, 429, 429], "both paths are one route");
    let rest = statuses(&["/a", "/b", "/a", "/b", "/a"]).await?;
    assert_eq!(rest, [200, 200, 200, 429, 429], "all others share one limit");
    assert_eq!(statuses(&["/shadow"; 3]).await?, [200; 3]);
    let counted = running.envoy.stat("web.http_local_rate_limit.shadow_mode").await?;
    assert_eq!(counted, Some(2), "it is counted what would have been refused");
    Ok(())
}

#[tokio::test]
async fn a_bucket_is_filled_again() -> Result<()> {
    let alpha = Echo::start("alpha").await?;
    let spec = "callers: {rateLimits: {local: {requests: 1, interval: 300ms}}}";
    let running = Rig::default().service("web", spec, &[Instance::at(alpha.address())])?.start().await?;
    let tally = running.envoy.caller(Protocol::Http1).tally("web", 3).await?;
    assert!(tally.failures.contains_key(&429), "{tally}");
    eventually(SOON, "it is filled again", async || {
        let reply = running.ask(&Ask::get("web", "/")).await?;
        ensure!(reply.status == 200, "{}", reply.status);
        Ok(())
    })
    .await;
    Ok(())
}
