//! Giving releases to hosts, and taking them back.

use std::cmp::Reverse;

use actix_web::{HttpResponse, get, http::header, post, put, web};
use tower_common::{
    api::{
        Changed, Code, Problem, Reason,
        activation::{
            Activation, ActivationRequest, Activations, RollbackRequest, Started, StepRequest, TrafficRequest,
        },
    },
    audience::{AudienceError, AudienceSpec},
};
use tower_proto::v1::ActivationRecord;

use super::{
    queries::{ById, OfService, PageQuery},
    services::logged,
    versions::change,
};
use crate::{
    api::{
        AppState,
        caller::Caller,
        conditions::etag,
        error::Refused,
        extract::{self, Json, Maybe, Path, Query, bounded},
        suspects,
        told::{self, fleet as words, some},
    },
    fleet::{
        driver::{Sight, sight, waiting},
        standing::HostState,
    },
    registry::{
        Answer, Command,
        commands::{Abort, Activate, Deactivate, Plan, PlannedStep, RollBack, Traffic},
        service::Activation as _,
    },
};

/// What is taken back by itself is so within a year.
const MAX_TTL_SECONDS: u64 = 31_536_000;

/// A step stands for no longer than a day.
const MAX_PAUSE_SECONDS: u64 = 86_400;

/// More steps are refused.
const MAX_STEPS: usize = 20;

/// Hosts that are told with an activation.
const MAX_LACKING: usize = 100;

/// Give a version to hosts, step by step
#[utoipa::path(
    tag = "activations",
    params(OfService, ("If-Match" = Option<String>, Header, description = "The ETag of the service, or of a plan", pattern = r#"^(\*|[0-9]{1,19}|"[0-9]{1,19}")$"#)),
    responses((status = 202, body = Started), (status = 200, body = Started, description = "It is there")),
)]
#[post("/api/v1/services/{service}/activations")]
pub(crate) async fn start_activation(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<OfService>,
    Json(body): Json<ActivationRequest>,
) -> Result<HttpResponse, Refused> {
    let command = Command::Activate(Activate {
        service: path.service.clone(),
        version: body.version,
        plan: plan(body.audience.as_deref(), body.steps.as_deref(), body.at_once, body.ttl_seconds)?,
        again: body.again,
    });
    let done = caller.submit(&state.registry, extract::reason(body.reason)?, command).await?;
    Ok(started(&state, &path.service, &done))
}

/// Change weights, and nothing else
#[utoipa::path(
    tag = "activations",
    params(OfService, ("If-Match" = Option<String>, Header, description = "The ETag of the service", pattern = r#"^(\*|[0-9]{1,19}|"[0-9]{1,19}")$"#)),
    responses((status = 202, body = Started), (status = 200, body = Started, description = "They are so")),
)]
#[put("/api/v1/services/{service}/traffic")]
pub(crate) async fn set_traffic(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<OfService>,
    Json(body): Json<TrafficRequest>,
) -> Result<HttpResponse, Refused> {
    let command = Command::Traffic(Traffic {
        service: path.service.clone(),
        weights: body.weights,
        route: body.route,
        plan: plan(body.audience.as_deref(), body.steps.as_deref(), body.at_once, body.ttl_seconds)?,
    });
    let done = caller.submit(&state.registry, extract::reason(body.reason)?, command).await?;
    Ok(started(&state, &path.service, &done))
}

/// Go back to what stood before, on all hosts at once
#[utoipa::path(
    tag = "activations",
    request_body = Option<RollbackRequest>,
    params(OfService, ("If-Match" = Option<String>, Header, description = "The ETag of the service", pattern = r#"^(\*|[0-9]{1,19}|"[0-9]{1,19}")$"#)),
    responses((status = 202, body = Started), (status = 200, body = Started, description = "That is all")),
)]
#[post("/api/v1/services/{service}/rollback")]
pub(crate) async fn roll_back(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<OfService>,
    Maybe(body): Maybe<RollbackRequest>,
) -> Result<HttpResponse, Refused> {
    let command = Command::RollBack(RollBack { service: path.service.clone(), to: body.to });
    let done = caller.submit(&state.registry, extract::reason(body.reason)?, command).await?;
    Ok(started(&state, &path.service, &done))
}

/// Go back to no document, on all hosts at once
#[utoipa::path(
    tag = "activations",
    request_body = Option<Reason>,
    params(OfService, ("If-Match" = Option<String>, Header, description = "The ETag of the service", pattern = r#"^(\*|[0-9]{1,19}|"[0-9]{1,19}")$"#)),
    responses((status = 200, body = Changed)),
)]
#[post("/api/v1/services/{service}/deactivate")]
pub(crate) async fn deactivate(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<OfService>,
    Maybe(body): Maybe<Reason>,
) -> Result<HttpResponse, Refused> {
    let command = Command::Deactivate(Deactivate { service: path.service.clone() });
    change(&state, &caller, &path.service, body, command).await
}

/// The newest activations of a service, the newest first
#[utoipa::path(tag = "activations", responses((status = 200, body = Activations)), params(OfService, PageQuery))]
#[get("/api/v1/services/{service}/activations")]
pub(crate) async fn list_activations(
    state: web::Data<AppState>,
    Path(path): Path<OfService>,
    Query(query): Query<PageQuery>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    let service = logged(&folded, &path.service)?;
    let began = |record: &&ActivationRecord| Reverse(record.stamp.as_ref().map_or(0, |stamp| stamp.index));
    let (records, next) = query.page().of(service.activations.iter().rev(), began)?;
    let activations = records.into_iter().map(|record| activation(&state, &path.service, record)).collect();
    Ok(HttpResponse::Ok().json(Activations { activations, next }))
}

/// An activation, and how far it is
#[utoipa::path(tag = "activations", responses((status = 200, body = Activation)), params(ById))]
#[get("/api/v1/activations/{id}")]
pub(crate) async fn get_activation(
    state: web::Data<AppState>,
    Path(path): Path<ById>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    let found = folded.activation(&path.id);
    let (name, record) = found.ok_or_else(|| no_such_activation(&path.id))?;
    let mut told = activation(&state, name, record);
    if let Some(service) = folded.service(name) {
        told.changes = suspects::of(&state, &folded, name, service, record).await?;
    }
    Ok(HttpResponse::Ok().json(told))
}

/// Take an activation back
#[utoipa::path(
    tag = "activations",
    request_body = Option<Reason>,
    responses((status = 200, body = Started)), params(ById),
)]
#[post("/api/v1/activations/{id}/abort")]
pub(crate) async fn abort_activation(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<ById>,
    Maybe(body): Maybe<Reason>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    let (service, _) = folded.activation(&path.id).ok_or_else(|| no_such_activation(&path.id))?;
    let command = Command::Abort(Abort { service: service.to_owned(), activation: Some(path.id) });
    let done = caller.submit(&state.registry, extract::reason(body.reason)?, command).await?;
    Ok(started(&state, service, &done))
}

/// An activation, with what is known of its hosts.
pub(super) fn activation(state: &AppState, name: &str, record: &ActivationRecord) -> Activation {
    let folded = state.registry.state();
    let sight = match folded.service(name).filter(|_| record.is_running()) {
        Some(service) => sight(&state.registry, state.beacons.fleet(), name, service, record),
        None => Sight::default(),
    };
    let lacking = sight.hosts.iter().filter(|host| host.state != HostState::Accepted);
    let lacking = lacking.take(MAX_LACKING).map(words::lack).collect();
    let mut told = told::activations::activation(name, record, lacking);
    if record.is_running() {
        told.hosts = words::progress(&sight.counts);
        told.detail = some(&waiting(record, &sight, &state.registry.members()));
    }
    told
}

fn no_such_activation(id: &str) -> Refused {
    Refused::no_such("activation", id, "/api/v1/services/SERVICE/activations")
}

/// The answer to what starts an activation, or turns out to need none.
fn started(state: &AppState, name: &str, done: &Answer) -> HttpResponse {
    let folded = state.registry.state();
    let service = folded.service(name).map(|service| &**service);
    let id = done.activation.as_deref();
    let record = service.and_then(|service| service.activation(id?));
    let index = service.map_or(0, |service| service.etag);
    let mut response = match record {
        Some(record) if record.is_running() => HttpResponse::Accepted(),
        _ => HttpResponse::Ok(),
    };
    if let Some(record) = record {
        response.insert_header((header::LOCATION, format!("/api/v1/activations/{}", record.id())));
    }
    response.insert_header(etag(index)).json(Started {
        index,
        version: done.version,
        activation: record.map(|record| activation(state, name, record)),
        note: some(&done.note),
    })
}

fn plan(
    who: Option<&str>,
    steps: Option<&[StepRequest]>,
    at_once: bool,
    ttl_seconds: Option<u64>,
) -> Result<Plan, Refused> {
    bounded("ttl_seconds", ttl_seconds, 1..=MAX_TTL_SECONDS)?;
    if steps.is_some_and(|steps| steps.len() > MAX_STEPS) {
        return Err(Refused::malformed("steps", format!("there are at most {MAX_STEPS} steps")));
    }
    let steps = steps.map(|steps| steps.iter().enumerate().map(step).collect());
    Ok(Plan {
        audience: audience("audience", who)?,
        steps: steps.transpose()?,
        at_once,
        ttl_ms: ttl_seconds.map(|ttl| ttl.saturating_mul(1000)),
    })
}

fn step((place, step): (usize, &StepRequest)) -> Result<PlannedStep, Refused> {
    bounded(
        &format!("steps[{place}].pause_seconds"),
        step.pause_seconds.map(u64::from),
        0..=MAX_PAUSE_SECONDS,
    )?;
    Ok(PlannedStep {
        audience: audience(&format!("steps[{place}].audience"), Some(&step.audience))?,
        pause_ms: step.pause_seconds.map(|pause| pause.saturating_mul(1000)),
    })
}

/// An audience as it is written in a field.
pub(super) fn audience(field: &str, text: Option<&str>) -> Result<AudienceSpec, Refused> {
    let parsed = text.unwrap_or("everyone").parse();
    parsed.map_err(|error: AudienceError| Problem::new(Code::Invalid, error.to_string()).field(field).into())
}
