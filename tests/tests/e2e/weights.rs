//! Weights are shifted under load: nobody who calls notices, and what the calls go through stays as it is.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tower_tests::{Endpoint, EndpointFiles, Envoy, Load, Mode, Tower, Upstream, eventually, rounds};

use crate::support::{Mesh, SOON, rejections};

/// Requests a second.
const RATE: u32 = 1_000;

/// So many answers are looked at with each of the weights.
const ANSWERS: u64 = 600;

/// Of each hundred requests, those for stable and those for canary.
const WEIGHTS: [[u64; 2]; 3] = [[0, 100], [50, 50], [100, 0]];

const DOCUMENT: &str = "
apiVersion: tower.mesh/v1
kind: MeshService
metadata: {name: web, owner: web-team}
spec:
  callers:
    subsets: {stable: {release: stable}, canary: {release: canary}}
    routes:
    - name: default
      backendRefs: [{subset: stable, weight: 100}, {subset: canary, weight: 0}]
";

/// Asks for something that becomes an activation, and waits until it has succeeded.
async fn succeeds(tower: &Tower, request: http::request::Builder, body: Value) -> Result<()> {
    let reply = tower.ask(request.header(CONTENT_TYPE, "application/json"), body.to_string()).await?;
    ensure!(reply.status == 202, "{} {}", reply.status, reply.body);
    let id = reply.json()?["activation"]["id"].as_str().context("nothing was to be done")?.to_owned();
    eventually(SOON, format!("activation {id:?} succeeds"), async || {
        let told = tower.http_get(&format!("/api/v1/activations/{id}")).await?.ok()?.json()?;
        ensure!(told["state"] == "succeeded", "{told}");
        Ok(())
    })
    .await;
    Ok(())
}

/// What counts listeners, clusters, what Envoy was told of them, and connections of callers. Those of its
/// admin port are ours.
async fn counts(envoy: &Envoy) -> Result<BTreeMap<String, u64>> {
    const PARTS: [&str; 4] =
        ["listener_manager.", "cluster_manager.", "downstream_cx_", "upstream_cx_destroy"];
    let stats = envoy.admin_get("/stats").await?.body;
    let count = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        let wanted = PARTS.iter().any(|part| name.contains(part)) && !name.contains("admin");
        // These move with traffic and time.
        let moves = ["_bytes_", "worker_", "dispatcher", "update_attempt", "xds_cluster", "cx_length"];
        let moves = moves.iter().any(|part| name.contains(part));
        Some((name.to_owned(), value.parse().ok()?)).filter(|_| wanted && !moves)
    };
    Ok(stats.lines().filter_map(count).collect())
}

/// Who has answered the next requests.
async fn answers(load: &Load, upstreams: &[Upstream; 2]) -> [u64; 2] {
    let (good, before) = (load.good(), upstreams.each_ref().map(Upstream::requests));
    eventually(SOON, "requests are answered", async || {
        ensure!(load.good() >= good + ANSWERS, "{} are, and {:?}", load.good(), load.failures().await);
        Ok(())
    })
    .await;
    [0, 1].map(|place: usize| upstreams[place].requests() - before[place])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_are_shifted_under_load_and_nothing_else_moves() -> Result<()> {
    let files = EndpointFiles::new()?;
    let upstreams = [Upstream::start("stable").await?, Upstream::start("canary").await?];
    let endpoints = upstreams.each_ref().map(|upstream| Endpoint {
        labels: [("release".to_owned(), upstream.name().to_owned())].into(),
        ..Endpoint::from(upstream.address())
    });
    files.write("web", &endpoints)?;
    let mesh = Mesh::start(files.discovery()).await?;
    let tower = &mesh.tower;
    let envoys = mesh.envoys_in(&Mode::AGGREGATED).await?;
    let upload = Request::post("/api/v1/services/web/versions").header(CONTENT_TYPE, "application/yaml");
    ensure!(tower.ask(upload, DOCUMENT).await?.status == 201, "it is not uploaded");
    let how = json!({ "version": 1, "at_once": true, "reason": "to begin with" });
    succeeds(tower, Request::post("/api/v1/services/web/activations"), how).await?;

    for envoy in &envoys {
        let load = Load::start(envoy.egress(), &["web"], RATE);
        // All callers have connected.
        assert_eq!(answers(&load, &upstreams).await[1], 0, "canary is asked before the first shift");
        let (before, from) = (counts(envoy).await?, (load.good(), load.elapsed()));
        for weights in WEIGHTS.iter().cycle().take(WEIGHTS.len() * rounds(1, 20)) {
            let [stable, canary] = *weights;
            let weights = json!({ "stable": stable, "canary": canary });
            let body = json!({ "weights": weights, "at_once": true, "reason": "a shift under load" });
            succeeds(tower, Request::put("/api/v1/services/web/traffic"), body).await?;
            // What was under way when Envoy took it is answered as before.
            eventually(SOON, format!("stable gets {stable} %, canary {canary} %"), async || {
                let answers = answers(&load, &upstreams).await;
                let share = answers[1] * 100 / (answers[0] + answers[1]);
                let right = if canary == 50 { (38..=62).contains(&share) } else { share == canary };
                ensure!(right && (canary == 50 || answers.contains(&0)), "{answers:?}");
                Ok(())
            })
            .await;
        }
        let rate = (load.good() - from.0) as f64 / (load.elapsed() - from.1).as_secs_f64();
        let after = counts(envoy).await?;
        let requests = load.stop().await?;
        eprintln!("{requests} requests, {rate:.0} a second");
        // What was never used before is counted from now on.
        let moved = after.iter().filter(|(name, count)| before.get(*name).unwrap_or(&0) != *count);
        let moved: Vec<_> = moved.collect();
        ensure!(moved.is_empty(), "{moved:?}");
        assert_eq!(rejections(envoy).await?, 0);
    }
    Ok(())
}
