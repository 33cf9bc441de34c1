//! The JSON Schema of documents. Open to all.

use actix_web::{HttpResponse, get};
use serde::Deserialize;
use tower_common::document::{Owner, json_schema};
use utoipa::{IntoParams, ToSchema};

use crate::api::{error::Refused, extract::Query};

/// Whose fields.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The platform's.
    Platform,
    /// Security's.
    Security,
    /// The service's own.
    Service,
}

/// Which schema.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct SchemaQuery {
    /// Only the fields that this owner may write; all if absent.
    #[param(inline)]
    owner: Option<Whose>,
}

/// The JSON Schema of service documents
#[utoipa::path(
    tag = "about",
    security(()),
    responses((status = 200, description = "JSON Schema 2020-12", body = serde_json::Value, content_type = "application/schema+json")),
)]
#[get("/api/v1/schema/service.json")]
pub(crate) async fn service_schema(Query(query): Query<SchemaQuery>) -> Result<HttpResponse, Refused> {
    let owner = query.owner.map(|owner| match owner {
        Whose::Platform => Owner::Platform,
        Whose::Security => Owner::Security,
        Whose::Service => Owner::Service,
    });
    let body = json_schema(owner).to_string();
    Ok(HttpResponse::Ok().content_type("application/schema+json").body(body))
}
