//! From text to a part of a document: everything that does not fit is found at once, with its place.

mod names;
mod shape;
mod tree;
mod upgrade;

use super::{Document, Finding, Owner, Places, Severity, model::API_VERSION, rules, schema};

/// The largest text of a document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 256 << 10;

/// A part of a document, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// What it says.
    pub document: Document,
    /// Where it says it.
    pub places: Places,
    /// What is remarkable about the text; no errors.
    pub findings: Vec<Finding>,
}

/// Reads a part of a document, in YAML or JSON, as it is written by this owner. A field of another owner may be
/// written as `{ref: OWNER}`, for people: it says nothing.
///
/// # Errors
/// All that keeps it from being one: no YAML, too large, fields that do not exist or belong to others, values
/// that do not fit. What it means is not looked at; see [`check`](super::check()).
pub fn parse(file: &str, text: &str, owner: Owner) -> Result<Parsed, Vec<Finding>> {
    read(file, text, owner).map_err(|mut findings| {
        findings.sort_by_key(|finding| (finding.line, finding.column));
        for finding in &mut findings {
            file.clone_into(&mut finding.file);
        }
        findings
    })
}

fn read(file: &str, text: &str, owner: Owner) -> Result<Parsed, Vec<Finding>> {
    if text.len() > MAX_DOCUMENT_BYTES {
        let message = format!("{} bytes are more than {MAX_DOCUMENT_BYTES}", text.len());
        return Err(vec![Finding::new(rules::TOO_LARGE, "", message, "make the document smaller")]);
    }
    let mut tree = tree::read(text).map_err(|error| {
        vec![Finding::new(rules::SYNTAX, "", error.problem, "correct the YAML").at(error.place)]
    })?;
    let mut findings = Vec::new();
    upgrade::upgrade(&mut tree, &mut findings);
    let mut shape = shape::Shape { schema: schema::whole(), owner, places: Places::new(file), findings };
    let value = shape.root(&tree);
    let shape::Shape { places, mut findings, .. } = shape;
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Err(findings);
    }
    let document: Document = serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = places.find(&path).unwrap_or_default();
        let problem = error.into_inner().to_string();
        vec![Finding::new(rules::BAD_SCALAR, &path, problem, "write another value").at(place)]
    })?;
    if owner == Owner::Service && document.metadata.name.is_empty() {
        let place = places.find("metadata.name").unwrap_or_default();
        let message = "a service's document names the service".to_owned();
        let finding = Finding::new(rules::MISSING_FIELD, "metadata.name", message, "add metadata.name");
        return Err(vec![finding.at(place)]);
    }
    for finding in &mut findings {
        file.clone_into(&mut finding.file);
    }
    Ok(Parsed { document, places, findings })
}

/// Formats that are read, the current one first.
pub fn api_versions() -> impl Iterator<Item = &'static str> {
    std::iter::once(API_VERSION).chain(upgrade::OLDER)
}

#[cfg(test)]
mod tests;
