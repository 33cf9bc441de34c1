//! Tokens, and who one is.

use actix_web::{HttpResponse, delete, get, post, web};
use tower_common::{
    api::{
        Changed, Code, Problem,
        access::{Issued, TokenRequest, Tokens, WhoAmI},
    },
    clock,
};
use tower_proto::v1::{TokenIssued, TokenRecord};

use super::queries::{ById, PageQuery, ReasonQuery};
use crate::{
    api::{
        AppState,
        caller::{self, Caller},
        error::Refused,
        extract::{self, Json, Path, Query},
        told,
    },
    auth::{identity::Principal, token::Secret},
    registry::{
        Command,
        commands::{IssueToken, RevokeToken},
        permission::{self, Action, CERTIFICATE},
    },
};

/// Who one is, and what one may do
#[utoipa::path(tag = "access", responses((status = 200, body = WhoAmI)))]
#[get("/api/v1/whoami")]
pub(crate) async fn whoami(principal: Principal) -> HttpResponse {
    HttpResponse::Ok().json(WhoAmI {
        name: principal.name,
        credential: principal.credential,
        roles: principal.roles,
        services: principal.services,
        expires_unix_ms: principal.expires_ms,
        address: principal.address,
        tower: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Tokens that are not revoked
#[utoipa::path(tag = "access", responses((status = 200, body = Tokens)))]
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
    let of_certificate = || format!("{CERTIFICATE}{}", body.certificate.clone().unwrap_or_default());
    let expires_ms =
        body.ttl_seconds.map(|ttl| clock::unix_millis().saturating_add(ttl.saturating_mul(1000)));
    let issued = TokenIssued {
        id: secret.as_ref().map_or_else(of_certificate, |secret| secret.id().to_owned()),
        name: body.name,
        hash: secret.as_ref().map(|secret| secret.hash().to_vec()).unwrap_or_default().into(),
        roles: body.roles.iter().map(|role| role.word().to_owned()).collect(),
        services: body.services,
        expires_ms: expires_ms.unwrap_or(0),
    };
    let id = issued.id.clone();
    let done = caller.submit(&state.registry, reason, Command::IssueToken(IssueToken { issued })).await?;
    if done.repeated && secret.is_some() {
        let detail = "a token was issued with this key, and is told only once";
        let next = "revoke it, and issue another with another key; GET /api/v1/tokens has its id";
        return Err(Problem::new(Code::Conflict, detail).next(next).into());
    }
    let folded = state.registry.state();
    let record = folded.mesh().tokens.get(&id).ok_or_else(|| Refused::silent("event log"))?;
    let issued = told::tokens::token(record);
    Ok(HttpResponse::Created().json(Issued { issued, token: secret.map(|secret| secret.reveal()) }))
}

/// Revoke a token
#[utoipa::path(tag = "access", responses((status = 200, body = Changed)))]
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
