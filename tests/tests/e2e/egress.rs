//! What the egress listener does with a request, without any service document.

use anyhow::Result;
use tower_tests::Upstream;

use crate::{
    registrar::Registrar,
    support::{Mesh, answered_by, callers},
};

#[tokio::test]
async fn a_service_is_found_by_either_name_with_or_without_a_port() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;
    registrar.register(alpha.address()).await?;
    for host in ["web", "web.mesh", "WEB.mesh", "web:80", "web.mesh:5875"] {
        answered_by(&callers(&envoys), host, &["alpha"]).await;
    }
    Ok(())
}

#[tokio::test]
async fn the_upstream_is_asked_as_the_caller_asks() -> Result<()> {
    let mut registrar = Registrar::in_files()?;
    let alpha = Upstream::start("alpha").await?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;
    let callers = callers(&envoys);
    registrar.register(alpha.address()).await?;
    answered_by(&callers, "web", &["alpha"]).await;
    for caller in callers {
        let reply = caller.get("web").await?.ok()?;
        assert_eq!(reply.upstream_version(), Some(caller.protocol().version()));
    }
    Ok(())
}

#[tokio::test]
async fn a_host_that_is_no_service_gets_a_404_that_says_so() -> Result<()> {
    let registrar = Registrar::in_files()?;
    let mesh = Mesh::start(registrar.discovery()).await?;
    let envoys = mesh.envoys().await?;
    for caller in callers(&envoys) {
        for host in ["nobody.mesh", "nobody", "www.example.com"] {
            let reply = caller.get(host).await?;
            assert_eq!(reply.status, 404, "{host}: {}", reply.body);
            let body = reply.body.to_lowercase();
            assert!(body.contains("no service"), "{host}: {body}");
        }
    }
    Ok(())
}
