//! Restarts for an upgrade, under load: traffic does not notice.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use tower_tests::{Caller, Upstream, eventually};

use crate::{
    registrar::Registrar,
    support::{Mesh, SOON, answered_by, callers},
};

/// Between two requests of one caller; there are four, so this makes a few hundred requests per second.
const PAUSE: Duration = Duration::from_millis(8);

/// How long traffic goes on after each restart.
const AFTER: Duration = Duration::from_secs(1);

/// What the callers have seen.
#[derive(Default)]
struct Load {
    over: Cell<bool>,
    requests: Cell<usize>,
    failures: RefCell<Vec<String>>,
}

impl Load {
    /// Calls until it is over.
    async fn run(&self, caller: &Caller<'_>) {
        while !self.over.get() {
            self.requests.set(self.requests.get() + 1);
            match caller.get("web").await {
                Ok(reply) if reply.status == 200 => {}
                Ok(reply) => self.failures.borrow_mut().push(format!("{}: {}", reply.status, reply.body)),
                Err(error) => self.failures.borrow_mut().push(format!("{error:#}")),
            }
            sleep(PAUSE).await;
        }
    }
}

async fn restarts(mesh: &mut Mesh, upstreams: &[Upstream], registrar: &mut Registrar) -> Result<()> {
    sleep(AFTER).await;
    // With a Beacon each of whose streams is up: a drain ends them, and does not wait for them.
    for _ in 0..2 {
        let start = Instant::now();
        ensure!(mesh.tower.terminate().await?.success(), "Tower did not end in good order");
        ensure!(start.elapsed() < Duration::from_secs(5), "Tower took {:?}", start.elapsed());
        mesh.tower.restart().await?;
        mesh.tower.wait_ready(SOON).await?;
        sleep(AFTER).await;
    }
    for _ in 0..2 {
        let start = Instant::now();
        ensure!(mesh.beacon.terminate().await?.success(), "the Beacon did not end in good order");
        ensure!(start.elapsed() < Duration::from_secs(2), "the Beacon took {:?}", start.elapsed());
        mesh.beacon.restart().await?;
        mesh.beacon.wait_ready(SOON).await?;
        sleep(AFTER).await;
    }
    ensure!(!mesh.beacon.log().contains("xDS streams are cut"), "xDS streams were cut");
    // Changes still arrive, with the streams that came back.
    registrar.register(upstreams[2].address()).await?;
    eventually(SOON, "the third upstream is called", async || {
        ensure!(upstreams[2].requests() > 0, "no requests");
        Ok(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn restarts_for_an_upgrade_cost_not_one_request() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let mut upstreams = Vec::new();
    for name in ["alpha", "beta", "gamma"] {
        upstreams.push(Upstream::start(name).await?);
    }
    registrar.register(upstreams[0].address()).await?;
    registrar.register(upstreams[1].address()).await?;
    let mut mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, "web", &["alpha", "beta"]).await;

    let load = Load::default();
    let start = Instant::now();
    let story = async {
        let result = restarts(&mut mesh, &upstreams, &mut registrar).await;
        load.over.set(true);
        result
    };
    let (result, ..) = tokio::join!(
        story,
        load.run(&callers[0]),
        load.run(&callers[1]),
        load.run(&callers[2]),
        load.run(&callers[3])
    );
    result?;
    let failures = load.failures.borrow();
    let (requests, seconds) = (load.requests.get(), start.elapsed().as_secs_f64());
    eprintln!("{requests} requests in {seconds:.1} s");
    ensure!(failures.is_empty(), "{} of {requests} failed: {}", failures.len(), failures[0]);
    ensure!(requests > 500, "{requests} requests are no load");
    Ok(())
}
