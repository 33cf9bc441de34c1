//! The event log, as this Tower sees it.

use actix_web::{HttpResponse, get, web};
use tower_common::api::log::LogStatus;

use crate::{api::AppState, event_log::State};

/// The event log, as this Tower sees it
#[utoipa::path(tag = "activity", responses((status = 200, body = LogStatus)))]
#[get("/api/v1/log")]
pub(crate) async fn log_status(state: web::Data<AppState>) -> HttpResponse {
    let log = state.ledger.log();
    let trouble = match &*log.state().borrow() {
        State::Live => None,
        State::Unreachable { why, .. } | State::Refused { why } => Some(why.clone()),
    };
    HttpResponse::Ok().json(LogStatus {
        kind: state.log_target.clone(),
        incarnation: log.incarnation().to_owned(),
        index: state.ledger.state().index(),
        towers: log.members().borrow().clone(),
        trouble,
    })
}
