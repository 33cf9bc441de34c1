//! What the parts of a document amount to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Document, Owner};

/// A service's document with all its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Effective {
    /// What holds.
    pub document: Document,
    /// Where each field comes from, by its path; lists and what is merged as a whole have one origin.
    pub provenance: BTreeMap<String, Origin>,
}

/// Where a field comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Who wrote it.
    pub owner: Owner,
    /// In which part.
    pub part: Part,
}

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The platform's, for all services.
    Platform,
    /// The platform's, for this one.
    PlatformForService,
    /// Security's, for all services.
    Security,
    /// Security's, for this one.
    SecurityForService,
    /// The service's own.
    Service,
}
