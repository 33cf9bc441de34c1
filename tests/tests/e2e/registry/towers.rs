//! Three Towers that share a log in ZooKeeper take commands at the same time, while one of them is killed now
//! and then.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use http::{
    Method, Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use tokio::sync::RwLock;
use tower_server::{
    event_log::{EventLog, Options},
    registry::State,
};
use tower_tests::{EndpointFiles, Tower, TowerOptions, ZooKeeper, rounds};

use super::document;
use crate::support::{SOON, seed};

/// How long one command may take, with all the kills on its way.
const PATIENCE: Duration = Duration::from_secs(60);

struct Command {
    method: Method,
    path: String,
    yaml: bool,
    body: String,
}

/// Something to do about one of three services.
fn random(rng: &mut StdRng) -> Command {
    let service = *["ads", "web", "pay"].choose(rng).unwrap_or(&"web");
    let number = rng.random_range(1..6_u32);
    let of = |path: &str| format!("/api/v1/services/{service}/{path}");
    let post = |path: String, body: Value| Command {
        method: Method::POST,
        path,
        yaml: false,
        body: body.to_string(),
    };
    match rng.random_range(0..10) {
        0..3 => Command {
            method: Method::POST,
            path: of("versions"),
            yaml: true,
            body: document(service, 1000 * rng.random_range(1..20_u32)),
        },
        3..6 => {
            let how = json!({ "version": number, "at_once": true, "again": true, "reason": "at random" });
            post(of("activations"), how)
        }
        6 => post(of("rollback"), json!({ "to": number, "reason": "at random" })),
        7 => post(of("deactivate"), json!({ "reason": "at random" })),
        8 => post(of(&format!("versions/{number}/retire")), json!({})),
        _ => Command {
            method: Method::PUT,
            path: format!("/api/v1/platform/{service}"),
            yaml: true,
            // No two are the same, so that each is a change.
            body: format!(
                "# {}
apiVersion: tower.mesh/v1
kind: MeshService
metadata: {{name: {service}}}
spec: {{callers: {{connectTimeout: {number}s}}}}
",
                rng.random::<u64>(),
            ),
        },
    }
}

/// What has become of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Became {
    /// It was carried out, and has changed something.
    Done,
    /// All was as it wanted it.
    Nothing,
    /// It was refused.
    Refused,
}

/// Asks until it is known what has become of a command.
async fn carry_out(
    towers: &[RwLock<Tower>],
    first: usize,
    token: &str,
    key: &str,
    command: &Command,
) -> Result<Became> {
    let asked = async {
        for tower in (first..).map(|place| &towers[place % towers.len()]) {
            let media = if command.yaml { "application/yaml" } else { "application/json" };
            let request = Request::builder()
                .method(&command.method)
                .uri(&command.path)
                .header(CONTENT_TYPE, media)
                .header(AUTHORIZATION, format!("Bearer {token}"))
                .header("Idempotency-Key", key);
            let Ok(reply) = tower.read().await.ask(request, command.body.clone()).await else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            match reply.status {
                200..300 => {
                    let told = reply.json()?;
                    let nothing = told.get("note").is_some() || told["existing"] == true;
                    return Ok(if nothing { Became::Nothing } else { Became::Done });
                }
                // Whatever is refused has not happened, unless an earlier attempt has.
                400..500 => return Ok(Became::Refused),
                503 | 504 => tokio::time::sleep(Duration::from_millis(20)).await,
                status => bail!("{} {}: {status} {}", command.method, command.path, reply.body),
            }
        }
        bail!("there is no Tower")
    };
    tokio::time::timeout(PATIENCE, asked)
        .await
        .with_context(|| format!("{} {}", command.method, command.path))?
}

/// The index up to which a Tower has folded the log, and the digest of what it came to.
async fn digest(tower: &Tower, token: &str) -> Result<(u64, String)> {
    let request = Request::get("/api/v1/log?digest=true").header(AUTHORIZATION, format!("Bearer {token}"));
    let told = tower.ask(request, "").await?.ok()?.json()?;
    let digest = told["digest"].as_str().context("no digest")?.to_owned();
    Ok((told["index"].as_u64().context("no index")?, digest))
}

/// Folds what there is of the log, and notes the keys of its commands.
async fn fold(log: &EventLog, state: &mut State, keys: &mut Vec<String>) -> Result<()> {
    loop {
        let entries = log.read(state.index() + 1, 500).await?;
        if entries.is_empty() {
            return Ok(());
        }
        for entry in entries {
            state.apply(&entry)?;
            keys.extend(entry.command_id.rsplit_once('/').map(|(_, key)| key.to_owned()));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_towers_agree_to_the_byte_and_keep_what_they_acknowledged() -> Result<()> {
    let zookeeper = ZooKeeper::shared().await?;
    let root = zookeeper.root().await?;
    let url = format!("zk://{}{}?session_timeout=2s", zookeeper.connect_string(), root.absolute("tower"));
    let files = EndpointFiles::new()?;
    let mut towers = Vec::new();
    for _ in 0..3 {
        let flags = vec![format!("--event-log={url}")];
        let options = TowerOptions { discovery: vec![files.discovery()], flags, ..TowerOptions::default() };
        let tower = Tower::start(options).await?;
        tower.wait_ready(SOON).await?;
        towers.push(RwLock::new(tower));
    }
    let token = towers[0].read().await.admin_token().context("the first Tower makes a token")?;
    let seed = seed();
    let commands = rounds(200, 5_000) as u64;
    let next = AtomicU64::new(0);
    let client = |client: u64| {
        let (towers, token, next) = (&towers, &token, &next);
        async move {
            let mut rng = StdRng::seed_from_u64(seed.wrapping_add(client));
            let mut done = BTreeSet::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= commands {
                    return anyhow::Ok(done);
                }
                let key = format!("{seed}-{number}");
                let (first, command) = (rng.random_range(0..3), random(&mut rng));
                if carry_out(towers, first, token, &key, &command).await? == Became::Done {
                    done.insert(key);
                }
            }
        }
    };
    let killer = async {
        let mut rng = StdRng::seed_from_u64(seed);
        let each = commands / 8;
        let mut killed = each;
        while next.load(Ordering::Relaxed) < commands {
            if next.load(Ordering::Relaxed) < killed {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            killed += each;
            let mut tower = towers[rng.random_range(0..3)].write().await;
            tower.kill();
            tower.restart().await?;
        }
        anyhow::Ok(())
    };
    let clients = async { tokio::try_join!(client(0), client(1), client(2), client(3)) };
    let (clients, ()) = tokio::try_join!(clients, killer)?;
    let done: BTreeSet<String> = [clients.0, clients.1, clients.2, clients.3].into_iter().flatten().collect();

    // What the log says is folded here once more.
    let auditor = Options { run: "auditor".into(), ..Options::default() };
    let folder = tempfile::tempdir()?;
    let log = EventLog::open(&url.parse()?, folder.path(), auditor).await?;
    let (mut state, mut keys) = (State::default(), Vec::new());
    for tower in &towers {
        let tower = tower.read().await;
        let deadline = tokio::time::Instant::now() + SOON;
        // Towers go on writing: they send activations from step to step.
        loop {
            fold(&log, &mut state, &mut keys).await?;
            let (index, digest) = digest(&tower, &token).await?;
            let ours = blake3::hash(&state.to_checkpoint()).to_hex().to_string();
            if (index, digest) == (state.index(), ours) {
                break;
            }
            ensure!(tokio::time::Instant::now() < deadline, "at entry {index} it is something else");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let once: BTreeSet<String> = keys.iter().cloned().collect();
    assert_eq!(keys.len(), once.len(), "a command is in the log once");
    ensure!(once.len() > 20, "few commands have changed anything: {}", once.len());
    let differ: Vec<_> = once.symmetric_difference(&done).collect();
    ensure!(differ.is_empty(), "in the log and not acknowledged, or the other way round: {differ:?}");
    Ok(())
}
