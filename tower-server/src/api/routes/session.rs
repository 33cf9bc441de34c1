//! Sessions of browsers: signing in with a token, and signing out.

use actix_web::{HttpRequest, HttpResponse, delete, post, web};
use tower_common::{
    api::{
        Code, Problem,
        access::{SignIn, WhoAmI},
    },
    clock,
};

use crate::{
    api::{error::Refused, extract::Json, told},
    auth::{
        gate::Credentials,
        identity::{Presented, Principal},
        session::{self, Session},
        token::Secret,
    },
};

/// Sign in: a token for a cookie, which scripts cannot read
///
/// The session ends after 12 hours, or with its token. Its requests that change something carry the `csrf` of the
/// answer as `X-Tower-CSRF`.
#[utoipa::path(tag = "access", security(()), responses((
    status = 200, body = WhoAmI, headers(("Set-Cookie" = String, description = "The session")),
)))]
#[post("/api/v1/session")]
pub(crate) async fn sign_in(
    credentials: web::Data<Credentials>,
    request: HttpRequest,
    Json(body): Json<SignIn>,
) -> Result<HttpResponse, Refused> {
    let refuse = |detail: &str| -> Refused {
        let next =
            "ask an admin for one; the first one of a new log is in admin.token in a Tower's data folder";
        Problem::new(Code::Unauthenticated, detail).field("token").next(next).into()
    };
    let secret = Secret::parse(body.token.trim()).ok_or_else(|| refuse("that is not a token of Tower"))?;
    let mut presented = Presented::by(&request);
    (presented.bearer, presented.session) = (Some(Ok(secret.clone())), None);
    let bearer = credentials.identify(&presented).map_err(|refused| match refused.problem().code {
        Code::Unauthenticated => refuse(&refused.problem().detail),
        _ => refused,
    })?;
    let now_ms = clock::unix_millis();
    let session = Session::open(&secret, now_ms, bearer.expires_ms);
    (presented.bearer, presented.session) = (None, Some(Ok(session.clone())));
    // A token of an older Tower has no key for sessions.
    let principal = credentials
        .identify(&presented)
        .map_err(|_| refuse("this token was issued before there were sessions: have another one issued"))?;
    let cookie = session.cookie(now_ms, request.connection_info().scheme() == "https");
    Ok(HttpResponse::Ok().cookie(cookie).json(told::tokens::whoami(principal)))
}

/// Sign out
#[utoipa::path(tag = "access", responses((status = 204, description = "The browser forgets the session")))]
#[delete("/api/v1/session")]
pub(crate) async fn sign_out(_: Principal) -> HttpResponse {
    HttpResponse::NoContent().cookie(session::no_cookie()).finish()
}
