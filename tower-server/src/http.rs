//! HTTP for people and probes.

mod guard;
mod page;
mod serving;

use std::{sync::Arc, time::Duration};

use actix::Addr;
use actix_web::{HttpResponse, Responder, get, web};
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde_json::json;
use tower_common::{
    served::Served,
    telemetry,
    tls::{Reloading, ServerFiles},
};
use tower_proto::v1;

use self::serving::Serving;
use crate::{
    fanout::beacons::Beacons,
    sources::{SourceHandle, SourceReport},
    store_actor::{Describe, ListEndpoints, ListServices, ServiceSummary, StoreActor, StoreSummary},
};

/// An actor that takes longer to answer is as good as dead.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What the pages are made of.
#[derive(Clone)]
pub struct AppState {
    /// The store.
    pub store: Addr<StoreActor>,
    /// The sources.
    pub sources: Arc<Vec<SourceHandle>>,
    /// Who is connected.
    pub beacons: Arc<Beacons>,
    /// The certificate, if there is one.
    pub tls: Option<Reloading<ServerFiles>>,
    /// Which services Beacons are sent.
    pub served: Served,
    /// Beyond so many of them the page warns.
    pub warn_services: usize,
    /// All metrics.
    pub registry: Arc<Registry>,
}

/// Adds all routes.
pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(healthz)
        .service(readyz)
        .service(metrics)
        .service(index)
        .service(sources)
        .service(beacons)
        .service(services)
        .service(endpoints)
        .configure(guard::configure)
        .default_service(web::to(not_found));
}

#[derive(Serialize)]
struct EndpointView {
    source: String,
    address: String,
    port: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    port_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    zone: String,
    weight: f64,
    state: &'static str,
    labels: std::collections::BTreeMap<String, String>,
}

/// Answers as long as the store does.
#[get("/healthz")]
async fn healthz(state: web::Data<AppState>) -> impl Responder {
    match describe(&state).await {
        Some(_) => HttpResponse::Ok().body("ok\n"),
        None => unavailable("the store does not answer"),
    }
}

/// Whether a Beacon that connects now gets all there is.
#[get("/readyz")]
async fn readyz(state: web::Data<AppState>) -> impl Responder {
    match describe(&state).await {
        Some(summary) if summary.complete => HttpResponse::Ok().body("ready\n"),
        Some(_) => unavailable("not every source has been read yet; see /api/v1/sources"),
        None => unavailable("the store does not answer"),
    }
}

#[get("/metrics")]
async fn metrics(state: web::Data<AppState>) -> impl Responder {
    HttpResponse::Ok().content_type(telemetry::METRICS_CONTENT_TYPE).body(telemetry::encode(&state.registry))
}

#[get("/")]
async fn index(state: web::Data<AppState>) -> impl Responder {
    let (Some(store), Some(listed)) = (describe(&state).await, list_services(&state).await) else {
        return unavailable("the store does not answer");
    };
    HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(page::render(&page::Contents {
        store,
        serving: Serving::of(&state.served, listed),
        warn_services: state.warn_services,
        sources: source_reports(&state).await,
        beacons: &state.beacons,
        tls: state.tls.as_ref().map(Reloading::status),
    }))
}

#[get("/api/v1/sources")]
async fn sources(state: web::Data<AppState>) -> impl Responder {
    HttpResponse::Ok().json(json!({ "sources": source_reports(&state).await }))
}

#[get("/api/v1/beacons")]
async fn beacons(state: web::Data<AppState>) -> impl Responder {
    HttpResponse::Ok().json(json!({
        "beacons": state.beacons.list(),
        "refused": state.beacons.refusals().list(),
    }))
}

#[get("/api/v1/services")]
async fn services(state: web::Data<AppState>) -> impl Responder {
    match list_services(&state).await {
        Some(listed) => HttpResponse::Ok().json(Serving::of(&state.served, listed)),
        None => unavailable("the store does not answer"),
    }
}

#[get("/api/v1/services/{service}/endpoints")]
async fn endpoints(state: web::Data<AppState>, service: web::Path<String>) -> impl Responder {
    let question = ListEndpoints { service: service.into_inner() };
    match tokio::time::timeout(ANSWER_TIMEOUT, state.store.send(question)).await {
        Ok(Ok(endpoints)) => {
            let views: Vec<EndpointView> = endpoints.into_iter().map(endpoint_view).collect();
            HttpResponse::Ok().json(json!({ "endpoints": views }))
        }
        _ => unavailable("the store does not answer"),
    }
}

async fn not_found() -> impl Responder {
    HttpResponse::NotFound().json(json!({ "error": "there is no such page; see /" }))
}

async fn describe(state: &AppState) -> Option<StoreSummary> {
    tokio::time::timeout(ANSWER_TIMEOUT, state.store.send(Describe)).await.ok()?.ok()
}

async fn list_services(state: &AppState) -> Option<Vec<ServiceSummary>> {
    tokio::time::timeout(ANSWER_TIMEOUT, state.store.send(ListServices)).await.ok()?.ok()
}

async fn source_reports(state: &AppState) -> Vec<SourceReport> {
    let mut reports = Vec::new();
    for source in state.sources.iter() {
        reports.push(source.describe().await);
    }
    reports
}

fn endpoint_view((source, endpoint): (String, v1::Endpoint)) -> EndpointView {
    EndpointView {
        source,
        state: endpoint.state().as_str_name().trim_start_matches("STATE_"),
        weight: endpoint.weight.unwrap_or(1.0),
        zone: endpoint.locality.map(|locality| locality.zone).unwrap_or_default(),
        address: endpoint.address,
        port: endpoint.port,
        port_name: endpoint.port_name,
        labels: endpoint.labels,
    }
}

fn unavailable(reason: &'static str) -> HttpResponse {
    HttpResponse::ServiceUnavailable().body(format!("{reason}\n"))
}
