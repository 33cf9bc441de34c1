//! What is wrong, or remarkable, about a document.

use std::fmt;

use serde::Serialize;

use super::{Owner, owners::owner_of, places::Place, rules::Rule};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Probably not what is meant.
    Warning,
    /// Refused.
    Error,
}

/// One thing about one field of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule, such as `TW301`; its meaning never changes.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The file or part in which the field is; empty if that is not known.
    pub file: String,
    /// From 1; 0 if it is not known.
    pub line: u32,
    /// From 1, in characters; 0 if it is not known.
    pub column: u32,
    /// The field's path, such as `spec.callers.routes[0].timeouts.request`.
    pub field: String,
    /// Who writes that field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// What is wrong, without a full stop.
    pub message: String,
    /// What to do about it, without a full stop.
    pub next_step: String,
}

impl Finding {
    /// A finding at a field, without a place.
    pub(super) fn new(
        rule: Rule,
        field: &str,
        message: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        Self {
            code: rule.code,
            severity: rule.severity,
            file: String::new(),
            line: 0,
            column: 0,
            field: field.to_owned(),
            owner: owner_of(field),
            message: message.into(),
            next_step: next_step.into(),
        }
    }

    pub(super) fn at(mut self, place: Place) -> Self {
        (self.line, self.column) = (place.line, place.column);
        self
    }
}

impl Severity {
    /// In a word, as it is serialized.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Finding {
    /// In one line: `FILE:LINE:COLUMN: error[CODE]: FIELD: MESSAGE (owner OWNER); NEXT STEP`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if self.line > 0 {
                write!(f, "{}:{}:", self.line, self.column)?;
            }
            f.write_str(" ")?;
        }
        write!(f, "{}[{}]: ", self.severity, self.code)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        if let Some(owner) = self.owner {
            write!(f, " (owner {owner})")?;
        }
        if !self.next_step.is_empty() {
            write!(f, "; {}", self.next_step)?;
        }
        Ok(())
    }
}
