//! For probes, for Prometheus, and for a first look. Open to all.

use actix_web::{HttpRequest, HttpResponse, get, http::header, web};
use tower_common::{api::Code, telemetry, tls::Reloading};

use crate::api::{AppState, error::Refused, front, ui};

/// Answers as long as the store does
#[utoipa::path(tag = "about", security(()), responses((status = 200, content_type = "text/plain", body = String)))]
#[get("/healthz")]
pub(crate) async fn healthz(state: web::Data<AppState>) -> Result<HttpResponse, Refused> {
    state.describe_store().await?;
    Ok(HttpResponse::Ok().content_type("text/plain").body("ok\n"))
}

/// Whether a Beacon that connects now gets all there is
#[utoipa::path(tag = "about", security(()), responses((status = 200, content_type = "text/plain", body = String)))]
#[get("/readyz")]
pub(crate) async fn readyz(state: web::Data<AppState>) -> Result<HttpResponse, Refused> {
    if !state.describe_store().await?.complete {
        let detail = "not every source has been read yet; see /api/v1/sources";
        return Err(Refused::new(Code::Unavailable, detail));
    }
    Ok(HttpResponse::Ok().content_type("text/plain").body("ready\n"))
}

/// Metrics for Prometheus
#[utoipa::path(
    tag = "about",
    security(()),
    responses((status = 200, content_type = "application/openmetrics-text", body = String)),
)]
#[get("/metrics")]
pub(crate) async fn metrics(state: web::Data<AppState>) -> HttpResponse {
    let body = telemetry::encode(&state.metrics);
    HttpResponse::Ok().content_type(telemetry::METRICS_CONTENT_TYPE).body(body)
}

/// The web UI for browsers; for others what is wrong, in a few lines
#[utoipa::path(
    tag = "about",
    security(()),
    responses((status = 200, content((String = "text/plain"), (String = "text/html")))),
)]
#[get("/")]
pub(crate) async fn front_page(
    state: web::Data<AppState>,
    request: HttpRequest,
) -> Result<HttpResponse, Refused> {
    if let Some(page) = ui::answer(&request) {
        return Ok(page);
    }
    let page = front::render(&front::Contents {
        store: state.describe_store().await?,
        serving: state.serving().await?,
        warn_services: state.warn_services,
        log: state.registry.status().borrow().clone(),
        sources: state.describe_sources().await,
        beacons: &state.beacons,
        tls: state.tls.as_ref().map(Reloading::status),
        ui: ui::is_there(),
    });
    let vary = (header::VARY, "Accept");
    Ok(HttpResponse::Ok().content_type("text/plain; charset=utf-8").insert_header(vary).body(page))
}
