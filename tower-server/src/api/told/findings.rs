//! Findings about documents, and why commands are refused.

use tower_common::{
    api::{
        Code, Problem,
        problem::{self, Since},
    },
    document,
};
use tower_proto::v1;

use super::{author, some};
use crate::registry::{Refusal, RefusalKind, Service};

/// Entries that a refusal tells of.
const MAX_SINCE: usize = 20;

/// A finding.
pub fn finding(finding: &document::Finding) -> problem::Finding {
    problem::Finding {
        code: finding.code.to_owned(),
        severity: match finding.severity {
            document::Severity::Info => problem::Severity::Info,
            document::Severity::Warning => problem::Severity::Warning,
            document::Severity::Error => problem::Severity::Error,
        },
        file: some(&finding.file),
        line: Some(u64::from(finding.line)).filter(|line| *line != 0),
        column: Some(u64::from(finding.column)).filter(|column| *column != 0),
        field: some(&finding.field),
        owner: finding.owner.map(|owner| owner.to_string()),
        message: finding.message.clone(),
        next: some(&finding.next_step),
    }
}

/// Why a command is not carried out.
pub fn refusal(refusal: &Refusal) -> Problem {
    let code = match refusal.kind {
        RefusalKind::Invalid => Code::Invalid,
        RefusalKind::Stale => Code::Stale,
        RefusalKind::Forbidden => Code::Forbidden,
        RefusalKind::NotFound => Code::NotFound,
        RefusalKind::Blocked => Code::Blocked,
    };
    let mut problem = Problem::new(code, refusal.message.clone());
    problem.kind = format!("urn:tower:problem:{}", refusal.code);
    problem.object = some(&refusal.object);
    problem.field = refusal.field.clone();
    problem.owner = refusal.owner.clone();
    problem.next = some(&refusal.next);
    problem.findings = refusal.findings.iter().map(finding).collect();
    problem
}

/// What has happened to a service since this entry, the newest first.
pub fn since(service: &Service, index: u64) -> Vec<Since> {
    let told = |change: &v1::ChangeRecord| {
        let stamp = change.stamp.as_ref()?;
        Some(Since {
            index: stamp.index,
            time_unix_ms: stamp.time_ms,
            author: author(stamp),
            command: change.command.clone(),
            reason: stamp.reason.clone(),
        })
    };
    let newer = service.changes.iter().rev().filter_map(told).filter(|since| since.index > index);
    newer.take(MAX_SINCE).collect()
}
