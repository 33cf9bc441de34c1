//! The parts of documents that belong to the platform and to security: for all services, and for one.

use actix_web::{HttpRequest, HttpResponse, delete, get, put, web};
use tower_common::{
    api::{
        Changed, YAML,
        part::{Part, PartEdited, PartOwner},
    },
    document::{self, World},
};
use tower_proto::v1::{self, part_edited::Owner};

use super::queries::{DocumentQuery, OfService, ReasonQuery};
use crate::{
    api::{
        AppState,
        caller::{self, Caller},
        conditions::etag,
        documents::{self, wants_document},
        error::Refused,
        extract::{self, Document, Path, Query},
        told::{author, findings, some},
    },
    registry::{Command, commands::EditPart},
};

macro_rules! parts {
    ($owner:ident, all: $all:literal, $get:ident, $put:ident, $delete:ident,
     one: $one:literal, $get_one:ident, $put_one:ident, $delete_one:ident) => {
        /// The part for all services, or, as application/yaml, its document
        #[utoipa::path(
            tag = "parts",
            responses((status = 200, content((Part = "application/json"), (String = "application/yaml")))),
        )]
        #[get($all)]
        pub(crate) async fn $get(
            state: web::Data<AppState>,
            request: HttpRequest,
        ) -> Result<HttpResponse, Refused> {
            read(&state, &request, PartOwner::$owner, None).await
        }

        /// Replace the part for all services, which changes nothing until releases with it are activated
        #[utoipa::path(
            tag = "parts",
            request_body(content((String = "application/yaml"), (serde_json::Value = "application/json"))),
            params(("If-Match" = Option<String>, Header, description = "The ETag of the part")),
            responses((status = 200, body = PartEdited)),
        )]
        #[put($all)]
        pub(crate) async fn $put(
            state: web::Data<AppState>,
            caller: Caller,
            Query(query): Query<DocumentQuery>,
            Document(text): Document,
        ) -> Result<HttpResponse, Refused> {
            replace(&state, &caller, PartOwner::$owner, None, query, text).await
        }

        /// Take the part for all services away
        #[utoipa::path(
            tag = "parts",
            params(("If-Match" = Option<String>, Header, description = "The ETag of the part")),
            responses((status = 200, body = Changed)),
        )]
        #[delete($all)]
        pub(crate) async fn $delete(
            state: web::Data<AppState>,
            caller: Caller,
            Query(query): Query<ReasonQuery>,
        ) -> Result<HttpResponse, Refused> {
            remove(&state, &caller, PartOwner::$owner, None, query).await
        }

        /// The part for a service, or, as application/yaml, its document
        #[utoipa::path(
            tag = "parts",
            responses((status = 200, content((Part = "application/json"), (String = "application/yaml")))),
        )]
        #[get($one)]
        pub(crate) async fn $get_one(
            state: web::Data<AppState>,
            request: HttpRequest,
            Path(path): Path<OfService>,
        ) -> Result<HttpResponse, Refused> {
            read(&state, &request, PartOwner::$owner, Some(path.service)).await
        }

        /// Replace the part for a service, which changes nothing until releases with it are activated
        #[utoipa::path(
            tag = "parts",
            request_body(content((String = "application/yaml"), (serde_json::Value = "application/json"))),
            params(("If-Match" = Option<String>, Header, description = "The ETag of the part")),
            responses((status = 200, body = PartEdited)),
        )]
        #[put($one)]
        pub(crate) async fn $put_one(
            state: web::Data<AppState>,
            caller: Caller,
            Path(path): Path<OfService>,
            Query(query): Query<DocumentQuery>,
            Document(text): Document,
        ) -> Result<HttpResponse, Refused> {
            replace(&state, &caller, PartOwner::$owner, Some(path.service), query, text).await
        }

        /// Take the part for a service away
        #[utoipa::path(
            tag = "parts",
            params(("If-Match" = Option<String>, Header, description = "The ETag of the part")),
            responses((status = 200, body = Changed)),
        )]
        #[delete($one)]
        pub(crate) async fn $delete_one(
            state: web::Data<AppState>,
            caller: Caller,
            Path(path): Path<OfService>,
            Query(query): Query<ReasonQuery>,
        ) -> Result<HttpResponse, Refused> {
            remove(&state, &caller, PartOwner::$owner, Some(path.service), query).await
        }
    };
}

parts!(
    Platform,
    all: "/api/v1/platform", get_platform, put_platform, delete_platform,
    one: "/api/v1/platform/{service}", get_platform_of, put_platform_of, delete_platform_of
);
parts!(
    Security,
    all: "/api/v1/security", get_security, put_security, delete_security,
    one: "/api/v1/security/{service}", get_security_of, put_security_of, delete_security_of
);

async fn read(
    state: &AppState,
    request: &HttpRequest,
    owner: PartOwner,
    service: Option<String>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    let record = folded.part(whose(owner), service.as_deref());
    let last = record
        .and_then(|record| Some((record.etag, record.revisions.len() as u64, record.revisions.last()?)));
    let there = last.filter(|(_, _, revision)| !revision.body.is_empty());
    let Some((index, revision, v1::RevisionRecord { body, stamp })) = there else {
        let of = service.map_or_else(|| "all services".to_owned(), |service| format!("service {service}"));
        let list = "/api/v1/activity, or PUT one here";
        return Err(Refused::no_such("part", &format!("{} for {of}", owner.word()), list));
    };
    let text = documents::text(&state.registry, body).await?;
    if wants_document(request)? {
        return Ok(HttpResponse::Ok().insert_header(etag(index)).content_type(YAML).body(text));
    }
    let parsed = documents::parse(owner.word(), &text, documents::owner(whose(owner)))?;
    let stamp = stamp.clone().unwrap_or_default();
    let part = Part {
        owner,
        service,
        revision,
        document: serde_json::to_value(&parsed.document).unwrap_or_default(),
        author: author(&stamp),
        reason: some(&stamp.reason),
        edited_unix_ms: stamp.time_ms,
        index,
    };
    Ok(HttpResponse::Ok().insert_header(etag(index)).json(part))
}

async fn replace(
    state: &AppState,
    caller: &Caller,
    owner: PartOwner,
    service: Option<String>,
    query: DocumentQuery,
    text: String,
) -> Result<HttpResponse, Refused> {
    let file = query.file()?;
    let found = match document::parse(&file, &text, documents::owner(whose(owner))) {
        Ok(parsed) => document::check_part(&parsed, &World::unknown()),
        // The registry refuses it, and says why.
        Err(_) => Vec::new(),
    };
    let command = EditPart { owner: whose(owner), service: service.clone(), file, text: Some(text) };
    let reason = extract::reason(query.reason)?;
    caller.submit(&state.registry, reason, Command::EditPart(command)).await?;
    let (index, revision) = etag_of(state, owner, service.as_deref());
    Ok(HttpResponse::Ok().insert_header(etag(index)).json(PartEdited {
        revision,
        findings: found.iter().map(findings::finding).collect(),
        index,
    }))
}

async fn remove(
    state: &AppState,
    caller: &Caller,
    owner: PartOwner,
    service: Option<String>,
    query: ReasonQuery,
) -> Result<HttpResponse, Refused> {
    let command = EditPart { owner: whose(owner), service: service.clone(), file: String::new(), text: None };
    let reason = extract::reason(query.reason)?;
    let done = caller.submit(&state.registry, reason, Command::EditPart(command)).await?;
    let (index, _) = etag_of(state, owner, service.as_deref());
    Ok(HttpResponse::Ok().insert_header(etag(index)).json(caller::changed(&done, index)))
}

fn etag_of(state: &AppState, owner: PartOwner, service: Option<&str>) -> (u64, u64) {
    let folded = state.registry.state();
    folded.part(whose(owner), service).map_or((0, 0), |part| (part.etag, part.revisions.len() as u64))
}

fn whose(owner: PartOwner) -> Owner {
    match owner {
        PartOwner::Platform => Owner::Platform,
        PartOwner::Security => Owner::Security,
    }
}
