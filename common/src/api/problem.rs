//! What every refusal looks like: RFC 9457, with fields that say what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The media type of a [`Problem`].
pub const MEDIA_TYPE: &str = "application/problem+json";

/// A refusal, or a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// `urn:tower:problem:` and a word for the very case, such as `release-in-use`, or the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status.
    #[cfg_attr(feature = "openapi", schema(minimum = 400, maximum = 599))]
    pub status: u16,
    /// For programs.
    pub code: Code,
    /// What happened, naming the object.
    pub detail: String,
    /// What it is about: `service "web"`, `POST /api/v1/tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The field of the request that is at fault, or of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Who owns what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether what was asked for has come true all the same.
    pub applied: Applied,
    /// What is wrong with a document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Of a request that was made from an old state: the entries of the log about the object since then,
    /// the newest first, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub since: Vec<Since>,
}

/// Something that happened since a state was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Since {
    /// The index of the entry in the log.
    pub index: u64,
    /// When.
    pub time_unix_ms: u64,
    /// Who.
    pub author: String,
    /// The command in a word.
    pub command: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Whether a request that failed has changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    /// It has not.
    No,
    /// It may have: ask again with the same `Idempotency-Key`.
    Unknown,
    /// It has.
    Yes,
}

/// A fault of a document, or a remark about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// Such as `TW101`.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// The file, as it was named at the upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// Such as `spec.callers.routes[0].timeouts.request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Who owns the field: `platform`, `security` or `service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// It is taken, and probably not what is meant.
    Warning,
    /// It is not taken.
    Error,
}

/// What kind of refusal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request cannot be read: a body, a parameter or a header is malformed.
    Malformed,
    /// Nobody, or somebody whose token is unknown, expired or revoked.
    Unauthenticated,
    /// Somebody who may not.
    Forbidden,
    /// No such thing.
    NotFound,
    /// There is such a path, and it does not take this method.
    MethodNotAllowed,
    /// No answer of the media types that are wanted.
    NotAcceptable,
    /// It does not fit the state of things.
    Conflict,
    /// The state has changed since it was read: `If-Match` names an older one.
    Stale,
    /// The same `Idempotency-Key` was used for something else.
    KeyReused,
    /// The body is larger than allowed.
    TooLarge,
    /// The body is of a media type that is not taken here.
    UnsupportedMediaType,
    /// It can be read, and is not valid: see the findings, or the field.
    Invalid,
    /// The request has to say which state it is about.
    PreconditionRequired,
    /// Something has to happen first, such as an approval.
    Blocked,
    /// Tower failed.
    Internal,
    /// Tower cannot do it now, and has not done it.
    Unavailable,
    /// Tower does not know whether it was done.
    Unknown,
}

impl Code {
    /// Each of them.
    pub const ALL: [Self; 17] = [
        Self::Malformed,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::Conflict,
        Self::Stale,
        Self::KeyReused,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::Invalid,
        Self::PreconditionRequired,
        Self::Blocked,
        Self::Internal,
        Self::Unavailable,
        Self::Unknown,
    ];

    /// The HTTP status, the exit code of a command that fails with it, and its title. The only such table.
    pub const fn row(self) -> (u16, u8, &'static str) {
        match self {
            Self::Malformed => (400, 2, "the request is malformed"),
            Self::Unauthenticated => (401, 4, "credentials are needed"),
            Self::Forbidden => (403, 4, "not allowed"),
            Self::NotFound => (404, 1, "there is no such thing"),
            Self::MethodNotAllowed => (405, 2, "the method is not taken here"),
            Self::NotAcceptable => (406, 2, "no answer of such a media type"),
            Self::Conflict => (409, 1, "the state does not allow it"),
            Self::Stale => (412, 6, "the state has changed since it was read"),
            Self::KeyReused => (409, 2, "the idempotency key was used for something else"),
            Self::TooLarge => (413, 5, "the body is too large"),
            Self::UnsupportedMediaType => (415, 2, "the media type is not taken here"),
            Self::Invalid => (422, 5, "not valid"),
            Self::PreconditionRequired => (428, 2, "the request has to name the state that it is about"),
            Self::Blocked => (409, 9, "something has to happen first"),
            Self::Internal => (500, 1, "Tower failed"),
            Self::Unavailable => (503, 1, "not possible now"),
            Self::Unknown => (504, 8, "the outcome is not known"),
        }
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        self.row().0
    }

    /// The exit code of a command that fails with it.
    pub const fn exit_code(self) -> u8 {
        self.row().1
    }

    /// In words.
    pub const fn title(self) -> &'static str {
        self.row().2
    }

    /// Whether the same request may succeed later, without anybody doing something about it.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::Unknown)
    }

    /// As in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::NotAcceptable => "not_acceptable",
            Self::Conflict => "conflict",
            Self::Stale => "stale",
            Self::KeyReused => "key_reused",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Invalid => "invalid",
            Self::PreconditionRequired => "precondition_required",
            Self::Blocked => "blocked",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
        }
    }
}

impl Problem {
    /// A problem with these words and nothing else.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:tower:problem:{}", code.word()),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            object: None,
            field: None,
            owner: None,
            next: None,
            applied: if code == Code::Unknown { Applied::Unknown } else { Applied::No },
            findings: Vec::new(),
            since: Vec::new(),
        }
    }

    /// About this.
    #[must_use]
    pub fn object(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }

    /// The fault of this field.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Of what belongs to somebody.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// With what to do next.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

impl Severity {
    /// As in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// In one line, as the finding that it is made of ([`crate::document::Finding`]).
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            for number in [self.line, self.column].into_iter().flatten() {
                write!(f, "{number}:")?;
            }
            f.write_str(" ")?;
        }
        write!(f, "{}[{}]: ", self.severity.word(), self.code)?;
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(owner) = &self.owner {
            write!(f, " (owner {owner})")?;
        }
        match &self.next {
            Some(next) => write!(f, "; {next}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        f.write_str(&self.detail)?;
        if let Some(field) = &self.field {
            write!(f, " (field {field})")?;
        }
        if let Some(owner) = &self.owner {
            write!(f, " (owner: {owner})")?;
        }
        self.next.iter().try_for_each(|next| write!(f, "; {next}"))
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_same_words_everywhere() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.word());
            assert!((400..600).contains(&code.status()), "{code:?}");
            assert!([1, 2, 4, 5, 6, 7, 8, 9].contains(&code.exit_code()), "{code:?}");
        }
    }

    #[test]
    fn a_problem_reads_as_one_line_and_survives_json() {
        let problem = Problem::new(Code::Forbidden, "it belongs to security")
            .object("service \"web\"")
            .field("spec.inbound.tls")
            .owner("security")
            .next("ask them");
        assert_eq!(
            problem.to_string(),
            "service \"web\": it belongs to security (field spec.inbound.tls) (owner: security); ask them"
        );
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!((&json["type"], &json["status"]), (&"urn:tower:problem:forbidden".into(), &403.into()));
        assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
    }
}
