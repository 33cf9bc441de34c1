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
    api::{Code, Problem},
    clock,
};

use super::identity::{Known, Presented, Principal};
use crate::{
    api::error::Refused,
    registry::{LogState, Registry},
};

/// What is open to all: probes, a first look, and how to use the rest.
const OPEN: [&str; 6] =
    ["/", "/healthz", "/readyz", "/metrics", "/api/v1/openapi.json", "/api/v1/schema/service.json"];

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
    if !OPEN.contains(&request.path()) {
        let credentials = request.app_data::<web::Data<Credentials>>();
        let credentials = credentials.ok_or_else(|| Refused::silent("list of credentials"))?;
        let principal = credentials.identify(&Presented::by(request.request()))?;
        if request.method() != Method::GET {
            check_origin(request.request())?;
        }
        request.extensions_mut().insert(principal);
    }
    next.call(request).await
}

/// A page in somebody's browser may write here without asking, if the browser has a client certificate for
/// it. Browsers say where a page is from.
fn check_origin(request: &HttpRequest) -> Result<(), Refused> {
    let value = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    match value(header::ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, authority)| authority) != value(header::HOST) => {
            Err(Refused::new(Code::Forbidden, format!("pages of {origin} change nothing here")))
        }
        _ => Ok(()),
    }
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
        for origin in ["http://evil.example", "http://localhost:8080", "null"] {
            assert_eq!(refused(origin), Some(Code::Forbidden), "{origin}");
        }
    }
}
