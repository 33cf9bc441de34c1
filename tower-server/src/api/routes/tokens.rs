//! Tokens, and who one is.

use actix_web::{HttpResponse, delete, get, post, web};
use tower_common::{
    api::{
        Changed, Code, Problem,
        access::{Issued, TokenRequest, Tokens, WhoAmI},
    },
    clock,
};
use tower_proto::v1::{TokenIssued, TokenRecord, event::Event};

use super::queries::{ById, PageQuery, ReasonQuery};
use crate::{
    api::{
        AppState,
        caller::{self, Caller},
        error::Refused,
        extract::{self, Json, Path, Query, bounded},
        told,
    },
    auth::{
        identity::{Principal, of_certificate},
        token::Secret,
    },
    registry::{
        Command,
        commands::{IssueToken, RevokeToken},
        permission::{self, Action},
    },
};

/// The longest name of a client certificate.
const MAX_CERTIFICATE_CHARS: usize = 200;

/// The longest name of a token.
const MAX_NAME_CHARS: usize = 100;

/// What an owner owns at most.
const MAX_SERVICES: usize = 1000;

/// A token lives for ten years at most, or for ever.
const MAX_TTL_SECONDS: u64 = 315_360_000;

/// Who one is, and what one may do
#[utoipa::path(tag = "access", responses((status = 200, body = WhoAmI)))]
#[get("/api/v1/whoami")]
pub(crate) async fn whoami(principal: Principal) -> HttpResponse {
    HttpResponse::Ok().json(told::tokens::whoami(principal))
}

/// Tokens that are not revoked
#[utoipa::path(tag = "access", responses((status = 200, body = Tokens)), params(PageQuery))]
#[get("/api/v1/tokens")]
pub(crate) async fn list_tokens(
    state: web::Data<AppState>,
    principal: Principal,
    Query(query): Query<PageQuery>,
) -> Result<HttpResponse, Refused> {
    let folded = state.registry.state();
    permission::may(&folded, &principal.credential, Action::ManageTokens, None, clock::unix_millis())
        .map_err(|refusal| told::findings::refusal(&refusal))?;
    let tokens = folded.mesh().tokens.iter().filter(|(_, record)| record.revoked.is_none());
    let (tokens, next) = query.page().of(tokens, |(id, _)| (*id).clone())?;
    let tokens =
        tokens.into_iter().map(|(_, record): (_, &TokenRecord)| told::tokens::token(record)).collect();
    Ok(HttpResponse::Ok().json(Tokens { tokens, next }))
}

/// Issue a token, or say what the holder of a client certificate may do
#[utoipa::path(tag = "access", responses((status = 201, body = Issued)))]
#[post("/api/v1/tokens")]
pub(crate) async fn issue_token(
    state: web::Data<AppState>,
    caller: Caller,
    Json(body): Json<TokenRequest>,
) -> Result<HttpResponse, Refused> {
    let reason = extract::reason(body.reason)?;
    let secret = match body.certificate {
        Some(_) => None,
        None => Some(Secret::generate().map_err(|error| Refused::new(Code::Internal, error.to_string()))?),
    };
    if let Some(name) = &body.certificate
        && !(1..=MAX_CERTIFICATE_CHARS).contains(&name.chars().count())
    {
        let detail = format!("a name in a certificate has 1 to {MAX_CERTIFICATE_CHARS} characters");
        return Err(Refused::malformed("certificate", detail));
    }
    if !(1..=MAX_NAME_CHARS).contains(&body.name.chars().count()) {
        return Err(Refused::malformed("name", format!("a name has 1 to {MAX_NAME_CHARS} characters")));
    }
    if body.services.len() > MAX_SERVICES {
        return Err(Refused::malformed("services", format!("there are at most {MAX_SERVICES}")));
    }
    if body.roles.is_empty() {
        return Err(Refused::malformed("roles", "name at least one"));
    }
    bounded("ttl_seconds", body.ttl_seconds, 1..=MAX_TTL_SECONDS)?;
    let name_of = || of_certificate(body.certificate.as_deref().unwrap_or_default());
    let expires_ms =
        body.ttl_seconds.map(|ttl| clock::unix_millis().saturating_add(ttl.saturating_mul(1000)));
    let issued = TokenIssued {
        id: secret.as_ref().map_or_else(name_of, |secret| secret.id().to_owned()),
        name: body.name,
        hash: secret.as_ref().map(|secret| secret.hash().to_vec()).unwrap_or_default().into(),
        roles: body.roles.iter().map(|role| role.word().to_owned()).collect(),
        services: body.services,
        expires_ms: expires_ms.unwrap_or(0),
        session_key: secret.as_ref().map(|secret| secret.session_key().to_vec()).unwrap_or_default().into(),
    };
    let mut id = issued.id.clone();
    let done = caller.submit(&state.registry, reason, Command::IssueToken(IssueToken { issued })).await?;
    if done.repeated && secret.is_some() {
        let detail = "a token was issued with this key, and is told only once";
        let next = "revoke it, and issue another with another key; GET /api/v1/tokens has its id";
        return Err(Problem::new(Code::Conflict, detail).next(next).into());
    }
    // Of a request that comes again it is what was issued then.
    for event in done.events.iter().filter_map(|event| event.event.as_ref()) {
        if let Event::TokenIssued(issued) = event {
            id.clone_from(&issued.id);
        }
    }
    let folded = state.registry.state();
    let record = folded.mesh().tokens.get(&id).ok_or_else(|| Refused::silent("event log"))?;
    let issued = told::tokens::token(record);
    Ok(HttpResponse::Created().json(Issued { issued, token: secret.map(|secret| secret.reveal()) }))
}

/// Revoke a token
#[utoipa::path(tag = "access", responses((status = 200, body = Changed)), params(ById, ReasonQuery))]
#[delete("/api/v1/tokens/{id}")]
pub(crate) async fn revoke_token(
    state: web::Data<AppState>,
    caller: Caller,
    Path(path): Path<ById>,
    Query(query): Query<ReasonQuery>,
) -> Result<HttpResponse, Refused> {
    let reason = extract::reason(query.reason)?;
    let command = Command::RevokeToken(RevokeToken { id: path.id });
    let done = caller.submit(&state.registry, reason, command).await?;
    Ok(HttpResponse::Ok().json(caller::changed(&done, done.index)))
}
