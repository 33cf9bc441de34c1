//! What sources hold back, and what an operator decides about it.

use std::fmt;

use actix_web::{
    HttpRequest, HttpResponse, Responder, ResponseError, get,
    http::{StatusCode, header},
    post, web,
};
use serde::Deserialize;
use serde_json::json;

use super::{AppState, source_reports};
use crate::sources::{AdoptError, OperatorError};

/// Larger bodies are refused. All that is in one is a reason.
const MAX_BODY_BYTES: usize = 16 << 10;

/// Longer reasons are cut: they go to the log.
const MAX_REASON_CHARS: usize = 500;

/// Adds the routes.
pub(super) fn configure(config: &mut web::ServiceConfig) {
    config.service(holds).service(release).service(quarantines).service(adopt);
}

/// The body of a decision. There need be none.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Decision {
    reason: String,
    incarnation: Option<String>,
}

/// Why a decision is not carried out, or not for good.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    error: String,
}

#[get("/api/v1/holds")]
async fn holds(state: web::Data<AppState>) -> impl Responder {
    let reports = source_reports(&state).await;
    let holds: Vec<_> = reports.into_iter().flat_map(|report| report.holds).collect();
    HttpResponse::Ok().json(json!({ "holds": holds }))
}

#[get("/api/v1/quarantines")]
async fn quarantines(state: web::Data<AppState>) -> impl Responder {
    let reports = source_reports(&state).await;
    let quarantines: Vec<_> = reports.into_iter().filter_map(|report| report.quarantine).collect();
    HttpResponse::Ok().json(json!({ "quarantines": quarantines }))
}

#[post("/api/v1/holds/{id}/release")]
async fn release(
    request: HttpRequest,
    state: web::Data<AppState>,
    id: web::Path<String>,
    body: web::Bytes,
) -> Result<HttpResponse, Refusal> {
    let decision = Decision::of(&request, &body)?;
    if decision.incarnation.is_some() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "field \"incarnation\": a hold has none"));
    }
    for source in state.sources.iter() {
        match source.release(&id, &caller(&request), &decision.reason).await {
            Ok(endpoints) => {
                return Ok(HttpResponse::Ok().json(json!({ "hold": *id, "released_endpoints": endpoints })));
            }
            // Only one source has it, and not one that has been stopped.
            Err(OperatorError::NoSuchHold(_) | OperatorError::Stopped) => {}
            Err(error @ (OperatorError::Adopt(_) | OperatorError::NotKept(_))) => return Err(error.into()),
        }
    }
    Err(OperatorError::NoSuchHold(id.into_inner()).into())
}

#[post("/api/v1/sources/{id}/adopt")]
async fn adopt(
    request: HttpRequest,
    state: web::Data<AppState>,
    id: web::Path<String>,
    body: web::Bytes,
) -> Result<HttpResponse, Refusal> {
    let decision = Decision::of(&request, &body)?;
    let source = state.sources.iter().find(|source| source.id() == *id).ok_or_else(|| {
        Refusal::new(StatusCode::NOT_FOUND, format!("there is no source {:?}; see /api/v1/sources", *id))
    })?;
    let incarnation = decision.incarnation.or_else(|| if_match(&request)).ok_or_else(|| {
        let hint = "name what you saw, so that nothing else is adopted: the \"incarnation\" of \
                    /api/v1/quarantines, in the body or as If-Match";
        Refusal::new(StatusCode::PRECONDITION_REQUIRED, hint)
    })?;
    let position = source.adopt(&incarnation, &caller(&request), &decision.reason).await?;
    Ok(HttpResponse::Ok().json(json!({ "source": source.id(), "position": position })))
}

impl Decision {
    fn of(request: &HttpRequest, body: &[u8]) -> Result<Self, Refusal> {
        // A page in the operator's browser may post here without asking. Browsers say where it is from.
        let value = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(origin) = value(header::ORIGIN)
            && origin.split_once("://").map(|(_, authority)| authority) != value(header::HOST)
        {
            let error = format!("pages of {origin} decide nothing here");
            return Err(Refusal::new(StatusCode::FORBIDDEN, error));
        }
        if body.len() > MAX_BODY_BYTES {
            let error = format!("the body has {} bytes, more than {MAX_BODY_BYTES}", body.len());
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error));
        }
        let mut decision = if body.is_empty() {
            Self::default()
        } else {
            serde_json::from_slice(body).map_err(|error| {
                Refusal::new(StatusCode::BAD_REQUEST, format!("the body cannot be used: {error}"))
            })?
        };
        decision.reason = decision.reason.chars().take(MAX_REASON_CHARS).collect();
        Ok(decision)
    }
}

/// An entity tag, without its quotes.
fn if_match(request: &HttpRequest) -> Option<String> {
    let value = request.headers().get(header::IF_MATCH)?.to_str().ok()?.trim();
    Some(value.trim_matches('"').to_owned())
}

fn caller(request: &HttpRequest) -> String {
    request.peer_addr().map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}

impl Refusal {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }
}

impl From<OperatorError> for Refusal {
    fn from(error: OperatorError) -> Self {
        let status = match error {
            OperatorError::NoSuchHold(_) => StatusCode::NOT_FOUND,
            OperatorError::Adopt(AdoptError::NotQuarantined(_)) => StatusCode::CONFLICT,
            OperatorError::Adopt(AdoptError::Another { .. }) => StatusCode::PRECONDITION_FAILED,
            OperatorError::NotKept(_) => StatusCode::INTERNAL_SERVER_ERROR,
            OperatorError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status).json(json!({ "error": self.error }))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn refused(request: TestRequest, body: &str) -> Option<u16> {
        let decided = Decision::of(&request.to_http_request(), body.as_bytes());
        decided.err().map(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn decisions_need_no_body_and_refuse_what_they_do_not_know() {
        for (body, status) in [
            ("", None),
            ("{}", None),
            (r#"{"reason": "r", "incarnation": "i"}"#, None),
            (r#"{"carnation": "i"}"#, Some(400)),
            (r#"{"reason": 7}"#, Some(400)),
            ("reason=r", Some(400)),
            (&" ".repeat(MAX_BODY_BYTES + 1), Some(413)),
        ] {
            assert_eq!(refused(TestRequest::post(), body), status, "{body:.40}");
        }
        let body = format!("{{\"reason\": {:?}}}", "x".repeat(MAX_REASON_CHARS + 1));
        let decision = Decision::of(&TestRequest::post().to_http_request(), body.as_bytes()).unwrap();
        assert_eq!(decision.reason.len(), MAX_REASON_CHARS);
    }

    #[test]
    fn pages_from_elsewhere_decide_nothing() {
        let from = |origin: &'static str| {
            TestRequest::post()
                .insert_header((header::HOST, "localhost:5871"))
                .insert_header((header::ORIGIN, origin))
        };
        assert_eq!(refused(from("http://localhost:5871"), ""), None);
        for origin in ["http://evil.example", "http://localhost:8080", "null"] {
            assert_eq!(refused(from(origin), ""), Some(403), "{origin}");
        }
    }

    #[test]
    fn an_entity_tag_names_an_incarnation() {
        let request = TestRequest::post().insert_header((header::IF_MATCH, "\"c-1a2\"")).to_http_request();
        assert_eq!(if_match(&request).as_deref(), Some("c-1a2"));
    }
}
