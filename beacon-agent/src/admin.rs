//! The admin pages: is this host served, by whom, and what is wrong.

use std::{fmt::Write, sync::Arc};

use actix_web::{HttpResponse, Responder, get, web};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::json;
use tower_common::{
    telemetry,
    tls::{ClientFiles, Reloading},
};

use crate::{
    link::LinkState,
    metrics::{Metrics, Times},
    mirror::{Mirror, MirrorSummary},
    xds::{
        Clients,
        clients::{ReleaseStatus, ReleaseTrouble},
        dump::dump,
        statics::Problems,
    },
};

/// What the pages are made of.
#[derive(Clone)]
pub struct AppState {
    /// The mirror.
    pub mirror: Arc<Mutex<Mirror>>,
    /// The link to Tower.
    pub link: Arc<Mutex<LinkState>>,
    /// The xDS clients.
    pub clients: Clients,
    /// What is wrong with the static resources, if there are any.
    pub static_problems: Option<Problems>,
    /// Beyond so many services the page warns.
    pub warn_services: usize,
    /// Times of events.
    pub metrics: Metrics,
    /// The certificate, if the link has TLS.
    pub tls: Option<Reloading<ClientFiles>>,
    /// Snapshots that were set aside at the start, and why.
    pub set_aside: Arc<[String]>,
    /// All metrics.
    pub registry: Arc<Registry>,
}

/// Adds all routes.
pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(healthz)
        .service(web::resource(["/ready", "/readyz"]).route(web::get().to(ready)))
        .service(metrics)
        .service(status)
        .service(config_dump)
        .service(index)
        .default_service(web::to(not_found));
}

#[get("/healthz")]
async fn healthz() -> impl Responder {
    HttpResponse::Ok().body("ok\n")
}

/// Whether there is a whole state to serve, new or from disk.
async fn ready(state: web::Data<AppState>) -> impl Responder {
    if state.mirror.lock().summary().complete {
        HttpResponse::Ok().body("ready\n")
    } else {
        HttpResponse::ServiceUnavailable()
            .body("neither Tower nor the disk has given a whole state yet; see /\n")
    }
}

#[get("/metrics")]
async fn metrics(state: web::Data<AppState>) -> impl Responder {
    HttpResponse::Ok().content_type(telemetry::METRICS_CONTENT_TYPE).body(telemetry::encode(&state.registry))
}

#[get("/status")]
async fn status(state: web::Data<AppState>) -> impl Responder {
    HttpResponse::Ok().json(json!({
        "link": *state.link.lock(),
        "tls": state.tls.as_ref().map(Reloading::status),
        "mirror": state.mirror.lock().summary(),
        "clients": state.clients.snapshot(),
        "releases": releases(&state),
        "static_problems": state.static_problems.as_ref().map(|problems| problems.borrow().clone()),
        "tower_heard_age_seconds": Times::age_seconds(&state.metrics.times.tower_heard),
        "snapshots_set_aside": *state.set_aside,
        "snapshot_age_seconds": Times::age_seconds(&state.metrics.times.snapshot_taken),
    }))
}

/// What became of the releases that services are assigned.
fn releases(state: &AppState) -> Vec<ReleaseStatus> {
    let held = state.mirror.lock().compositions().borrow().held.clone();
    state.clients.releases(&held)
}

#[derive(Deserialize)]
struct DumpQuery {
    /// Only the clients with this node id.
    node: Option<String>,
}

/// What each client was sent; secrets are left out.
#[get("/config_dump")]
async fn config_dump(state: web::Data<AppState>, query: web::Query<DumpQuery>) -> impl Responder {
    HttpResponse::Ok().json(dump(&state.clients, query.node.as_deref()).await)
}

#[get("/")]
async fn index(state: web::Data<AppState>) -> impl Responder {
    let mirror = state.mirror.lock().summary();
    let link = state.link.lock().clone();
    let mut page = String::new();
    render(&mut page, &state, &mirror, &link).expect("a string takes all");
    HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(page)
}

async fn not_found() -> impl Responder {
    HttpResponse::NotFound().json(json!({ "error": "there is no such page; see /" }))
}

fn render_releases(page: &mut String, releases: &[ReleaseStatus]) -> std::fmt::Result {
    writeln!(page, "\nreleases  {} services with an assignment", releases.len())?;
    for release in releases {
        let name = |release: &str| if release.is_empty() { "default".to_owned() } else { release.to_owned() };
        let assigned = release.release.as_deref().map_or_else(|| "UNKNOWN".to_owned(), name);
        write!(page, "          {} {assigned} is {}", release.service, release.state.as_str())?;
        if release.release.as_deref() != Some(&release.served) {
            write!(page, ", {} is served", name(&release.served))?;
        }
        writeln!(page)?;
        if let Some(ReleaseTrouble { client, type_url, resource, error }) = &release.trouble {
            let place = [client.as_str(), type_url, resource].join(" ");
            writeln!(page, "            {}", format!("{place} {error}").trim())?;
        }
        for note in &release.notes {
            writeln!(page, "            {note}")?;
        }
    }
    Ok(())
}

fn render(page: &mut String, state: &AppState, mirror: &MirrorSummary, link: &LinkState) -> std::fmt::Result {
    let times = &state.metrics.times;
    writeln!(page, "Beacon {}\n", env!("CARGO_PKG_VERSION"))?;
    match (&link.connected, &link.last_end) {
        (Some(tower), _) => writeln!(page, "tower     connected to {tower}")?,
        (None, Some(end)) => writeln!(page, "tower     NOT CONNECTED: {end}")?,
        (None, None) => writeln!(page, "tower     connecting")?,
    }
    writeln!(page, "          heard {:.1} s ago", Times::age_seconds(&times.tower_heard))?;
    if let Some(tls) = &state.tls {
        writeln!(page, "          TLS: {}", tls.status())?;
    }
    let complete = if mirror.complete { "complete" } else { "NOT COMPLETE: nothing is served yet" };
    writeln!(
        page,
        "\nstore     revision {}, {} resources, {} services, {complete}",
        mirror.revision, mirror.resources, mirror.services
    )?;
    if mirror.services > state.warn_services {
        writeln!(
            page,
            "          WARNING: {} services are more than {}, and each Envoy is served all of them, at about \
             75 KiB each",
            mirror.services, state.warn_services
        )?;
    }
    for source in &mirror.sources {
        writeln!(page, "          source {} is {} at {}", source.id, source.state, source.index)?;
    }
    for refused in &mirror.refused {
        writeln!(page, "          {} has no host name: {}", refused.service, refused.reason)?;
    }
    writeln!(page, "\nsnapshot  {:.1} s old (-1: none)", Times::age_seconds(&times.snapshot_taken))?;
    for reason in state.set_aside.iter() {
        writeln!(page, "          SET ASIDE {reason}")?;
    }
    for problem in state.static_problems.iter().flat_map(|problems| problems.borrow().clone()) {
        writeln!(page, "\nfiles     {problem}")?;
    }
    render_releases(page, &releases(state))?;
    let clients = state.clients.reports();
    writeln!(page, "\nclients   {} xDS streams", clients.len())?;
    for client in &clients {
        for report in client.types.iter().filter(|report| !report.error.is_empty()) {
            writeln!(
                page,
                "          {} REJECTED {} {}: {}",
                client.node_id, report.type_url, report.rejected_version, report.error
            )?;
        }
    }
    for client in state.clients.snapshot() {
        for kept in &client.quarantined {
            writeln!(
                page,
                "          {} CANNOT TAKE {} {} {}: {}",
                client.node_id,
                kept.r#type.as_str(),
                kept.name,
                kept.version,
                kept.message
            )?;
        }
    }
    writeln!(page, "\nmore      /status  /config_dump?node=ID  /metrics  /ready  /healthz")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::clients::ReleaseState;

    #[test]
    fn the_page_tells_what_became_of_each_release() {
        let of = |service: &str, release: Option<&str>, served: &str, state| ReleaseStatus {
            service: service.to_owned(),
            release: release.map(str::to_owned),
            served: served.to_owned(),
            state,
            trouble: None,
            notes: Vec::new(),
        };
        let trouble = ReleaseTrouble {
            client: "envoy-1".to_owned(),
            type_url: "cds".to_owned(),
            resource: "api".to_owned(),
            error: "no".to_owned(),
        };
        let all = [
            ReleaseStatus { trouble: Some(trouble), ..of("api", Some("r1"), "r1", ReleaseState::Rejected) },
            ReleaseStatus {
                trouble: Some(ReleaseTrouble { error: "why".to_owned(), ..Default::default() }),
                ..of("db", None, "", ReleaseState::Unknown)
            },
            ReleaseStatus {
                notes: vec!["something".to_owned()],
                ..of("web", Some(""), "", ReleaseState::Accepted)
            },
        ];
        let mut page = String::new();
        render_releases(&mut page, &all).unwrap();
        let lines: Vec<&str> = page.trim().lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "releases  3 services with an assignment",
                "api r1 is REJECTED",
                "envoy-1 cds api no",
                "db UNKNOWN is UNKNOWN, default is served",
                "why",
                "web default is ACCEPTED",
                "something",
            ]
        );
    }
}
