//! Refusals as responses.

use std::fmt;

use actix_web::{
    HttpResponse, HttpResponseBuilder, ResponseError,
    http::{StatusCode, header},
};
use tower_common::api::{
    Code, Problem,
    problem::{Applied, MEDIA_TYPE},
};

use super::headers;
use crate::{
    auth::session,
    sources::{AdoptError, OperatorError},
};

/// What a handler answers if it does not do what it was asked for.
#[derive(Debug, Clone)]
pub struct Refused {
    problem: Box<Problem>,
    allow: Option<String>,
    /// The session that was presented is none, or is over.
    ends_session: bool,
}

impl Refused {
    /// With this code, and these words.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// There is no such thing. `list` is where to look for those that there are.
    pub fn no_such(what: &str, name: &str, list: &str) -> Self {
        Problem::new(Code::NotFound, format!("there is no {what} {name:?}"))
            .next(format!("see {list}"))
            .into()
    }

    /// The request is malformed in this field.
    pub fn malformed(field: &str, detail: impl Into<String>) -> Self {
        Problem::new(Code::Malformed, detail).field(field).into()
    }

    /// Another part of Tower does not answer.
    pub fn silent(part: &str) -> Self {
        Self::new(Code::Unavailable, format!("the {part} does not answer"))
    }

    /// The path takes these methods.
    pub(super) fn wrong_method(detail: String, allow: String) -> Self {
        Self { allow: Some(allow), ..Self::new(Code::MethodNotAllowed, detail) }
    }

    /// The browser need not present its session again.
    #[must_use]
    pub fn ending_session(mut self) -> Self {
        self.ends_session = true;
        self
    }

    /// What is told.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// About this, unless it says already what it is about.
    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Self {
        self.problem.object.get_or_insert_with(|| object.into());
        self
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self { problem: Box::new(problem), allow: None, ends_session: false }
    }
}

impl From<OperatorError> for Refused {
    fn from(error: OperatorError) -> Self {
        let code = match error {
            OperatorError::NoSuchHold(_) => Code::NotFound,
            OperatorError::Adopt(AdoptError::NotQuarantined(_)) => Code::Conflict,
            OperatorError::Adopt(AdoptError::Another { .. }) => Code::Stale,
            OperatorError::NotKept(_) => Code::Internal,
            OperatorError::Stopped => Code::Unavailable,
        };
        let mut problem = Problem::new(code, error.to_string());
        if matches!(error, OperatorError::NotKept(_)) {
            problem.applied = Applied::Yes;
        }
        problem.into()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Refused {}

impl ResponseError for Refused {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponseBuilder::new(self.status_code());
        response.content_type(MEDIA_TYPE);
        if self.problem.code == Code::Unauthenticated {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer realm=\"tower\""));
        }
        if let Some(allow) = &self.allow {
            response.insert_header((header::ALLOW, allow.as_str()));
        }
        if self.ends_session {
            response.cookie(session::no_cookie());
        }
        // What can be serialized once, here as there, can be serialized always.
        let mut response = response.body(serde_json::to_vec(&self.problem).unwrap_or_default());
        headers::harden(response.headers_mut());
        response
    }
}
