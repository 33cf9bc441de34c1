//! Watching first, and meshing service by service: what `--serve` keeps from Beacons, and what a restart
//! with another value gives and takes.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tower_tests::{Caller, Registry, TowerOptions, Upstream, ZooKeeper, eventually};

use crate::{
    registrar::{Format, payload},
    support::{Mesh, SOON, answered_by, callers, still_answered_by},
};

/// A file with the value, which is the only thing that differs between two runs of Tower.
struct Serve {
    file: PathBuf,
}

impl Serve {
    fn write(&self, value: &str) -> Result<()> {
        std::fs::write(&self.file, format!("serve = {value}\n")).context("the file cannot be written")
    }

    /// Restarts Tower with this value, in good order.
    async fn restart(&self, mesh: &mut Mesh, value: &str) -> Result<()> {
        self.write(value)?;
        ensure!(mesh.tower.terminate().await?.success(), "Tower did not end in good order");
        mesh.tower.restart().await?;
        mesh.tower.wait_ready(SOON).await
    }
}

/// Waits until each caller is told that there is no such service.
async fn unknown(callers: &[Caller<'_>], host: &str) {
    for caller in callers {
        eventually(SOON, format!("{host} is no service"), async || {
            let reply = caller.get(host).await?;
            ensure!(reply.status == 404, "{}: {}", reply.status, reply.body);
            Ok(())
        })
        .await;
    }
}

/// What Tower tells of its services, once it knows so many.
async fn listed(mesh: &Mesh, count: usize) -> Value {
    eventually(SOON, format!("Tower knows {count} services"), async || {
        let answer = mesh.tower.http_get("/api/v1/services").await?.ok()?.json()?;
        let services = answer["services"].as_array().map_or(0, Vec::len);
        ensure!(services == count, "{answer}");
        Ok(answer)
    })
    .await
}

async fn page_says(mesh: &Mesh, words: &str) -> Result<()> {
    let page = mesh.tower.http_get("/").await?.ok()?.body;
    ensure!(page.contains(words), "no {words:?} in {page}");
    Ok(())
}

/// Two services, each with an upstream, of which Tower sends what a file says.
struct World {
    mesh: Mesh,
    serve: Serve,
    // What must outlive the rest.
    _folder: TempDir,
    _registry: Registry,
    _upstreams: [Upstream; 2],
}

impl World {
    async fn start(served: &str) -> Result<Self> {
        let registry = ZooKeeper::shared().await?.root().await?;
        let upstreams = [Upstream::start("alpha").await?, Upstream::start("beta").await?];
        for (service, upstream) in ["web", "ads"].into_iter().zip(&upstreams) {
            let path = format!("discovery/{service}/prod/{}", upstream.name());
            registry.create(&path, &payload(Format::Hostport, upstream.address())).await?;
        }
        let folder = TempDir::new()?;
        let serve = Serve { file: folder.path().join("tower.toml") };
        serve.write(served)?;
        let mesh = Mesh::with(TowerOptions {
            discovery: vec![registry.discovery(Format::Hostport.name())],
            flags: vec![format!("--config={}", serve.file.display())],
            ..TowerOptions::default()
        })
        .await?;
        Ok(Self { mesh, serve, _folder: folder, _registry: registry, _upstreams: upstreams })
    }
}

#[tokio::test]
async fn services_are_meshed_one_by_one_and_taken_back() -> Result<()> {
    let mut world = World::start("'none'").await?;
    let World { serve, mesh, .. } = &mut world;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);

    // Everything is seen, and nothing is sent.
    let shown = listed(mesh, 2).await;
    ensure!(shown["serve"] == "none" && shown["services"][0]["served"] == false, "{shown}");
    page_says(mesh, "2 watched and NOT SERVED, with their endpoints: ads (1), web (1)").await?;
    let endpoints = mesh.tower.http_get("/api/v1/services/web/endpoints").await?.ok()?.json()?;
    ensure!(endpoints["endpoints"].as_array().is_some_and(|list| list.len() == 1), "{endpoints}");
    eventually(SOON, "the services are counted", async || {
        let watched = mesh.tower.metric("tower_services_watched").await?;
        ensure!(watched == Some(2.0), "{watched:?}");
        Ok(())
    })
    .await;
    for host in ["web", "ads"] {
        unknown(&callers, host).await;
    }

    serve.restart(mesh, "['web', 'later']").await?;
    answered_by(&callers, "web", &["alpha"]).await;
    unknown(&callers, "ads").await;
    let shown = listed(mesh, 2).await;
    ensure!(shown["serve"] == "list" && shown["unknown"][0] == "later", "{shown}");
    page_says(mesh, "1 named by --serve, and not known to any source: later").await?;

    serve.restart(mesh, "'all'").await?;
    answered_by(&callers, "ads", &["beta"]).await;
    answered_by(&callers, "web", &["alpha"]).await;

    // Taken back by a word: neither the guard nor an equal position keeps it.
    serve.restart(mesh, "'web'").await?;
    unknown(&callers, "ads").await;
    for caller in &callers {
        still_answered_by(caller, "web", &["alpha"]).await?;
    }
    eventually(SOON, "the Beacon has what Tower sends", async || {
        let status = mesh.beacon.http_get("/status").await?.ok()?.json()?;
        ensure!(status["mirror"]["equal_to_tower"] == true, "{status}");
        Ok(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_beacon_that_was_away_drops_what_is_served_no_more() -> Result<()> {
    let mut world = World::start("'all'").await?;
    let World { serve, mesh, .. } = &mut world;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, "ads", &["beta"]).await;

    // Stopped in good order, it has all of it on disk.
    ensure!(mesh.beacon.terminate().await?.success(), "the Beacon did not end in good order");
    serve.write("'web'")?;
    mesh.tower.kill();
    mesh.beacon.restart().await?;
    mesh.beacon.wait_ready(SOON).await?;
    answered_by(&callers, "ads", &["beta"]).await;
    mesh.tower.restart().await?;
    unknown(&callers, "ads").await;
    answered_by(&callers, "web", &["alpha"]).await;
    Ok(())
}

#[tokio::test]
async fn too_many_services_are_warned_of() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    for service in ["web", "ads"] {
        registry.create(&format!("discovery/{service}/prod"), b"").await?;
    }
    let mesh = Mesh::with(TowerOptions {
        discovery: vec![registry.discovery(Format::Hostport.name())],
        flags: vec!["--warn-services=1".to_owned()],
        ..TowerOptions::default()
    })
    .await?;
    page_says(&mesh, "WARNING: 2 services are more than 1").await?;
    eventually(SOON, "the log says so, and the metric", async || {
        let log = mesh.tower.log();
        ensure!(log.contains("more services than is good for its Envoys"), "{log}");
        let served = mesh.tower.metric("tower_services_served").await?;
        ensure!(served == Some(2.0), "{served:?}");
        Ok(())
    })
    .await;
    Ok(())
}
