//! Services: which there are, and their endpoints.

use std::cmp::Reverse;

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use tower_common::api::service::{Endpoint, Endpoints, Service, Services, Sort};
use tower_proto::v1;
use utoipa::IntoParams;

use crate::{
    api::{
        AppState,
        error::Refused,
        extract::{Path, Query},
        page::Page,
    },
    store_actor::{ListEndpoints, ServiceSummary},
};

/// A service in the path.
#[derive(Debug, Deserialize, IntoParams)]
pub struct OfService {
    /// The name of the service.
    pub service: String,
}

/// Which services, in which order.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Part of the name, or of the owner's.
    search: Option<String>,
    /// The order.
    #[serde(default)]
    #[param(inline)]
    sort: Sort,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// Services, discovered or configured
#[utoipa::path(tag = "services", responses((status = 200, body = Services)))]
#[get("/api/v1/services")]
pub(crate) async fn list_services(
    state: web::Data<AppState>,
    Query(query): Query<ListQuery>,
) -> Result<HttpResponse, Refused> {
    let serving = state.serving().await?;
    let (serve, unknown) = (serving.serve, serving.unknown.into_iter().collect());
    let mut services = all(serving.services);
    if let Some(search) = query.search.as_deref().map(str::to_lowercase) {
        services.retain(|service| {
            let owner = service.owner.as_deref().unwrap_or_default();
            service.name.to_lowercase().contains(&search) || owner.to_lowercase().contains(&search)
        });
    }
    let page = Page { cursor: query.cursor.as_deref(), limit: query.limit };
    let key = |service: &Service| {
        let number = match query.sort {
            Sort::Name => 0,
            Sort::Endpoints => service.endpoints,
            Sort::Changed => service.changed_unix_ms.unwrap_or(0),
        };
        (Reverse(number), service.name.clone())
    };
    services.sort_by_cached_key(key);
    let (services, next) = page.of(services.into_iter(), key)?;
    Ok(HttpResponse::Ok().json(Services { serve, unknown, services, next }))
}

/// Endpoints as they are published
#[utoipa::path(tag = "services", responses((status = 200, body = Endpoints)))]
#[get("/api/v1/services/{service}/endpoints")]
pub(crate) async fn list_endpoints(
    state: web::Data<AppState>,
    Path(path): Path<OfService>,
) -> Result<HttpResponse, Refused> {
    let endpoints = state.ask_store(ListEndpoints { service: path.service }).await?;
    let endpoints = endpoints.into_iter().map(endpoint).collect();
    Ok(HttpResponse::Ok().json(Endpoints { endpoints }))
}

fn all(discovered: Vec<ServiceSummary>) -> Vec<Service> {
    let service = |summary: ServiceSummary| Service {
        name: summary.service,
        endpoints: summary.endpoints as u64,
        served: summary.served,
        domain: summary.domain,
        refused: summary.refused,
        owner: None,
        latest_version: None,
        active: None,
        rules: 0,
        activation: None,
        index: 0,
        changed_unix_ms: None,
    };
    discovered.into_iter().map(service).collect()
}

fn endpoint((source, endpoint): (String, v1::Endpoint)) -> Endpoint {
    Endpoint {
        source,
        state: endpoint.state().as_str_name().trim_start_matches("STATE_").to_owned(),
        weight: endpoint.weight.unwrap_or(1.0),
        zone: endpoint.locality.map(|locality| locality.zone).unwrap_or_default(),
        address: endpoint.address,
        port: endpoint.port,
        port_name: endpoint.port_name,
        labels: endpoint.labels.into_iter().collect(),
    }
}
