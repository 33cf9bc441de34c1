//! The event log, as this Tower sees it.

use actix_web::{HttpResponse, get, web};
use serde::Deserialize;
use tower_common::api::log::LogStatus;
use utoipa::IntoParams;

use crate::{
    api::{AppState, extract::Query},
    registry::LogState,
};

/// What is wanted of the log's status.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// Also the hash of the state, which takes a moment.
    #[serde(default)]
    digest: bool,
}

/// The event log, as this Tower sees it
#[utoipa::path(tag = "activity", params(LogQuery), responses((status = 200, body = LogStatus)))]
#[get("/api/v1/log")]
pub(crate) async fn log_status(state: web::Data<AppState>, Query(query): Query<LogQuery>) -> HttpResponse {
    let status = state.registry.status().borrow().clone();
    let (index, digest) = match query.digest {
        true => state.registry.digest(),
        false => (status.index, String::new()),
    };
    let trouble = match status.state {
        LogState::Live => status.problems.iter().map(|(service, why)| format!("{service}: {why}")).next(),
        LogState::Loading | LogState::Stale => Some(status.reason),
    };
    HttpResponse::Ok().json(LogStatus {
        kind: state.log_target.clone(),
        incarnation: status.incarnation,
        index,
        digest: query.digest.then_some(digest),
        towers: state.registry.members(),
        trouble,
    })
}
