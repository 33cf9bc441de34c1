//! Sources: what they know, what they hold back, what they do not believe, and what an operator decides about
//! it. Also which Beacons are connected.

use actix_web::{HttpResponse, get, post, web};
use tower_common::api::{
    Code, Problem, Reason,
    source::{Adopt, Adopted, Beacons, Holds, Quarantines, Released, Sources},
};

use super::{
    super::{
        AppState,
        conditions::IncarnationTag,
        error::Refused,
        extract::{self, Maybe, Path},
        told::sources as told,
    },
    queries::ById,
};
use crate::{auth::identity::Principal, sources::OperatorError};

/// Sources, as they are now
#[utoipa::path(tag = "sources", responses((status = 200, body = Sources)))]
#[get("/api/v1/sources")]
pub(crate) async fn list_sources(state: web::Data<AppState>) -> HttpResponse {
    let sources = state.describe_sources().await.into_iter().map(told::source).collect();
    HttpResponse::Ok().json(Sources { sources })
}

/// What is held back
#[utoipa::path(tag = "sources", responses((status = 200, body = Holds)))]
#[get("/api/v1/holds")]
pub(crate) async fn list_holds(state: web::Data<AppState>) -> HttpResponse {
    let reports = state.describe_sources().await.into_iter();
    let holds = reports.flat_map(|report| report.holds).map(told::hold).collect();
    HttpResponse::Ok().json(Holds { holds })
}

/// What was found, and is not believed
#[utoipa::path(tag = "sources", responses((status = 200, body = Quarantines)))]
#[get("/api/v1/quarantines")]
pub(crate) async fn list_quarantines(state: web::Data<AppState>) -> HttpResponse {
    let reports = state.describe_sources().await.into_iter();
    let quarantines = reports.filter_map(|report| report.quarantine).map(told::quarantine).collect();
    HttpResponse::Ok().json(Quarantines { quarantines })
}

/// Beacons that are connected, and those that could not connect
#[utoipa::path(tag = "hosts", responses((status = 200, body = Beacons)))]
#[get("/api/v1/beacons")]
pub(crate) async fn list_beacons(state: web::Data<AppState>) -> HttpResponse {
    HttpResponse::Ok().json(Beacons {
        beacons: state.beacons.list().into_iter().map(told::beacon).collect(),
        refused: state.beacons.refusals().list().into_iter().map(told::refusal).collect(),
    })
}

/// Let go what is held
#[utoipa::path(tag = "sources", request_body = Option<Reason>, responses((status = 200, body = Released)))]
#[post("/api/v1/holds/{id}/release")]
pub(crate) async fn release_hold(
    state: web::Data<AppState>,
    principal: Principal,
    Path(path): Path<ById>,
    Maybe(body): Maybe<Reason>,
) -> Result<HttpResponse, Refused> {
    let reason = extract::reason(body.reason)?;
    for source in state.sources.iter() {
        match source.release(&path.id, &principal.address, &reason).await {
            Ok(endpoints) => {
                let released = Released { hold: path.id, released_endpoints: endpoints as u64 };
                return Ok(HttpResponse::Ok().json(released));
            }
            // Only one source has it, and not one that has been stopped.
            Err(OperatorError::NoSuchHold(_) | OperatorError::Stopped) => {}
            Err(error @ (OperatorError::Adopt(_) | OperatorError::NotKept(_))) => return Err(error.into()),
        }
    }
    Err(OperatorError::NoSuchHold(path.id).into())
}

/// Believe what was found
#[utoipa::path(
    tag = "sources",
    request_body = Option<Adopt>,
    params(("If-Match" = Option<String>, Header, description = "The incarnation, in quotes")),
    responses((status = 200, body = Adopted)),
)]
#[post("/api/v1/sources/{id}/adopt")]
pub(crate) async fn adopt_source(
    state: web::Data<AppState>,
    principal: Principal,
    Path(path): Path<ById>,
    seen: IncarnationTag,
    Maybe(body): Maybe<Adopt>,
) -> Result<HttpResponse, Refused> {
    let reason = extract::reason(body.reason)?;
    let source = state.sources.iter().find(|source| source.id() == path.id);
    let source = source.ok_or_else(|| Refused::no_such("source", &path.id, "/api/v1/sources"))?;
    let incarnation = body.incarnation.or(seen.0).ok_or_else(|| {
        Problem::new(Code::PreconditionRequired, "name what you saw, so that nothing else is adopted")
            .object(format!("source {:?}", path.id))
            .field("incarnation")
            .next("take the \"incarnation\" of /api/v1/quarantines, in the body or as If-Match")
    })?;
    let position = source.adopt(&incarnation, &principal.address, &reason).await?;
    let adopted = Adopted { source: path.id, position: told::position(position) };
    Ok(HttpResponse::Ok().json(adopted))
}
