//! What every request passes before its handler. Without a credential it gets to what is open to all, and to
//! nothing else, whether there is something or not.

use std::{fmt, sync::Arc};

use actix_web::{
    Error, FromRequest, HttpMessage, HttpRequest,
    body::MessageBody,
    dev::{self, ServiceRequest, ServiceResponse},
    http::{Method, header},
    middleware::Next,
    web,
};
use futures::future;
use tower_common::{
    api::{Code, Problem, access::CSRF},
    clock,
};

use super::identity::{Known, Presented, Principal, usable};
use crate::{
    api::{error::Refused, ui},
    registry::{LogState, Registry},
};

/// What is open to all: probes, a first look, and how to use the rest.
const OPEN: [&str; 6] =
    ["/", "/healthz", "/readyz", "/metrics", "/api/v1/openapi.json", "/api/v1/schema/service.json"];

/// Where one signs in, which is open to all, too.
const SESSION: &str = "/api/v1/session";

/// Who is known. Cheap to clone.
#[derive(Clone)]
pub struct Credentials(Arc<Find>);

/// Finds a credential in the folded log by its id.
type Find = dyn Fn(&str) -> Result<Option<Known>, Refused> + Send + Sync;

impl Credentials {
    /// Those that this finds by their ids.
    pub fn new(find: impl Fn(&str) -> Result<Option<Known>, Refused> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// Those of the log.
    pub fn of(registry: Registry) -> Self {
        Self::new(move |id| {
            let status = registry.status();
            if status.borrow().state == LogState::Loading {
                let detail = format!("the event log has not been read yet: {}", status.borrow().reason);
                return Err(Refused::new(Code::Unavailable, detail));
            }
            Ok(registry.read(|state| {
                let record = state.mesh().tokens.get(id)?;
                Some(Known { issued: record.issued.clone()?, revoked: record.revoked.is_some() })
            }))
        })
    }

    /// Who presents this, now.
    ///
    /// # Errors
    /// If it is nobody, or somebody without any role.
    pub fn identify(&self, presented: &Presented) -> Result<Principal, Refused> {
        let principal = presented.identify(|id| self.0(id), clock::unix_millis())?;
        if principal.roles.is_empty() {
            let detail = format!("the credential {} has no role that this Tower knows", principal.credential);
            return Err(Problem::new(Code::Forbidden, detail).next("ask an admin").into());
        }
        Ok(principal)
    }

    /// Whether who was let in would be let in now.
    pub fn still(&self, principal: &Principal) -> bool {
        let now_ms = clock::unix_millis();
        let known = self.0(&principal.credential).ok().flatten();
        known.is_some_and(|known| usable(known, now_ms).is_ok())
            && principal.expires_ms.is_none_or(|expires| expires > now_ms)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// Lets a request pass to its handler, or not.
///
/// # Errors
/// If it does not pass, or the handler fails.
pub async fn pass(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    if request.method() != Method::GET {
        check_origin(request.request())?;
    }
    if !is_open(&request) {
        let credentials = request.app_data::<web::Data<Credentials>>();
        let credentials = credentials.ok_or_else(|| Refused::silent("list of credentials"))?;
        let principal = credentials.identify(&Presented::by(request.request()))?;
        if request.method() != Method::GET {
            check_csrf(request.request(), &principal)?;
        }
        request.extensions_mut().insert(principal);
    }
    next.call(request).await
}

fn is_open(request: &ServiceRequest) -> bool {
    let (method, path) = (request.method(), request.path());
    OPEN.contains(&path)
        || (path == SESSION && method == Method::POST)
        || ui::takes(method, path, request.headers())
}

/// A page in somebody's browser may write here without asking, if the browser has a client certificate for
/// it. Browsers say where a page is from.
fn check_origin(request: &HttpRequest) -> Result<(), Refused> {
    let value = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let refuse =
        |from: &str| Err(Refused::new(Code::Forbidden, format!("pages of {from} change nothing here")));
    match value(header::ORIGIN.as_str()) {
        Some(origin)
            if origin.split_once("://").map(|(_, authority)| authority) != value(header::HOST.as_str()) =>
        {
            refuse(origin)
        }
        _ => match value("Sec-Fetch-Site") {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) => refuse("other sites"),
        },
    }
}

/// A browser presents a session whoever made it send the request; only the page of the session knows this value.
fn check_csrf(request: &HttpRequest, principal: &Principal) -> Result<(), Refused> {
    let Some(session) = &principal.session else { return Ok(()) };
    let carried = request.headers().get(CSRF).and_then(|value| value.to_str().ok());
    if carried.is_some_and(|carried| session.has_csrf(carried)) {
        return Ok(());
    }
    let detail = format!("in a session a request that changes something carries {CSRF}");
    Err(Problem::new(Code::Forbidden, detail).field(CSRF).next("GET /api/v1/whoami has its value").into())
}

impl FromRequest for Principal {
    type Error = Refused;
    type Future = future::Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let principal = request.extensions().get::<Self>().cloned();
        future::ready(principal.ok_or_else(|| Refused::new(Code::Unauthenticated, "there is no credential")))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn pages_from_elsewhere_change_nothing() {
        let refused = |origin: &'static str| {
            let request = TestRequest::post()
                .insert_header((header::HOST, "localhost:5871"))
                .insert_header((header::ORIGIN, origin));
            check_origin(&request.to_http_request()).err().map(|refused| refused.problem().code)
        };
        assert_eq!(refused("http://localhost:5871"), None);
        let from = |site: &'static str| {
            let request = TestRequest::post().insert_header(("Sec-Fetch-Site", site)).to_http_request();
            check_origin(&request).err().map(|refused| refused.problem().code)
        };
        assert_eq!((from("same-origin"), from("none")), (None, None));
        assert_eq!((from("cross-site"), from("same-site")), (Some(Code::Forbidden), Some(Code::Forbidden)));
        for origin in ["http://evil.example", "http://localhost:8080", "null"] {
            assert_eq!(refused(origin), Some(Code::Forbidden), "{origin}");
        }
    }
}
