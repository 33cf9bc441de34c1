//! Which endpoint is chosen.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tower_tests::{Ask, Echo, Protocol};

use super::rig::{Instance, Rig, Running};

async fn echoes(count: usize) -> Result<(Vec<Echo>, Vec<Instance>)> {
    let mut echoes = Vec::new();
    for number in 0..count {
        echoes.push(Echo::start(&format!("e{number}")).await?);
    }
    let instances = echoes.iter().map(|echo| Instance::at(echo.address())).collect();
    Ok((echoes, instances))
}

fn balancer(of: &str) -> String {
    format!("callers: {{loadBalancer: {{{of}}}}}")
}

#[tokio::test]
async fn every_policy_reaches_every_endpoint() -> Result<()> {
    let (_echoes, instances) = echoes(3).await?;
    let mut rig = Rig::default();
    let policies = [
        "type: RoundRobin",
        "type: LeastRequest, choiceCount: 3",
        "type: Random",
        "type: RingHash, minRingSize: 512, maxRingSize: 2048, hashPolicy: [{header: x-user}]",
        "type: Maglev, tableSize: 251, hashPolicy: [{header: x-user}]",
        "type: RoundRobin, slowStart: {window: 10s, minWeightPercent: 20}",
        "type: LeastRequest, slowStart: {window: 10s}",
    ];
    for (number, policy) in policies.iter().enumerate() {
        rig = rig.service(&format!("s{number}"), &balancer(policy), &instances)?;
    }
    let running = rig.start().await?;
    for (number, policy) in policies.iter().enumerate() {
        let mut answers = BTreeMap::new();
        for user in 0..60 {
            let ask = Ask::get(&format!("s{number}"), "/").header("x-user", &user.to_string());
            *answers.entry(running.ask(&ask).await?.ok()?.body).or_insert(0) += 1;
        }
        assert_eq!(answers.len(), 3, "{policy}: {answers:?}");
    }
    Ok(())
}

#[tokio::test]
async fn least_request_spares_the_busy() -> Result<()> {
    let (echoes, instances) = echoes(2).await?;
    let spec = balancer("type: LeastRequest, choiceCount: 10");
    let running = Rig::default().service("web", &spec, &instances)?.start().await?;
    echoes[0].take(std::time::Duration::from_secs(3));
    let egress = running.envoy.egress();
    // One request keeps the slow one busy. Who gets it is chance, as long as nobody is busy.
    let mut busy = tokio::task::JoinSet::new();
    tower_tests::eventually(crate::support::SOON, "the slow one is asked", async || {
        if echoes[0].seen().is_empty() {
            busy.spawn(async move { Ask::get("web", "/").send(egress).await });
        }
        anyhow::ensure!(!echoes[0].seen().is_empty());
        Ok(())
    })
    .await;
    let tally = running.envoy.caller(Protocol::Http1).tally("web", 30).await?;
    assert!(tally.is_exactly(&["e1"]), "{tally}");
    Ok(())
}

/// Who answers this ask, which is always the same.
async fn always(running: &Running, ask: &Ask) -> Result<String> {
    let first = running.ask(ask).await?.ok()?.body;
    for _ in 0..10 {
        assert_eq!(running.ask(ask).await?.ok()?.body, first);
    }
    Ok(first)
}

#[tokio::test]
async fn hashing_keeps_to_one_endpoint() -> Result<()> {
    let (_echoes, instances) = echoes(3).await?;
    let spec = "
callers:
  loadBalancer: {type: Maglev, hashPolicy: [{header: x-user}]}
  routes:
  - {name: query, matches: [{path: {value: /query}}], hashPolicy: [{queryParam: user}]}
  - {name: cookie, matches: [{path: {value: /cookie}}], hashPolicy: [{cookie: {name: sticky, ttl: 1h, path: /cookie}}]}
  - {name: source, matches: [{path: {value: /source}}], hashPolicy: [{sourceIp: true}]}
  - {name: first, matches: [{path: {value: /first}}], hashPolicy: [{header: x-user, terminal: true}, {queryParam: user}]}
  - {name: rest}
";
    let running = Rig::default()
        .service("web", spec, &instances)?
        .service("ring", &balancer("type: RingHash, hashPolicy: [{header: x-user}]"), &instances)?
        .start()
        .await?;
    for host in ["web", "ring"] {
        let mut chosen = std::collections::BTreeSet::new();
        for user in 0..20 {
            chosen.insert(always(&running, &Ask::get(host, "/").header("x-user", &user.to_string())).await?);
        }
        assert_eq!(chosen.len(), 3, "{host}");
    }
    always(&running, &Ask::get("web", "/query?user=7")).await?;
    always(&running, &Ask::get("web", "/source")).await?;
    // What comes after a terminal hash does not count.
    let first = always(&running, &Ask::get("web", "/first?user=1").header("x-user", "7")).await?;
    assert_eq!(always(&running, &Ask::get("web", "/first?user=2").header("x-user", "7")).await?, first);

    let reply = running.ask(&Ask::get("web", "/cookie")).await?.ok()?;
    let cookie = reply.headers.get("set-cookie").context("it is set")?.to_str()?;
    assert!(cookie.starts_with("sticky=") && cookie.contains("Max-Age=3600"), "{cookie}");
    let pair = cookie.split(';').next().unwrap_or_default();
    let kept = always(&running, &Ask::get("web", "/cookie").header("cookie", pair)).await?;
    assert_eq!(kept, reply.body, "who answered first");
    Ok(())
}

#[tokio::test]
async fn protocols_are_what_the_application_speaks() -> Result<()> {
    let (echoes, instances) = echoes(1).await?;
    let mut rig = Rig::default();
    for protocol in ["http", "http2", "grpc"] {
        rig = rig.service(protocol, &format!("callers: {{protocol: {protocol}}}"), &instances)?;
    }
    let running = rig.service("mirrored", "callers: {}", &instances)?.start().await?;
    for caller in Protocol::ALL {
        for (host, expected) in [
            ("http", "HTTP/1.1"),
            ("http2", "HTTP/2.0"),
            ("grpc", "HTTP/2.0"),
            ("mirrored", caller.version()),
        ] {
            running.ask(&Ask::get(host, "/").over(caller)).await?.ok()?;
            assert_eq!(format!("{:?}", echoes[0].last()?.version), expected, "{host} {caller:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn failover_leaves_the_zone_only_when_it_must() -> Result<()> {
    let (echoes, mut instances) = echoes(2).await?;
    instances[0] = instances[0].clone().zone("a");
    instances[1] = instances[1].clone().zone("b");
    let spec = "
callers:
  locality: {mode: Failover}
  healthChecks: [{http: {path: /}, interval: 100ms, healthyThreshold: 1, unhealthyThreshold: 1}]
";
    let running = Rig::default().service("web", spec, &instances)?.start().await?;
    let caller = running.envoy.caller(Protocol::Http1);
    let tally = caller.tally("web", 20).await?;
    assert!(tally.is_exactly(&["e0"]), "{tally}");
    echoes[0].answer(500);
    crate::support::answered_by(&[caller], "web", &["e1"]).await;
    Ok(())
}
