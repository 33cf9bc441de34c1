//! Releases on the real Envoy: what is composed of their parts is taken, one release moves to the next without
//! a failed request, and what became of it is told.

mod parts;

use std::time::Duration;

use anyhow::{Result, ensure};
use beacon_agent::{options::XdsMode, xds::clients::ReleaseState};
use tower_common::resource::Resource;
use tower_tests::{Authority, Envoy, Protocol, Upstream, eventually, http, ports::free_port};

use self::parts::{
    Does, Host, application, assignment, certificate, cluster, endpoint, inbound_routes, listener, of, routes,
};
use crate::envoy::{MODES, SOON, answered, envoy};

const STABLE: &[(&str, &str)] = &[("model", "a")];
const CANARY: &[(&str, &str)] = &[("model", "b")];

/// A release of `web` with a part of the traffic for each of these subsets.
fn release(id: &str, weights: &[(&str, u32)]) -> Vec<Resource> {
    let mut parts = vec![cluster(id, "web", "web", &[]), routes(id, "web", weights)];
    parts.extend(
        weights.iter().filter(|(name, _)| *name != "web").map(|(name, _)| {
            cluster(id, "web", name, if name.ends_with("canary") { CANARY } else { STABLE })
        }),
    );
    parts
}

/// Waits until a release is in this state at the host's clients.
async fn becomes(host: &Host, service: &str, state: ReleaseState) {
    eventually(SOON, format!("{service} becomes {state:?}"), async || {
        let releases = host.releases();
        let status = of(&releases, service);
        ensure!(status.state == state, "{status:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_service_moves_from_release_to_release_without_a_failed_request() -> Result<()> {
    const ROUNDS: usize = 20;
    let (alpha, beta) = (Upstream::start("alpha").await?, Upstream::start("beta").await?);
    for mode in MODES {
        let aggregated = matches!(mode, XdsMode::Delta | XdsMode::Sotw);
        let endpoints =
            vec![endpoint("web", alpha.address(), STABLE), endpoint("web", beta.address(), CANARY)];
        let mut host = Host::new(&[], endpoints).await;
        let envoy = envoy(&host.world, mode).await?;
        answered_by_both(&envoy).await;
        // Each round drops the clusters of the one before, and brings others.
        for round in 0..if aggregated { ROUNDS } else { 2 } {
            let id = format!("r{round}");
            let (canary, stable) = (format!("web/{round}-canary"), format!("web/{round}-stable"));
            let weights: &[(&str, u32)] =
                if round % 2 == 0 { &[(&canary, 1)] } else { &[(&stable, 1), (&canary, 0)] };
            host.add(release(&id, weights));
            host.add(vec![assignment("web", &id)]);
            let expected = if round % 2 == 0 { "beta" } else { "alpha" };
            eventually(SOON, format!("{id} is in force, {mode:?}"), async || {
                let reply = envoy.caller(Protocol::Http1).get("web").await?;
                if aggregated {
                    assert_eq!(reply.status, 200, "in round {round}: {}", reply.body);
                }
                ensure!(reply.body.contains(expected), "{}", reply.body);
                Ok(())
            })
            .await;
            becomes(&host, "web", ReleaseState::Accepted).await;
        }
        // The clusters of releases that are over are gone.
        eventually(SOON, "old clusters are gone", async || {
            let clusters = envoy.admin_get("/clusters").await?.body;
            ensure!(!clusters.contains("web/0-canary::"), "{clusters}");
            Ok(())
        })
        .await;
        host.add(vec![assignment("web", "")]);
        answered_by_both(&envoy).await;
    }
    Ok(())
}

async fn answered_by_both(envoy: &Envoy) {
    eventually(SOON, "the default has both", async || {
        let tally = envoy.caller(Protocol::Http1).tally("web", 20).await?;
        ensure!(tally.is_exactly(&["alpha", "beta"]), "{tally}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_host_has_its_services_listeners_in_each_mode() -> Result<()> {
    let (app, db) = (Upstream::start("app").await?, Upstream::start("db").await?);
    let folder = tempfile::tempdir()?;
    Authority::new("test")?.issue(folder.path(), &["web"])?;
    for mode in MODES {
        let [http_port, tls_port, tcp_port] = [free_port(), free_port(), free_port()];
        let parts = vec![
            endpoint("web", app.address(), &[]),
            endpoint("db", db.address(), &[]),
            assignment("web", "r1"),
            cluster("r1", "web", "web", &[]),
            routes("r1", "web", &[("web", 1)]),
            application("r1", "web", http_port, app.address()),
            inbound_routes("r1", "web", http_port),
            listener("r1", "web", http_port, Does::Http),
            listener("r1", "web", tls_port, Does::Tls),
            listener("r1", "web", tcp_port, Does::Tcp("db")),
            certificate("r1", "web", folder.path()),
        ];
        let host = Host::new(&["web"], parts.clone()).await;
        let envoy = envoy(&host.world, mode).await?;
        becomes(&host, "web", ReleaseState::Accepted).await;
        for (port, name) in [(http_port, "app"), (tcp_port, "db")] {
            eventually(SOON, format!("{name} is reached, {mode:?}"), async || {
                let reply =
                    http::get(([127, 0, 0, 1], port).into(), Protocol::Http1, "web", "/").await?.ok()?;
                ensure!(reply.body.contains(name), "{}", reply.body);
                Ok(())
            })
            .await;
        }
        let certificates = envoy.admin_get("/certs").await?.body;
        assert!(certificates.contains(r#""dns": "web""#), "{certificates}");
        answered(&envoy, &[("web", "app"), ("db", "db")]).await;
        // Another host calls the service, and has none of this.
        let caller = Host::new(&["db"], parts).await;
        let other = self::envoy(&caller.world, mode).await?;
        answered(&other, &[("web", "app")]).await;
        assert_eq!(other.stat("listener_manager.total_listeners_active").await?, Some(1));
    }
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_with_one_services_listener_costs_only_itself() -> Result<()> {
    let app = Upstream::start("app").await?;
    for mode in MODES {
        let [good, bad, held] = [free_port(), free_port(), free_port()];
        let missing = tempfile::tempdir()?;
        let service = |name: &str, port: u16, does: Does| {
            vec![
                endpoint(name, app.address(), &[]),
                assignment(name, "r1"),
                cluster("r1", name, name, &[]),
                routes("r1", name, &[(name, 1)]),
                application("r1", name, port, app.address()),
                inbound_routes("r1", name, port),
                listener("r1", name, port, does),
                certificate("r1", name, missing.path()),
            ]
        };
        let mut host = Host::new(&["good", "bad", "taken", "keyless"], Vec::new()).await;
        let envoy = envoy(&host.world, mode).await?;
        let taken = std::net::TcpListener::bind(("127.0.0.1", held))?;
        host.add(
            [
                service("good", good, Does::Http),
                service("bad", bad, Does::Nonsense),
                service("taken", held, Does::Http),
                service("keyless", free_port(), Does::Tls),
            ]
            .concat(),
        );
        becomes(&host, "bad", ReleaseState::Rejected).await;
        becomes(&host, "taken", ReleaseState::Host).await;
        becomes(&host, "keyless", ReleaseState::Host).await;
        becomes(&host, "good", ReleaseState::Accepted).await;
        let releases = host.releases();
        let trouble = of(&releases, "bad").trouble.clone().expect("a reason");
        assert_eq!(trouble.resource, format!("inbound/bad/{bad}"));
        assert!(trouble.error.contains("no.such.Filter"), "{trouble:?}");
        for name in ["good", "bad", "taken", "keyless"] {
            answered(&envoy, &[(name, "app")]).await;
        }
        // A port that is free again is taken, a file that is there is read.
        drop(taken);
        Authority::new("test")?.issue(missing.path(), &["keyless"])?;
        becomes(&host, "taken", ReleaseState::Accepted).await;
        becomes(&host, "keyless", ReleaseState::Accepted).await;
        becomes(&host, "bad", ReleaseState::Rejected).await;
        let reply = http::get(([127, 0, 0, 1], held).into(), Protocol::Http1, "taken", "/").await?;
        assert_eq!(reply.status, 200);
    }
    Ok(())
}

/// Envoy refuses ranks in the cluster of its neighbours.
#[tokio::test]
async fn a_ranked_service_can_be_an_envoys_own() -> Result<()> {
    let app = Upstream::start("app").await?;
    let parts =
        [release("r1", &[("web", 1)]), vec![endpoint("web", app.address(), &[]), assignment("web", "r1")]];
    let host = Host::new(&["web"], parts.concat()).await;
    let envoy = crate::envoy::local_envoy(&host.world, "web").await?;
    answered(&envoy, &[("web", "app")]).await;
    eventually(Duration::from_secs(20), "its neighbours are known", async || {
        let members = envoy.stat("cluster.tower_local.membership_total").await?;
        ensure!(members == Some(1), "{members:?}");
        Ok(())
    })
    .await;
    becomes(&host, "web", ReleaseState::Accepted).await;
    Ok(())
}
