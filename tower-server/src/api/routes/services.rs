//! Services: which there are, what is known of one, and their endpoints.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use tower_common::{
    api::{
        problem::Finding,
        service::{Effective, Endpoints, Filter, Service, ServiceDetail, Services, Sort},
    },
    document,
};
use tower_proto::v1::ReleaseMade;
use utoipa::IntoParams;

use super::{activations, queries::OfService};
use crate::{
    api::{
        AppState, caller,
        conditions::etag,
        effective,
        error::Refused,
        extract::{Path, Query},
        page::Page,
        told,
    },
    registry::{self, State},
    store_actor::{ListEndpoints, ServiceSummary},
};

/// Versions that are told with a service.
const MAX_VERSIONS: usize = 20;

/// Which services, in which order.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Part of the name, or of the owner's.
    search: Option<String>,
    /// Only those of this owner.
    owner: Option<String>,
    /// Only those of which this is so.
    #[param(inline)]
    filter: Option<Filter>,
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

/// What else is told of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Include {
    /// The active document with the parts of platform and security, and remarks about it.
    Effective,
}

/// What is wanted of a service.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DetailQuery {
    /// What else is told.
    #[param(inline)]
    include: Option<Include>,
}

/// Services, discovered or configured
#[utoipa::path(tag = "services", responses((status = 200, body = Services)), params(ListQuery))]
#[get("/api/v1/services")]
pub(crate) async fn list_services(
    state: web::Data<AppState>,
    Query(query): Query<ListQuery>,
) -> Result<HttpResponse, Refused> {
    let serving = state.serving().await?;
    let (serve, unknown) = (serving.serve, serving.unknown.into_iter().collect());
    let mut services = all(&serving.services, &state.registry.state());
    if let Some(search) = query.search.as_deref().map(str::to_lowercase) {
        services.retain(|service| {
            let owner = service.owner.as_deref().unwrap_or_default();
            service.name.to_lowercase().contains(&search) || owner.to_lowercase().contains(&search)
        });
    }
    if let Some(owner) = &query.owner {
        services.retain(|service| service.owner.as_ref() == Some(owner));
    }
    if let Some(filter) = query.filter {
        services.retain(|service| is_so(service, filter));
    }
    let total = services.len() as u64;
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
    Ok(HttpResponse::Ok().json(Services { serve, unknown, services, total, next }))
}

fn is_so(service: &Service, filter: Filter) -> bool {
    match filter {
        Filter::Active => service.active.is_some(),
        Filter::Waiting => service.latest_version > service.active.as_ref().map(|active| active.version),
        Filter::Progressing => service.activation.is_some(),
        Filter::NoDocument => service.latest_version.is_none(),
        Filter::NoEndpoints => service.endpoints == 0,
        Filter::NotServed => !service.served || service.refused.is_some(),
    }
}

/// What is known of a service
#[utoipa::path(tag = "services", responses((status = 200, body = ServiceDetail)), params(OfService, DetailQuery))]
#[get("/api/v1/services/{service}")]
pub(crate) async fn get_service(
    state: web::Data<AppState>,
    Path(path): Path<OfService>,
    Query(query): Query<DetailQuery>,
) -> Result<HttpResponse, Refused> {
    let name = path.service;
    let serving = state.serving().await?;
    let discovered = serving.services.iter().find(|summary| summary.service == name);
    let folded = state.registry.state();
    let logged = folded.service(&name).map(|service| &**service);
    if discovered.is_none() && logged.is_none() {
        return Err(Refused::no_such("service", &name, "/api/v1/services"));
    }
    let index = logged.map_or(0, |logged| logged.etag);
    let none = registry::Service::default();
    let known = logged.unwrap_or(&none);
    let records = known.versions.iter().rev().take(MAX_VERSIONS);
    let running = known.running().map(|record| activations::activation(&state, &name, record));
    let (effective, findings) = match (query.include, known.release(&known.assignment.default_release)) {
        (Some(Include::Effective), Some(made)) => active(&state, &folded, &name, known, made).await?,
        (Some(Include::Effective) | None, _) => (None, Vec::new()),
    };
    let detail = ServiceDetail {
        service: told::services::service(&name, discovered, logged),
        versions: records.map(|record| told::versions::version(&name, known, record)).collect(),
        assignment: told::services::rules(known, &known.assignment),
        activation_in_progress: running,
        findings,
        effective,
    };
    Ok(HttpResponse::Ok().insert_header(etag(index)).json(detail))
}

/// Endpoints as they are published
#[utoipa::path(tag = "services", responses((status = 200, body = Endpoints)), params(OfService))]
#[get("/api/v1/services/{service}/endpoints")]
pub(crate) async fn list_endpoints(
    state: web::Data<AppState>,
    Path(path): Path<OfService>,
) -> Result<HttpResponse, Refused> {
    let endpoints = state.ask_store(ListEndpoints { service: path.service }).await?;
    let endpoints = endpoints.into_iter().map(told::services::endpoint).collect();
    Ok(HttpResponse::Ok().json(Endpoints { endpoints }))
}

/// The active document of a service, with the parts that it was released with, and remarks about it.
async fn active(
    state: &AppState,
    folded: &State,
    name: &str,
    service: &registry::Service,
    made: &ReleaseMade,
) -> Result<(Option<Effective>, Vec<Finding>), Refused> {
    let Some(found) = effective::of_release(&state.registry, folded, name, service, made).await? else {
        return Ok((None, Vec::new()));
    };
    let world = state.registry.world(folded, name, &found.document).await.map_err(caller::failed)?;
    let findings = document::check(&found, &world).iter().map(told::findings::finding).collect();
    Ok((Some(effective::told(&found, name, &format!("{name}@{}", made.version))), findings))
}

/// A service of which the log says something.
pub(super) fn logged<'a>(folded: &'a State, name: &str) -> Result<&'a registry::Service, Refused> {
    let found = folded.service(name).map(|service| &**service);
    found.ok_or_else(|| Refused::no_such("configured service", name, "/api/v1/services"))
}

/// Those that are discovered, and those of the log, by name.
fn all(discovered: &[ServiceSummary], folded: &State) -> Vec<Service> {
    let discovered: BTreeMap<&str, &ServiceSummary> =
        discovered.iter().map(|summary| (summary.service.as_str(), summary)).collect();
    let logged = folded.services().filter(|(_, service)| !service.versions.is_empty());
    let names: BTreeSet<&str> = discovered.keys().copied().chain(logged.map(|(name, _)| name)).collect();
    let service = |name: &str| {
        let logged = folded.service(name).map(|service| &**service);
        told::services::service(name, discovered.get(name).copied(), logged)
    };
    names.into_iter().map(service).collect()
}
