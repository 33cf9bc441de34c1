//! The event log, as this Tower sees it.

use actix_web::{HttpResponse, get, web};
use tower_common::api::log::LogStatus;

use crate::{api::AppState, registry::LogState};

/// The event log, as this Tower sees it
#[utoipa::path(tag = "activity", responses((status = 200, body = LogStatus)))]
#[get("/api/v1/log")]
pub(crate) async fn log_status(state: web::Data<AppState>) -> HttpResponse {
    let status = state.registry.status().borrow().clone();
    let trouble = match status.state {
        LogState::Live => status.problems.iter().map(|(service, why)| format!("{service}: {why}")).next(),
        LogState::Loading | LogState::Stale => Some(status.reason),
    };
    HttpResponse::Ok().json(LogStatus {
        kind: state.log_target.clone(),
        incarnation: status.incarnation,
        index: status.index,
        towers: state.registry.members(),
        trouble,
    })
}
