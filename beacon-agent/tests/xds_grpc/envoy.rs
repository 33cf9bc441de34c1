//! What the real Envoy makes of content that it cannot take. Discovery alone never makes such content.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use beacon_agent::{
    bootstrap::bootstrap,
    options::{BootstrapOptions, XdsMode},
    xds::ResourceType,
};
use prost::Message;
use tower_common::view::{
    Composition, XdsResource, assignment::assignment, cluster::default_cluster, route::default_virtual_host,
};
use tower_proto::{
    envoy::{
        envoy::{
            config::{
                cluster::v3::Cluster,
                route::v3::{RouteMatch, VirtualHost, route_match::PathSpecifier},
            },
            r#type::matcher::v3::RegexMatcher,
        },
        google::protobuf,
    },
    v1,
};
use tower_tests::{Envoy, Protocol, Upstream, eventually, ports::free_port};

use crate::support::World;

pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const MODES: [XdsMode; 4] =
    [XdsMode::Delta, XdsMode::Sotw, XdsMode::DeltaPerType, XdsMode::SotwPerType];

/// Services, each with one upstream.
pub(crate) struct Mesh {
    pub(crate) composition: Composition,
}

impl Mesh {
    pub(crate) fn new(upstreams: &[(&str, &Upstream)]) -> Self {
        let layer = |make: &dyn Fn(&str, &Upstream) -> XdsResource| {
            let resources = upstreams.iter().map(|(name, upstream)| make(name, upstream));
            let named = resources.map(|resource| (resource.name.clone(), resource));
            Arc::new(named.collect::<BTreeMap<_, _>>())
        };
        let endpoint = |upstream: &Upstream| v1::Endpoint {
            address: upstream.address().ip().to_string(),
            port: upstream.address().port().into(),
            ..Default::default()
        };
        let composition = Composition {
            complete: true,
            clusters: layer(&|name, _| default_cluster(name)),
            assignments: layer(&|name, upstream| assignment(name, [endpoint(upstream)].iter())),
            virtual_hosts: layer(&|name, _| default_virtual_host(name, name)),
            ..Composition::default()
        };
        Self { composition }
    }

    /// Changes every cluster; those of `bad` so that no Envoy can take them.
    fn change_clusters(&mut self, seconds: i64, bad: &[&str]) {
        for (name, held) in Arc::make_mut(&mut self.composition.clusters) {
            let mut cluster = Cluster::decode(held.body.clone()).unwrap();
            let seconds = if bad.contains(&&**name) { -1 } else { seconds };
            cluster.connect_timeout = Some(protobuf::Duration { seconds, nanos: 0 });
            *held = XdsResource::new(name, &cluster);
        }
    }

    /// Changes every virtual host; those of `bad` so that no Envoy can take them.
    fn change_virtual_hosts(&mut self, domain: &str, bad: &[&str]) {
        for (name, held) in Arc::make_mut(&mut self.composition.virtual_hosts) {
            let mut host = VirtualHost::decode(held.body.clone()).unwrap();
            host.domains = vec![name.to_string(), format!("{name}.{domain}")];
            let path = if bad.contains(&&**name) {
                PathSpecifier::SafeRegex(RegexMatcher { regex: "(".to_owned(), ..Default::default() })
            } else {
                PathSpecifier::Prefix("/".to_owned())
            };
            host.routes[0].r#match = Some(RouteMatch { path_specifier: Some(path), ..Default::default() });
            *held = XdsResource::new(name, &host);
        }
    }
}

/// An Envoy that is served by this world, and has all that it waits for.
pub(crate) async fn envoy(world: &World, mode: XdsMode) -> Result<Envoy> {
    start(world, mode, None).await
}

/// An Envoy whose neighbours are the instances of this service.
pub(crate) async fn local_envoy(world: &World, service: &str) -> Result<Envoy> {
    start(world, XdsMode::Delta, Some(service.to_owned())).await
}

async fn start(world: &World, mode: XdsMode, local_service: Option<String>) -> Result<Envoy> {
    let egress_port = free_port();
    let options = BootstrapOptions {
        node_id: format!("{mode:?}-{egress_port}"),
        node_cluster: "test".to_owned(),
        xds_address: world.address,
        xds_socket: None,
        mode,
        admin_port: 0,
        local_service,
        zone: String::new(),
        egress_port: Some(egress_port),
    };
    let envoy = Envoy::start("envoy", &bootstrap(&options).to_string(), Some(egress_port)).await?;
    envoy.wait_ready(SOON).await?;
    Ok(envoy)
}

/// What is kept from each client: (type, name).
fn quarantined(world: &World) -> Vec<Vec<(ResourceType, String)>> {
    let clients = world.clients.snapshot();
    let kept = clients.iter().map(|client| {
        client.quarantined.iter().map(|kept| (kept.r#type, kept.name.clone())).collect::<Vec<_>>()
    });
    kept.filter(|kept| !kept.is_empty()).collect()
}

/// Waits until each host is answered by this upstream.
pub(crate) async fn answered(envoy: &Envoy, hosts: &[(&str, &str)]) {
    for (host, name) in hosts {
        eventually(SOON, format!("{host} is answered by {name}"), async || {
            let tally = envoy.caller(Protocol::Http1).tally(host, 3).await?;
            ensure!(tally.is_exactly(&[name]), "{tally}");
            Ok(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_bad_virtual_host_costs_its_own_service_only() -> Result<()> {
    let (alpha, beta) = (Upstream::start("alpha").await?, Upstream::start("beta").await?);
    let upstreams = [("a", &alpha), ("b", &beta), ("c", &alpha), ("d", &beta)];
    for mode in MODES {
        let mut mesh = Mesh::new(&upstreams);
        let world = World::new(mesh.composition.clone()).await;
        let envoy = envoy(&world, mode).await?;
        answered(&envoy, &[("a", "alpha"), ("b", "beta"), ("c", "alpha"), ("d", "beta")]).await;
        mesh.change_virtual_hosts("new", &["c"]);
        world.compositions.send(mesh.composition.clone())?;
        answered(&envoy, &[("a.new", "alpha"), ("b.new", "beta"), ("d.new", "beta")]).await;
        answered(&envoy, &[("c", "alpha")]).await;
        eventually(SOON, "c alone is kept back", async || {
            let kept = quarantined(&world);
            ensure!(kept == [[(ResourceType::Route, "c".to_owned())]], "{kept:?}");
            Ok(())
        })
        .await;
        // A fresh Envoy gets all but what it cannot take.
        let fresh = self::envoy(&world, mode).await?;
        answered(&fresh, &[("a.new", "alpha"), ("b.new", "beta"), ("d.new", "beta")]).await;
        mesh.change_virtual_hosts("newer", &[]);
        world.compositions.send(mesh.composition.clone())?;
        for envoy in [&envoy, &fresh] {
            answered(envoy, &[("a.newer", "alpha"), ("c.newer", "alpha")]).await;
        }
        assert!(quarantined(&world).is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn a_bad_cluster_costs_its_own_service_only() -> Result<()> {
    let (alpha, beta) = (Upstream::start("alpha").await?, Upstream::start("beta").await?);
    let upstreams = [("a", &alpha), ("b", &beta), ("c", &alpha), ("d", &beta)];
    for mode in MODES {
        let mut mesh = Mesh::new(&upstreams);
        let world = World::new(mesh.composition.clone()).await;
        let envoy = envoy(&world, mode).await?;
        let all = [("a", "alpha"), ("b", "beta"), ("c", "alpha"), ("d", "beta")];
        answered(&envoy, &all).await;
        mesh.change_clusters(7, &["b"]);
        world.compositions.send(mesh.composition.clone())?;
        eventually(SOON, "all but b have changed, and b is kept back", async || {
            let kept = quarantined(&world);
            ensure!(kept == [[(ResourceType::Cluster, "b".to_owned())]], "{kept:?}");
            let dump = envoy.admin_get("/config_dump").await?.body;
            let timeouts = [dump.matches(r#""connect_timeout": "7s""#).count(), dump.matches("-1s").count()];
            ensure!(timeouts == [3, 0], "{timeouts:?}");
            Ok(())
        })
        .await;
        answered(&envoy, &all).await;
        mesh.change_clusters(8, &[]);
        world.compositions.send(mesh.composition.clone())?;
        eventually(SOON, "all have changed", async || {
            let dump = envoy.admin_get("/config_dump").await?.body;
            let changed = dump.matches(r#""connect_timeout": "8s""#).count();
            ensure!(changed == 4 && quarantined(&world).is_empty(), "{changed}");
            Ok(())
        })
        .await;
        answered(&envoy, &all).await;
    }
    Ok(())
}

/// What it has rejected so far, of all types.
async fn rejections(envoy: &Envoy) -> Result<u64> {
    let stats = envoy.admin_get("/stats?filter=update_rejected").await?.body;
    Ok(stats.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}

#[tokio::test]
async fn what_it_rejected_is_not_sent_to_it_again_by_a_server_that_has_restarted() -> Result<()> {
    let (alpha, beta) = (Upstream::start("alpha").await?, Upstream::start("beta").await?);
    let upstreams = [("a", &alpha), ("b", &beta), ("c", &alpha), ("d", &beta)];
    let all = [("a", "alpha"), ("b", "beta"), ("c", "alpha"), ("d", "beta")];
    for mode in MODES {
        let mut mesh = Mesh::new(&upstreams);
        let world = World::new(mesh.composition.clone()).await;
        let envoy = envoy(&world, mode).await?;
        answered(&envoy, &all).await;
        mesh.change_clusters(7, &["b"]);
        mesh.change_virtual_hosts("new", &["c"]);
        world.compositions.send(mesh.composition.clone())?;
        let kept_back = async |world: &World| {
            eventually(SOON, "b's cluster and c's routes are kept back", async || {
                let mut kept: Vec<_> = quarantined(world).concat();
                kept.sort();
                let expected = [(ResourceType::Cluster, "b"), (ResourceType::Route, "c")];
                ensure!(kept == expected.map(|(kind, name)| (kind, name.to_owned())), "{kept:?}");
                Ok(())
            })
            .await;
        };
        kept_back(&world).await;
        answered(&envoy, &[("a.new", "alpha"), ("b.new", "beta"), ("d.new", "beta")]).await;
        let before = rejections(&envoy).await?;
        assert!(before > 0);

        let world = world.restarted().await;
        kept_back(&world).await;
        // All others change, and what it rejected stays as it is.
        let bad = mesh.composition.virtual_hosts["c"].clone();
        mesh.change_clusters(8, &["b"]);
        mesh.change_virtual_hosts("newer", &[]);
        Arc::make_mut(&mut mesh.composition.virtual_hosts).insert("c".into(), bad);
        world.compositions.send(mesh.composition.clone())?;
        answered(&envoy, &[("a.newer", "alpha"), ("b.newer", "beta"), ("d.newer", "beta")]).await;
        answered(&envoy, &all).await;
        let dump = envoy.admin_get("/config_dump").await?.body;
        assert_eq!(dump.matches(r#""connect_timeout": "8s""#).count(), 3);
        assert_eq!(rejections(&envoy).await?, before);
    }
    Ok(())
}

/// projectcontour/contour#1091, envoyproxy/envoy#4485: an Envoy waits for every cluster's endpoints.
#[tokio::test]
async fn b4_a_cluster_without_endpoints_holds_up_no_start() -> Result<()> {
    let alpha = Upstream::start("alpha").await?;
    for mode in MODES {
        let mut mesh = Mesh::new(&[("a", &alpha), ("empty", &alpha)]);
        Arc::make_mut(&mut mesh.composition.assignments)
            .insert("empty".into(), assignment("empty", [].iter()));
        let world = World::new(mesh.composition).await;
        let started = std::time::Duration::from_secs(5);
        let envoy = tokio::time::timeout(started, envoy(&world, mode)).await??;
        answered(&envoy, &[("a", "alpha")]).await;
        let reply = envoy.caller(Protocol::Http1).get("empty").await?;
        assert_eq!(reply.status, 503, "it is a service, and nobody is there");
    }
    Ok(())
}

/// envoyproxy/go-control-plane#245, #526; kumahq/kuma#331: clusters that are modified and added, under
/// load. A request that a healthy endpoint could have served is served.
#[tokio::test]
async fn b9_b11_changes_of_clusters_cost_no_request() -> Result<()> {
    const ROUNDS: i64 = 50;
    let alpha = Upstream::start("alpha").await?;
    for mode in [XdsMode::Delta, XdsMode::Sotw] {
        let names: Vec<String> = (0..ROUNDS).map(|round| format!("new-{round}")).collect();
        let mut upstreams = vec![("a", &alpha)];
        let world = World::new(Mesh::new(&upstreams).composition).await;
        let envoy = envoy(&world, mode).await?;
        answered(&envoy, &[("a", "alpha")]).await;
        for (round, name) in (0..).zip(&names) {
            upstreams.push((name, &alpha));
            let mut mesh = Mesh::new(&upstreams);
            mesh.change_clusters(round % 7 + 2, &[]);
            world.compositions.send(mesh.composition)?;
            eventually(SOON, format!("{name} is known"), async || {
                let old = envoy.caller(Protocol::Http1).get("a").await?;
                assert_eq!(old.status, 200, "a in round {round}: {}", old.body);
                let new = envoy.caller(Protocol::Http1).get(name).await?;
                // Not known yet, or served; never known and not served.
                assert!(matches!(new.status, 404 | 200), "{name}: {} {}", new.status, new.body);
                new.ok().map(drop)
            })
            .await;
        }
        eventually(Duration::from_secs(2), "nothing is warming", async || {
            let warming = envoy.stat("cluster_manager.warming_clusters").await?;
            ensure!(warming == Some(0), "{warming:?}");
            Ok(())
        })
        .await;
    }
    Ok(())
}
