//! Versions: uploaded, looked at, approved, retired.

use actix_web::{HttpRequest, HttpResponse, get, http::header, post, web};
use serde::Deserialize;
use tower_common::{
    api::{
        Changed, Reason, YAML,
        plan::Diff,
        version::{Uploaded, Version, VersionDetail, Versions},
    },
    document::{self, Owner},
};
use utoipa::IntoParams;

use super::{
    queries::{DocumentQuery, OfService, PageQuery},
    services::logged,
};
use crate::{
    api::{
        AppState,
        caller::{self, Caller},
        changes,
        conditions::etag,
        documents::{self, wants_document},
        error::Refused,
        extract::{self, Document, Maybe, Path, Query},
        planning, told,
    },
    registry::{
        Command,
        commands::{Approve, Retire, Upload},
    },
};

/// A version in the path.
#[derive(Debug, Deserialize, IntoParams)]
pub struct OfVersion {
    /// The name of the service.
    service: String,
    /// The number of the version.
    number: u64,
}

/// Two versions.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct DiffQuery {
    /// The number of the version before.
    from: u64,
    /// The number of the version after.
    to: u64,
}

/// Upload a document as a version, which changes nothing until it is activated
#[utoipa::path(
    tag = "versions",
    request_body(content((String = "application/yaml"), (serde_json::Value = "application/json"))),
    params(("If-Match" = Option<String>, Header, description = "The ETag of the service")),
    responses((status = 201, body = Uploaded), (status = 200, body = Uploaded, description = "It was there")),
)]
#[post("/api/v1/services/{service}/versions")]
pub(crate) async fn upload_version(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<OfService>,
    Query(query): Query<DocumentQuery>,
    Document(text): Document,
) -> Result<HttpResponse, Refused> {
    let file = query.file()?;
    let reason = extract::reason(query.reason)?;
    let parsed = document::parse(&file, &text, Owner::Service).ok();
    let command = Command::Upload(Upload { service: path.service.clone(), file, text });
    let done = caller.submit(&state.registry, reason, command).await?;
    let folded = state.registry.state();
    let service = logged(&folded, &path.service)?;
    let number = done.version.unwrap_or_default();
    let record = service.version(number).ok_or_else(|| Refused::silent("event log"))?;
    let version = told::versions::version(&path.service, service, record);
    let existing = done.events.is_empty();
    // It has been taken, so what is left to say are remarks.
    let looked = match &parsed {
        Some(parsed) => planning::look(&state, &folded, &path.service, parsed).await?,
        None => planning::Looked::default(),
    };
    let uploaded = Uploaded {
        version: version.version,
        number,
        hash: version.hash,
        existing,
        findings: looked.findings.iter().map(told::findings::finding).collect(),
        index: version.index,
    };
    let mut response = if existing { HttpResponse::Ok() } else { HttpResponse::Created() };
    let location = format!("/api/v1/services/{}/versions/{number}", path.service);
    Ok(response.insert_header((header::LOCATION, location)).insert_header(etag(service.etag)).json(uploaded))
}

/// Versions of a service, the newest first
#[utoipa::path(tag = "versions", responses((status = 200, body = Versions)))]
#[get("/api/v1/services/{service}/versions")]
pub(crate) async fn list_versions(
    state: web::Data<AppState>,
    Path(path): Path<OfService>,
    Query(query): Query<PageQuery>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    let service = logged(&folded, &path.service)?;
    let records = service.versions.iter().rev();
    let versions = records.map(|record| told::versions::version(&path.service, service, record));
    let (versions, next) =
        query.page().of(versions, |version: &Version| std::cmp::Reverse(version.number))?;
    Ok(HttpResponse::Ok().json(Versions { versions, next }))
}

/// A version, or, as application/yaml, its document
#[utoipa::path(
    tag = "versions",
    responses((status = 200, content(
        (VersionDetail = "application/json"),
        (String = "application/yaml"),
    ))),
)]
#[get("/api/v1/services/{service}/versions/{number}")]
pub(crate) async fn get_version(
    state: web::Data<AppState>,
    request: HttpRequest,
    Path(path): Path<OfVersion>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    let service = logged(&folded, &path.service)?;
    let record = path.find(service)?;
    let body = record.uploaded.clone().unwrap_or_default().body;
    let text = documents::text(&state.registry, &body).await?;
    if wants_document(&request)? {
        return Ok(HttpResponse::Ok().content_type(YAML).body(text));
    }
    let version = told::versions::version(&path.service, service, record);
    let parsed = documents::parse(&version.version, &text, Owner::Service)?;
    let document = serde_json::to_value(&parsed.document).unwrap_or_default();
    Ok(HttpResponse::Ok().insert_header(etag(service.etag)).json(VersionDetail { version, document }))
}

/// How two versions differ
#[utoipa::path(tag = "versions", responses((status = 200, body = Diff)))]
#[get("/api/v1/services/{service}/diff")]
pub(crate) async fn diff_versions(
    state: web::Data<AppState>,
    Path(path): Path<OfService>,
    Query(query): Query<DiffQuery>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    let service = logged(&folded, &path.service)?;
    let mut documents = Vec::new();
    for number in [query.from, query.to] {
        let record = OfVersion { service: path.service.clone(), number }.find(service)?;
        let body = record.uploaded.clone().unwrap_or_default().body;
        let name = format!("{}@{number}", path.service);
        documents.push(documents::read(&state.registry, &name, &body, Owner::Service).await?);
    }
    let changes = changes::of_documents(documents.first(), documents.last());
    let diff = Diff { service: path.service, from: query.from, to: query.to, changes };
    Ok(HttpResponse::Ok().json(diff))
}

/// Say that a version may be used
#[utoipa::path(
    tag = "versions",
    request_body = Option<Reason>,
    params(("If-Match" = Option<String>, Header, description = "The ETag of the service")),
    responses((status = 200, body = Changed)),
)]
#[post("/api/v1/services/{service}/versions/{number}/approve")]
pub(crate) async fn approve_version(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<OfVersion>,
    Maybe(body): Maybe<Reason>,
) -> Result<HttpResponse, Refused> {
    let command = Command::Approve(Approve { service: path.service.clone(), version: path.number });
    change(&state, &caller, &path.service, body, command).await
}

/// Say that a version is not to be used again
#[utoipa::path(
    tag = "versions",
    request_body = Option<Reason>,
    params(("If-Match" = Option<String>, Header, description = "The ETag of the service")),
    responses((status = 200, body = Changed)),
)]
#[post("/api/v1/services/{service}/versions/{number}/retire")]
pub(crate) async fn retire_version(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<OfVersion>,
    Maybe(body): Maybe<Reason>,
) -> Result<HttpResponse, Refused> {
    let command = Command::Retire(Retire { service: path.service.clone(), version: path.number });
    change(&state, &caller, &path.service, body, command).await
}

/// Carries out a command about a service that answers with no more than where it is in the log.
pub(super) async fn change(
    state: &AppState,
    caller: &Caller,
    service: &str,
    body: Reason,
    command: Command,
) -> Result<HttpResponse, Refused> {
    let done = caller.submit(&state.registry, extract::reason(body.reason)?, command).await?;
    let index = state.registry.state().service(service).map_or(0, |service| service.etag);
    Ok(HttpResponse::Ok().insert_header(etag(index)).json(caller::changed(&done, index)))
}

impl OfVersion {
    fn find<'a>(
        &self,
        service: &'a crate::registry::Service,
    ) -> Result<&'a tower_proto::v1::VersionRecord, Refused> {
        service.version(self.number).ok_or_else(|| {
            let list = format!("/api/v1/services/{}/versions", self.service);
            Refused::no_such("version", &format!("{}@{}", self.service, self.number), &list)
        })
    }
}
