//! Sources: what they know, what they hold back, what they do not believe, and what an operator decides about
//! it. Also which Beacons are connected.

use actix_web::{HttpResponse, get, post, web};
use tower_common::api::{
    Code, Problem, Reason,
    problem::Applied,
    source::{Adopt, Adopted, Beacons, Holds, Quarantines, Released, Sources},
};

use super::{
    super::{
        ANSWER_TIMEOUT, AppState,
        caller::Writer,
        conditions::IncarnationTag,
        error::Refused,
        extract::{self, Maybe, Path},
        told::sources as told,
    },
    queries::ById,
};
use crate::{
    decisions::id_in_log,
    registry::{
        Command,
        commands::{self, ReleaseHold},
    },
    sources::{AdoptError, OperatorError},
};

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
    caller: Writer,
    Path(path): Path<ById>,
    Maybe(body): Maybe<Reason>,
) -> Result<HttpResponse, Refused> {
    let reason = extract::reason(body.reason)?;
    let mut holds = state.describe_sources().await.into_iter().flat_map(|report| report.holds);
    let Some(hold) = holds.find(|hold| hold.id == path.id) else {
        return Err(OperatorError::NoSuchHold(path.id).into());
    };
    let command = ReleaseHold { source: hold.source.clone(), hold: id_in_log(&hold) };
    let done = caller.submit(&state.registry, reason, Command::ReleaseHold(command)).await?;
    carried_out(&state, done.index).await?;
    let released = Released { hold: path.id, released_endpoints: hold.endpoint_count as u64 };
    Ok(HttpResponse::Ok().json(released))
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
    caller: Writer,
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
    let source_id = path.id;
    let quarantine = source.describe().await.quarantine;
    let Some(quarantine) = quarantine else {
        return Err(OperatorError::from(AdoptError::NotQuarantined(source_id)).into());
    };
    if quarantine.incarnation != incarnation {
        let another = AdoptError::Another { expected: incarnation, found: quarantine.incarnation };
        return Err(OperatorError::from(another).into());
    }
    let command =
        Command::Adopt(commands::Adopt { source: source_id.clone(), incarnation: incarnation.clone() });
    let done = caller.submit(&state.registry, reason, command).await?;
    carried_out(&state, done.index).await?;
    let report = source.describe().await;
    match (report.quarantine, report.position) {
        (None, Some(position)) => {
            let adopted = Adopted { source: source_id, position: told::position(position) };
            Ok(HttpResponse::Ok().json(adopted))
        }
        _ => {
            let detail = "it is in the log, and was not carried out here: something else was found meanwhile";
            let mut problem = Problem::new(Code::Conflict, detail).next("look at /api/v1/quarantines again");
            problem.applied = Applied::Yes;
            Err(problem.into())
        }
    }
}

/// Waits until this Tower has done what an entry says about its sources.
async fn carried_out(state: &AppState, index: u64) -> Result<(), Refused> {
    let mut carried_out = state.carried_out.clone();
    tokio::time::timeout(ANSWER_TIMEOUT, carried_out.wait_for(index)).await.map_err(|_| {
        let mut problem = Problem::new(Code::Unknown, "it is in the log, and not yet carried out here");
        problem.applied = Applied::Yes;
        problem.into()
    })
}
