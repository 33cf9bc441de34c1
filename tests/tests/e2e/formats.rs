//! Register, change, deregister: in each format the traffic follows, whichever of the four modes of xDS
//! the Envoy speaks, and whichever version of HTTP its callers do.

use anyhow::{Result, ensure};
use tower_tests::{Caller, Mode, Upstream, ZooKeeper, eventually};

use crate::{
    registrar::{Format, Registrar, SERVICE, member, payload, spring},
    support::{Mesh, SOON, SourceStatus, answered_by, callers, still_answered_by},
};

/// What a share is measured with.
const REQUESTS: usize = 60;

async fn traffic_follows(mut registrar: Registrar) -> Result<()> {
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let gamma = Upstream::start("gamma").await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys_in(&Mode::ALL).await?;
    let callers = callers(&envoys);

    let first = registrar.register(alpha.address()).await?;
    answered_by(&callers, "web.mesh", &["alpha"]).await;

    let second = registrar.register(beta.address()).await?;
    answered_by(&callers, "web.mesh", &["alpha", "beta"]).await;

    let _first = registrar.change(first, gamma.address()).await?;
    answered_by(&callers, "web.mesh", &["beta", "gamma"]).await;

    registrar.deregister(second).await?;
    answered_by(&callers, "web.mesh", &["gamma"]).await;
    Ok(())
}

#[tokio::test]
async fn kingpin() -> Result<()> {
    traffic_follows(Registrar::in_zookeeper(Format::Kingpin).await?).await
}

#[tokio::test]
async fn serverset() -> Result<()> {
    traffic_follows(Registrar::in_zookeeper(Format::Serverset).await?).await
}

#[tokio::test]
async fn serverset_in_thrift() -> Result<()> {
    traffic_follows(Registrar::in_zookeeper(Format::Thrift).await?).await
}

#[tokio::test]
async fn curator() -> Result<()> {
    traffic_follows(Registrar::in_zookeeper(Format::Curator).await?).await
}

#[tokio::test]
async fn hostport() -> Result<()> {
    traffic_follows(Registrar::in_zookeeper(Format::Hostport).await?).await
}

#[tokio::test]
async fn files() -> Result<()> {
    traffic_follows(Registrar::in_files()?).await
}

/// Waits until each caller gets about this share of its answers from `name`.
async fn share_is(callers: &[Caller<'_>], name: &str, share: f64) {
    for caller in callers {
        let what = format!("{name} answers {share} of what is asked over {:?}", caller.protocol());
        eventually(SOON, what, async || {
            let tally = caller.tally(SERVICE, REQUESTS).await?;
            let answers = tally.answers.get(name).copied().unwrap_or_default() as f64;
            // Each of Envoy's threads takes turns by itself, so the share is not exact.
            let off = (answers / REQUESTS as f64 - share).abs();
            ensure!(tally.failures.is_empty() && off < 0.13, "{tally}");
            Ok(())
        })
        .await;
    }
}

#[tokio::test]
async fn vectors_weigh_members() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let first = member("member_0000000001");
    registry.create(&first, &payload(Format::Thrift, alpha.address())).await?;
    registry.create(&member("member_0000000002"), &payload(Format::Serverset, beta.address())).await?;
    let mesh = Mesh::start(registry.discovery("serverset")).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    share_is(&callers, "alpha", 0.5).await;

    let vector = member("vector_0000000001");
    let weight = |select: &str, weight: &str| {
        format!(r#"{{"vector":[{{"select":"{select}","weight":{weight},"priority":1}}]}}"#).into_bytes()
    };
    registry.create(&vector, &weight("member=member_0000000001", "4.0")).await?;
    share_is(&callers, "alpha", 0.8).await;

    // Two multiply; an integer is a weight too.
    let other = member("vector_0000000002");
    registry.create(&other, &weight(&format!("inet={}", beta.address()), "4")).await?;
    share_is(&callers, "alpha", 0.5).await;

    // What turns malformed keeps its last good state, and is a problem.
    registry.set(&other, b"{\"vector\":[{\"weight\":2.0}]}").await?;
    let path = registry.absolute(&other);
    eventually(SOON, "the vector is a problem", async || {
        let status = SourceStatus::of(&mesh.tower).await?;
        ensure!(status.reason(&path)?.contains("vector[0].select"), "{}", status.reason(&path)?);
        Ok(())
    })
    .await;
    share_is(&callers, "alpha", 0.5).await;
    registry.delete(&other).await?;
    share_is(&callers, "alpha", 0.8).await;

    // Only beta says which shard it is.
    registry.set(&vector, &weight("shard=0", "-1.0")).await?;
    answered_by(&callers, SERVICE, &["alpha"]).await;
    registry.delete(&vector).await?;
    share_is(&callers, "alpha", 0.5).await;
    Ok(())
}

#[tokio::test]
async fn spring_takes_an_instance_out_of_service_and_back() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let alpha = Upstream::start("alpha").await?;
    let beta = Upstream::start("beta").await?;
    let (first, second) = (member("a"), member("b"));
    registry.create(&first, &spring(alpha.address(), "UP")).await?;
    registry.create(&second, &spring(beta.address(), "up")).await?;
    let mesh = Mesh::start(registry.discovery("curator")).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, SERVICE, &["alpha", "beta"]).await;

    registry.set(&first, &spring(alpha.address(), "OUT_OF_SERVICE")).await?;
    answered_by(&callers, SERVICE, &["beta"]).await;
    registry.set(&first, &spring(alpha.address(), "")).await?;
    answered_by(&callers, SERVICE, &["alpha", "beta"]).await;

    // The whole service stops in good order. Its directory is a container, which the server removes when
    // the last instance has gone; that is no instances, and no error.
    for (path, address) in [(&first, alpha.address()), (&second, beta.address())] {
        registry.set(path, &spring(address, "OUT_OF_SERVICE")).await?;
    }
    for caller in &callers {
        eventually(SOON, "nobody answers", async || {
            let tally = caller.tally(SERVICE, 5).await?;
            ensure!(tally.answers.is_empty(), "{tally}");
            Ok(())
        })
        .await;
    }
    registry.delete(&first).await?;
    registry.delete(&second).await?;
    registry.delete(&format!("discovery/{SERVICE}/prod")).await?;
    eventually(SOON, "the service is gone", async || {
        let services = mesh.tower.metric("tower_source_services").await?.unwrap_or_default();
        ensure!(services < 0.5, "there are {services}");
        Ok(())
    })
    .await;
    let status = SourceStatus::of(&mesh.tower).await?;
    ensure!(status.problems.is_empty() && status.state == "live", "{:?}", status.problems);

    registry.create(&first, &spring(beta.address(), "UP")).await?;
    answered_by(&callers, SERVICE, &["beta"]).await;
    Ok(())
}

#[tokio::test]
async fn a_directory_with_several_formats() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let formats = [Format::Kingpin, Format::Hostport, Format::Serverset, Format::Thrift, Format::Curator];
    let names = ["kingpin", "hostport", "serverset", "thrift", "curator"];
    let mut upstreams = Vec::new();
    let mut znodes = Vec::new();
    // What is there before Tower, and what comes later.
    let mut mesh = None;
    for (format, name) in formats.into_iter().zip(names) {
        let upstream = Upstream::start(name).await?;
        let znode = match format {
            Format::Kingpin => member(&format!("2890a90311ce4d8aa0656bf1650d7e6c-{}", upstream.address())),
            Format::Serverset => member("member_0000000001"),
            Format::Thrift => member("member_0000000002"),
            Format::Hostport | Format::Curator => member(&format!("instance-{name}")),
        };
        let data = if format == Format::Kingpin { Vec::new() } else { payload(format, upstream.address()) };
        registry.create(&znode, &data).await?;
        upstreams.push(upstream);
        znodes.push(znode);
        if format == Format::Serverset {
            let url = registry.discovery("auto");
            mesh = Some(Mesh::start(url.trim_end_matches("?format=auto").to_owned()).await?);
        }
    }
    let Some(mesh) = mesh else { anyhow::bail!("no mesh") };
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    answered_by(&callers, SERVICE, &names).await;

    // One that nothing can be made of costs itself only.
    registry.create(&member("README"), b"hello").await?;
    let path = registry.absolute(&member("README"));
    eventually(SOON, "it is a problem", async || {
        SourceStatus::of(&mesh.tower).await?.reason(&path).map(drop)
    })
    .await;
    // A publisher that is upgraded writes another format into the same znode.
    registry.set(&znodes[1], &spring(upstreams[1].address(), "UP")).await?;
    registry.set(&znodes[4], &payload(Format::Thrift, upstreams[4].address())).await?;
    for caller in &callers {
        still_answered_by(caller, SERVICE, &names).await?;
    }

    registry.delete(&znodes[0]).await?;
    registry.set(&znodes[1], &spring(upstreams[1].address(), "OUT_OF_SERVICE")).await?;
    answered_by(&callers, SERVICE, &names[2..]).await;
    Ok(())
}
