//! What a document means, and whether Envoy and its owners would agree to it.
//!
//! What is refused here is at least what Envoy refuses: the rules are those of its API's validation, and of
//! what was tried. What is only suspicious is a warning.

mod hosts;
mod names;
mod paths;
mod patterns;
mod policies;
mod routes;

use std::collections::{BTreeMap, BTreeSet};

pub use self::policies::MAX_RING;

use super::{
    Document, Effective, Finding, Owner, Parsed, Places, Severity,
    rules::{self, Rule},
};

/// What is known of other services. Without it nothing is said about them.
#[derive(Debug, Clone, Default)]
pub struct World {
    services: Option<BTreeMap<String, ServiceFacts>>,
}

/// What is known of a service.
#[derive(Debug, Clone, Default)]
pub struct ServiceFacts {
    /// The names of the subsets in its active document.
    pub subsets: BTreeSet<String>,
    /// It is called by bytes, and not by requests.
    pub tcp: bool,
    /// The labels of each of its endpoints.
    pub endpoints: Vec<BTreeMap<String, String>>,
}

impl World {
    /// Nothing is known, as without Tower.
    pub const fn unknown() -> Self {
        Self { services: None }
    }

    /// These are all services that there are.
    pub const fn of(services: BTreeMap<String, ServiceFacts>) -> Self {
        Self { services: Some(services) }
    }
}

/// Collects findings.
struct Check<'a> {
    world: &'a World,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn find(&mut self, rule: Rule, field: &str, message: impl Into<String>, next: impl Into<String>) {
        self.findings.push(Finding::new(rule, field, message, next));
    }

    /// A finding if it is not so.
    fn ensure(&mut self, holds: bool, rule: Rule, field: &str, message: &str, next: &str) {
        if !holds {
            self.find(rule, field, message, next);
        }
    }

    /// A number within bounds, if it is given.
    fn within<T: PartialOrd + Copy + std::fmt::Display>(
        &mut self,
        value: Option<T>,
        low: T,
        high: T,
        rule: Rule,
        field: &str,
    ) {
        if let Some(value) = value.filter(|value| *value < low || *value > high) {
            let message = format!("{value} is not between {low} and {high}");
            self.find(rule, field, message, format!("write a value from {low} to {high}"));
        }
    }

    /// Names that are there once.
    fn unique<'b>(&mut self, names: impl Iterator<Item = (String, &'b str)>) {
        let mut seen = BTreeSet::new();
        for (field, name) in names {
            if !seen.insert(name) {
                let message = format!("{name:?} is there twice");
                self.find(rules::DUPLICATE, &field, message, "give each its own name");
            }
        }
    }
}

/// Checks a service's whole document. Errors come first.
pub fn check(effective: &Effective, world: &World) -> Vec<Finding> {
    let mut findings = run(&effective.document, world);
    for finding in &mut findings {
        if let Some(origin) = effective.provenance.get(&finding.field) {
            finding.owner = Some(origin.owner);
        }
    }
    findings
}

/// Checks one part by itself, as far as that goes: what needs another part is not missed.
pub fn check_part(parsed: &Parsed, world: &World) -> Vec<Finding> {
    let mut findings = parsed.findings.clone();
    findings.extend(run(&parsed.document, world).into_iter().filter(|finding| {
        // What another owner has to say may be in another part.
        !matches!(finding.code, "TW502" | "TW504")
            && (parsed.document.metadata.name.is_empty()
                || finding.code != "TW101"
                || finding.field != "metadata.name")
            || finding.owner == Some(Owner::Service)
    }));
    locate(&mut findings, &parsed.places);
    findings
}

/// Gives findings the places of their fields in a text, for those that have none yet.
pub fn locate(findings: &mut [Finding], places: &Places) {
    for finding in findings.iter_mut().filter(|finding| finding.line == 0) {
        let Some(place) = places.find(&finding.field) else { continue };
        finding.file.clone_from(&places.file);
        (finding.line, finding.column) = (place.line, place.column);
    }
}

fn run(document: &Document, world: &World) -> Vec<Finding> {
    let mut check = Check { world, findings: Vec::new() };
    check.names(document);
    check.callers(document);
    check.inbound(document);
    check.outbound(document);
    let mut findings = check.findings;
    findings.sort_by(|one, other| other.severity.cmp(&one.severity).then(one.field.cmp(&other.field)));
    findings
}

/// Whether any finding keeps the document from being taken.
pub fn refuses(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

#[cfg(test)]
mod tests;
