//! What an activation would do.

use actix_web::{HttpResponse, post, web};
use tower_common::api::plan::{Plan, PlanRequest};

use super::{
    activations::audience,
    queries::{OfService, check_file},
};
use crate::api::{
    AppState,
    conditions::etag,
    error::Refused,
    extract::{Json, Path},
    planning::{Subject, plan},
};

/// What giving a version, or a document, to an audience would do; nothing is done
#[utoipa::path(tag = "versions", responses((status = 200, body = Plan)))]
#[post("/api/v1/services/{service}/plan")]
pub(crate) async fn plan_activation(
    state: web::Data<AppState>,
    Path(path): Path<OfService>,
    Json(body): Json<PlanRequest>,
) -> Result<HttpResponse, Refused> {
    let subject = match (body.version, body.document) {
        (Some(number), None) => Subject::Version(number),
        (None, Some(text)) => Subject::Document { text, file: check_file(body.file.as_deref())? },
        _ => return Err(Refused::malformed("version", "name a version, or send a document, and not both")),
    };
    let audience = audience("audience", body.audience.as_deref())?;
    let plan = plan(&state, &path.service, subject, &audience).await?;
    Ok(HttpResponse::Ok().insert_header(etag(plan.index)).json(plan))
}
