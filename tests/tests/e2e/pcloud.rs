//! The command line, as its users use it: from a document to traffic, and back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::{io::AsyncBufReadExt, time::timeout};
use tower_tests::{
    Beacon, BeaconOptions, Endpoint, EndpointFiles, Envoy, Load, Mode, Pcloud, Protocol, Tower, TowerOptions,
    Upstream, eventually,
};

use crate::support::SOON;

/// Requests that are counted to see a split.
const REQUESTS: usize = 400;

const DOCUMENT: &str = "\
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

/// A service of two instances, stable and canary, on one host.
struct World {
    tower: Tower,
    envoy: Envoy,
    pcloud: Pcloud,
    // What must outlive the rest.
    _beacon: Beacon,
    _files: EndpointFiles,
    _upstreams: [Upstream; 2],
}

impl World {
    async fn start() -> Result<Self> {
        let files = EndpointFiles::new()?;
        let upstreams = [Upstream::start("stable").await?, Upstream::start("canary").await?];
        let endpoints = upstreams.each_ref().map(|upstream| Endpoint {
            labels: [("release".to_owned(), upstream.name().to_owned())].into(),
            ..Endpoint::from(upstream.address())
        });
        files.write("web", &endpoints)?;
        let options = TowerOptions { discovery: vec![files.discovery()], ..TowerOptions::default() };
        let tower = Tower::start(options).await?;
        tower.wait_ready(SOON).await?;
        let beacon = Beacon::start(BeaconOptions::of(tower.grpc())).await?;
        beacon.wait_ready(SOON).await?;
        let envoy = beacon.envoy(Mode::Delta).await?;
        let pcloud = Pcloud::admin(&tower)?;
        pcloud.write("web.yaml", DOCUMENT)?;
        Ok(Self { tower, envoy, pcloud, _beacon: beacon, _files: files, _upstreams: upstreams })
    }

    /// Waits until so many percent of the requests are answered by canary.
    async fn canary_gets(&self, percent: std::ops::RangeInclusive<usize>) {
        let caller = self.envoy.caller(Protocol::Http1);
        eventually(SOON, format!("canary gets {percent:?} %"), async || {
            let tally = caller.tally("web", REQUESTS).await?;
            let share = tally.of("canary") * 100 / REQUESTS;
            ensure!(percent.contains(&share), "{share} %: {tally}");
            Ok(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_nothing_to_a_split_and_back() -> Result<()> {
    let world = World::start().await?;
    let pcloud = &world.pcloud;
    world.canary_gets(40..=60).await;

    pcloud.ok(&["lint", "-f", "web.yaml"]).await?;
    let version = pcloud.ok(&["version", "upload", "-f", "web.yaml"]).await?;
    assert_eq!(version, "web@1\n", "the id and nothing else");
    world.canary_gets(40..=60).await;
    pcloud.ok(&["activate", "web@1", "--wait"]).await?;
    world.canary_gets(0..=0).await;

    let load = Load::start(world.envoy.egress(), &["web"], 500);
    pcloud.ok(&["traffic", "set", "web", "stable=90", "canary=10", "--reason", "try it", "--wait"]).await?;
    world.canary_gets(4..=18).await;
    let shares = pcloud.ok(&["traffic", "get", "web", "--jq", ".[].weight"]).await?;
    assert_eq!(shares, "90\n10\n");
    pcloud.ok(&["rollback", "web", "--reason", "seen enough", "--wait"]).await?;
    world.canary_gets(0..=0).await;
    let failures = load.failures().await;
    ensure!(failures.is_empty(), "{failures:?}");
    load.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_document_that_is_uploaded_twice_is_one_version() -> Result<()> {
    let world = World::start().await?;
    let pcloud = &world.pcloud;
    assert_eq!(pcloud.ok(&["version", "upload", "-f", "web.yaml"]).await?, "web@1\n");
    pcloud.write("other.yaml", &format!("# the same, said otherwise\n{DOCUMENT}"))?;
    assert_eq!(pcloud.ok(&["version", "upload", "-f", "other.yaml"]).await?, "web@1\n");
    let ids = pcloud.ok(&["version", "list", "web", "-o", "name"]).await?;
    assert_eq!(ids, "web@1\n");
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_is_told_by_place_and_exit_code() -> Result<()> {
    let world = World::start().await?;
    let pcloud = &world.pcloud;
    pcloud.write("wrong.yaml", &DOCUMENT.replace("weight: 100", "wieght: 100"))?;
    for command in [["lint", "-f", "wrong.yaml"].as_slice(), &["version", "upload", "-f", "wrong.yaml"]] {
        let ran = pcloud.fails(5, command).await?;
        let told = format!("{}{}", ran.stdout, ran.stderr);
        ensure!(told.contains("wrong.yaml:9") && told.contains("wieght"), "{told}");
    }
    pcloud.fails(2, &["activate", "web"]).await?;
    pcloud.fails(1, &["activate", "web@7", "--wait"]).await?;
    let nobody = Pcloud::with(&world.tower, None)?;
    let ran = nobody.fails(4, &["service", "list"]).await?;
    ensure!(ran.stderr.contains("auth login"), "{ran:?}");
    Ok(())
}

/// What only an Envoy can refuse: it has no such transport socket.
const PATCH: &str = "\
apiVersion: tower.mesh/v1
kind: MeshService
metadata: {name: web}
spec:
  patches:
  - target: {kind: Cluster, name: web}
    merge:
      transportSocket:
        name: nobody-has-this
        typedConfig: {'@type': type.googleapis.com/google.protobuf.StringValue, value: x}
";

#[tokio::test]
async fn what_an_envoy_refuses_is_told_with_the_field_and_who_wrote_it() -> Result<()> {
    let world = World::start().await?;
    let admin = &world.pcloud;
    admin.ok(&["version", "upload", "-f", "web.yaml"]).await?;
    admin.ok(&["activate", "web@1", "--wait"]).await?;
    let create = ["token", "create", "paul", "--role", "platform", "-o", "json"];
    let issued: serde_json::Value = serde_json::from_str(&admin.ok(&create).await?)?;
    let paul = Pcloud::with(&world.tower, issued["token"].as_str().map(str::to_owned))?;
    paul.write("patch.yaml", PATCH)?;
    paul.ok(&["part", "set", "platform", "web", "-f", "patch.yaml", "--reason", "faster"]).await?;
    let next = DOCUMENT.replace("  callers:\n", "  callers:\n    connectTimeout: 2s\n");
    admin.write("next.yaml", &next)?;
    admin.ok(&["version", "upload", "-f", "next.yaml"]).await?;

    let ran = admin.fails(7, &["activate", "web@2", "--wait"]).await?;
    for told in [
        "web@2 by admin was taken back",
        "refused Cluster",
        "nobody-has-this",
        "changed: spec.callers.connectTimeout by admin\n",
        "changed: spec.patches by paul\n",
    ] {
        ensure!(ran.stderr.contains(told), "{told}: {ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn differences_and_plans_say_what_would_change_and_where() -> Result<()> {
    let world = World::start().await?;
    let pcloud = &world.pcloud;
    pcloud.ok(&["version", "upload", "-f", "web.yaml"]).await?;
    pcloud.ok(&["activate", "web@1", "--wait"]).await?;
    pcloud.fails(0, &["diff", "-f", "web.yaml"]).await?;
    pcloud.write("next.yaml", &DOCUMENT.replace("weight: 0", "weight: 5"))?;
    let ran = pcloud.fails(1, &["diff", "-f", "next.yaml"]).await?;
    ensure!(ran.stdout.contains("weight: 0 → 5"), "{ran:?}");
    let plan = pcloud.run(&["plan", "-f", "next.yaml"]).await?;
    ensure!(
        plan.code == 0 && plan.stdout.contains("1 hosts") && plan.stdout.contains("no drain"),
        "{plan:?}"
    );
    // A plan that is overtaken is not carried out.
    let etag = pcloud.ok(&["service", "get", "web", "--jq", ".index"]).await?;
    pcloud.ok(&["version", "upload", "-f", "next.yaml"]).await?;
    let ran = pcloud.fails(6, &["activate", "web@2", "--if-match", etag.trim()]).await?;
    ensure!(ran.stderr.contains("since:"), "{ran:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_with_a_time_are_taken_back_also_after_a_restart() -> Result<()> {
    let mut world = World::start().await?;
    world.pcloud.ok(&["version", "upload", "-f", "web.yaml"]).await?;
    world.pcloud.ok(&["activate", "web@1", "--wait"]).await?;
    let set =
        ["traffic", "set", "web", "stable=0", "canary=1", "--ttl", "8s", "--reason", "a try", "--at-once"];
    world.pcloud.ok(&set).await?;
    world.canary_gets(100..=100).await;
    world.tower.kill();
    world.tower.restart().await?;
    world.tower.wait_ready(SOON).await?;
    world.canary_gets(0..=0).await;
    Ok(())
}

#[tokio::test]
async fn a_token_is_made_used_and_ended() -> Result<()> {
    let world = World::start().await?;
    let admin = &world.pcloud;
    let create = ["token", "create", "ci", "--role", "owner", "--service", "web", "-o", "json"];
    let issued: serde_json::Value = serde_json::from_str(&admin.ok(&create).await?)?;
    let token = issued["token"].as_str().unwrap_or_default().to_owned();
    let owner = Pcloud::with(&world.tower, None)?;
    let ran = owner.run_with(&["auth", "login"], &token).await?;
    ensure!(ran.code == 0, "{ran:?}");
    ensure!(owner.ok(&["auth", "status"]).await?.contains("owner"));
    owner.write("web.yaml", DOCUMENT)?;
    owner.ok(&["version", "upload", "-f", "web.yaml"]).await?;
    owner.write("ads.yaml", &DOCUMENT.replace("name: web", "name: ads"))?;
    let ran = owner.fails(4, &["version", "upload", "-f", "ads.yaml"]).await?;
    ensure!(ran.stderr.contains("ads"), "{ran:?}");
    owner.write("platform.yaml", "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {}\n")?;
    owner.fails(4, &["part", "set", "platform", "-f", "platform.yaml"]).await?;
    admin.ok(&["token", "revoke", issued["id"].as_str().unwrap_or_default()]).await?;
    owner.fails(4, &["service", "list"]).await?;
    let log = admin.ok(&["activity", "list"]).await?;
    ensure!(log.contains("ci") && log.contains("web@1"), "{log}");
    Ok(())
}

/// The documents in the docs are right.
#[tokio::test]
async fn the_documents_of_the_docs_are_right() -> Result<()> {
    let world = World::start().await?;
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
    let reference = std::fs::read_to_string(format!("{docs}/SERVICE-DOCUMENT.md"))?;
    let example = reference.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    world.pcloud.write("reference.yaml", example.unwrap_or_default())?;
    for file in ["reference.yaml", &format!("{docs}/examples/hello.yaml")] {
        world.pcloud.ok(&["lint", "-f", file, "--failure-threshold", "warning"]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn activity_is_followed_over_a_restart_of_tower() -> Result<()> {
    let mut world = World::start().await?;
    let mut following = world.pcloud.start(&["activity", "follow", "--after", "0"])?;
    let stdout = following.stdout.take().context("no standard output")?;
    let mut lines = tokio::io::BufReader::new(stdout).lines();
    let mut hears = async |words: &str| loop {
        let line = timeout(SOON, lines.next_line()).await.context(words.to_owned())??;
        if line.context("it has ended")?.contains(words) {
            return anyhow::Ok(());
        }
    };
    world.pcloud.ok(&["version", "upload", "-f", "web.yaml"]).await?;
    hears("web@1").await?;
    world.tower.kill();
    world.tower.restart().await?;
    world.tower.wait_ready(SOON).await?;
    world.pcloud.write("next.yaml", &DOCUMENT.replace("weight: 0", "weight: 5"))?;
    world.pcloud.ok(&["version", "upload", "-f", "next.yaml"]).await?;
    hears("web@2").await
}

#[tokio::test]
async fn what_was_active_for_a_host_can_be_asked_of_any_moment() -> Result<()> {
    let world = World::start().await?;
    let pcloud = &world.pcloud;
    let host = pcloud.ok(&["beacon", "status", "--jq", ".hosts[].name"]).await?;
    let host = host.trim();
    let active = async |at: &str| {
        pcloud.ok(&["describe", "host", host, "--at", at, "--jq", ".index, .services[].version"]).await
    };
    let index = async || pcloud.ok(&["log", "status", "--jq", ".index"]).await;
    pcloud.ok(&["version", "upload", "-f", "web.yaml"]).await?;
    let before = index().await?;
    pcloud.ok(&["activate", "web@1", "--wait"]).await?;
    let first = index().await?;
    pcloud.write("next.yaml", &DOCUMENT.replace("weight: 0", "weight: 5"))?;
    pcloud.ok(&["version", "upload", "-f", "next.yaml"]).await?;
    pcloud.ok(&["activate", "web@2", "--wait"]).await?;

    let [before, first] = [before.trim(), first.trim()];
    assert_eq!(active(&format!("@{before}")).await?, format!("{before}\n"));
    assert_eq!(active(&format!("@{first}")).await?, format!("{first}\n1\n"));
    assert!(active("0s").await?.ends_with("\n2\n"));
    assert_eq!(active("365d").await?, "0\n", "there was nothing then");
    let text = pcloud.ok(&["describe", "host", host, "--at", &format!("@{first}")]).await?;
    ensure!(text.contains("web@1: release"), "{text}");
    pcloud.fails(2, &["describe", "host", host, "--at", "yesterday"]).await?;
    pcloud.fails(1, &["describe", "host", "nobody", "--at", "2h"]).await?;
    Ok(())
}

/// How long after an activation the traffic is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_activation_at_once_is_seen_in_traffic_soon() -> Result<()> {
    let world = World::start().await?;
    world.pcloud.ok(&["version", "upload", "-f", "web.yaml"]).await?;
    let activate = ["activate", "web@1", "--at-once", "--reason", "a test", "--wait", "--timeout", "20s"];
    timeout(Duration::from_secs(20), world.pcloud.ok(&activate)).await??;
    world.canary_gets(0..=0).await;
    Ok(())
}
