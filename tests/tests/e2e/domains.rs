//! Services whose names are the same host name.

use anyhow::{Result, ensure};
use tower_tests::{Envoy, Mode, TowerOptions, Upstream, ZooKeeper, eventually};

use crate::{
    registrar::{Format, payload},
    support::{Mesh, SOON, answered_by, callers, rejections},
};

#[tokio::test]
async fn a_host_name_has_one_owner_and_others_do_not_notice_who_else_wants_it() -> Result<()> {
    let registry = ZooKeeper::shared().await?.root().await?;
    let register = async |service: &str, upstream: &Upstream| {
        let path = format!("discovery/{service}/prod/{}", upstream.name());
        registry.create(&path, &payload(Format::Hostport, upstream.address())).await
    };
    let mut upstreams = Vec::new();
    for name in ["first", "capital", "suffix", "neighbour", "late"] {
        upstreams.push(Upstream::start(name).await?);
    }
    let [first, capital, suffix, neighbour, late] = &upstreams[..] else { unreachable!() };
    register("ads", first).await?;
    register("web", neighbour).await?;
    let options = TowerOptions {
        discovery: vec![registry.discovery("hostport")],
        flags: vec!["--guard-hold=0s".to_owned()],
        ..TowerOptions::default()
    };
    let mesh = Mesh::with(options).await?;
    let envoys = mesh.envoys_in(&Mode::ALL).await?;
    answered_by(&callers(&envoys), "ads", &["first"]).await;

    // Anybody who can register can want a name that is taken.
    register("Ads", capital).await?;
    register("ads.mesh", suffix).await?;
    eventually(SOON, "both are refused, and shown", async || {
        let page = mesh.beacon.http_get("/").await?.ok()?.body;
        ensure!(
            ["Ads has no host name", "ads.mesh has no host name"].iter().all(|text| page.contains(text)),
            "{page}"
        );
        Ok(())
    })
    .await;
    register("web", late).await?;
    let fresh = mesh.envoys_in(&Mode::ALL).await?;
    let everybody: Vec<Envoy> = envoys.into_iter().chain(fresh).collect();
    answered_by(&callers(&everybody), "web", &["neighbour", "late"]).await;
    for host in ["ads", "Ads", "ads.mesh", "ADS.mesh:5875"] {
        answered_by(&callers(&everybody), host, &["first"]).await;
    }

    // Who owns it goes; who came next has it.
    registry.delete_all("discovery/ads").await?;
    answered_by(&callers(&everybody), "ads", &["capital"]).await;
    answered_by(&callers(&everybody), "web", &["neighbour", "late"]).await;
    for envoy in &everybody {
        assert_eq!(rejections(envoy).await?, 0);
    }
    Ok(())
}
