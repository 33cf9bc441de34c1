//! Register, change, deregister: in each format the traffic follows, whichever of the four modes of xDS
//! the Envoy speaks, and whichever version of HTTP its callers do.

use anyhow::Result;
use tower_tests::{Mode, Upstream};

use crate::{
    registrar::{Format, Registrar},
    support::{Mesh, answered_by, callers},
};

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
async fn hostport() -> Result<()> {
    traffic_follows(Registrar::in_zookeeper(Format::Hostport).await?).await
}

#[tokio::test]
async fn files() -> Result<()> {
    traffic_follows(Registrar::in_files()?).await
}
