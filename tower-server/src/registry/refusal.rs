//! Why a command is not carried out.

use std::{fmt, ops::Deref};

use serde::Serialize;
use tower_common::document::Finding;

/// Which kind of refusal: what HTTP status, and what exit code, it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The command, or the document in it, is wrong in itself.
    Invalid,
    /// What it was made for has changed since.
    Stale,
    /// Whoever asks may not do that.
    Forbidden,
    /// What it names is not there.
    NotFound,
    /// The state of things forbids it now.
    Blocked,
}

/// Why a command is not carried out: nothing of it has happened. It is what it points to, and as small as a
/// pointer, because it is part of most results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Refusal(Box<RefusalDetails>);

/// What a [`Refusal`] says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusalDetails {
    /// Which kind.
    pub kind: RefusalKind,
    /// A stable word for programs, such as `release-in-use`.
    pub code: &'static str,
    /// What it is about, such as `service web` or `version web@3`.
    pub object: String,
    /// The field of the command that is wrong.
    pub field: Option<String>,
    /// Who owns what was to be changed.
    pub owner: Option<String>,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to do next; empty if there is nothing to say.
    pub next: String,
    /// What is wrong with a document.
    pub findings: Vec<Finding>,
}

impl Refusal {
    /// A refusal of this kind.
    pub fn new(
        kind: RefusalKind,
        code: &'static str,
        object: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(RefusalDetails {
            kind,
            code,
            object: object.into(),
            field: None,
            owner: None,
            message: message.into(),
            next: String::new(),
            findings: Vec::new(),
        }))
    }

    /// Adds what is wrong with the document.
    #[must_use]
    pub fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.0.findings = findings;
        self
    }

    /// Names the field that is wrong.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// Names the owner of what was to be changed.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.0.owner = Some(owner.into());
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.0.next = next.into();
        self
    }
}

impl Deref for Refusal {
    type Target = RefusalDetails;

    fn deref(&self) -> &RefusalDetails {
        &self.0
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.object)?;
        if let Some(field) = &self.field {
            write!(f, ", field {field:?}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(owner) = &self.owner {
            write!(f, " (owner: {owner})")?;
        }
        if !self.next.is_empty() {
            write!(f, "; {}", self.next)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_object_field_owner_and_next_step() {
        let refusal =
            Refusal::new(RefusalKind::Forbidden, "not-yours", "service web", "it belongs to others")
                .field("weights")
                .owner("team-web")
                .next("ask team-web");
        let text = refusal.to_string();
        assert_eq!(
            text,
            "service web, field \"weights\": it belongs to others (owner: team-web); ask team-web"
        );
    }
}
