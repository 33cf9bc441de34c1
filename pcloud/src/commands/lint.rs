//! `lint`: checks documents without Tower.

use serde_json::json;
use tower_common::document::{self, Finding, Owner, Severity, World};

use super::document as files;
use crate::{
    cli,
    failure::{Exit, Failure},
    output::{self, Cell, Output, Table, Tone},
};

pub(super) fn run(lint: &cli::Lint, output: &Output) -> Result<(), Failure> {
    let mut found = Vec::new();
    for path in &lint.files {
        let file = files::read(path)?;
        found.extend(check(&file, lint.owner));
    }
    if found.is_empty() && output.is_table() {
        output::note("nothing to find fault with");
        return Ok(());
    }
    output.print(
        &json!({ "findings": found }),
        |_| table(&found),
        || found.iter().map(|finding| finding.code.to_owned()).collect(),
    )?;
    let threshold = match lint.failure_threshold {
        cli::Threshold::Error => Severity::Error,
        cli::Threshold::Warning => Severity::Warning,
        cli::Threshold::Info => Severity::Info,
    };
    let failing = found.iter().filter(|finding| finding.severity >= threshold).count();
    match failing {
        0 => Ok(()),
        number => Err(Failure::new(Exit::Invalid, format!("{number} findings at or above the threshold"))),
    }
}

fn check(file: &files::File, owner: cli::Owner) -> Vec<Finding> {
    let owner = match owner {
        cli::Owner::Service => Owner::Service,
        cli::Owner::Platform => Owner::Platform,
        cli::Owner::Security => Owner::Security,
    };
    let parsed = match document::parse(&file.name, &file.text, owner) {
        Ok(parsed) => parsed,
        Err(findings) => return findings,
    };
    document::check_part(&parsed, &World::unknown())
}

fn table(found: &[Finding]) -> Table {
    let mut table = Table::new(&["SEVERITY", "CODE", "PLACE", "FIELD", "OWNER", "WHAT", "NEXT"]);
    for finding in found {
        let severity = match finding.severity {
            Severity::Error => Cell::toned("error", Tone::Bad),
            Severity::Warning => Cell::toned("warning", Tone::Warn),
            Severity::Info => "info".into(),
        };
        table.row([
            severity,
            Cell::from(finding.code),
            format!("{}:{}:{}", finding.file, finding.line, finding.column).into(),
            finding.field.as_str().into(),
            finding.owner.map_or("-".to_owned(), |owner| owner.to_string()).into(),
            finding.message.as_str().into(),
            finding.next_step.as_str().into(),
        ]);
    }
    table
}
