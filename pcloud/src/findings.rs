//! What is wrong with a document, in a line.

use tower_common::api::problem::{Finding, Severity};

/// `web.yaml:12:5: error TW101: spec.callers…: what is wrong (owner security); what to do`.
pub(crate) fn line(finding: &Finding) -> String {
    let mut place = finding.file.clone().unwrap_or_default();
    for number in [finding.line, finding.column].into_iter().flatten() {
        place.push_str(&format!(":{number}"));
    }
    if !place.is_empty() {
        place.push_str(": ");
    }
    let field = finding.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
    let owner = finding.owner.as_ref().map(|owner| format!(" (owner: {owner})")).unwrap_or_default();
    let next = finding.next.as_ref().map(|next| format!("; {next}")).unwrap_or_default();
    format!("{place}{} {}: {field}{}{owner}{next}", word(finding.severity), finding.code, finding.message)
}

/// The severity, as people read it.
pub(crate) const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_what_whose_and_what_next() {
        let mut finding = Finding {
            code: "TW101".into(),
            severity: Severity::Error,
            file: Some("web.yaml".into()),
            line: Some(3),
            column: Some(5),
            field: Some("spec.inbound.tls".into()),
            owner: Some("security".into()),
            message: "not yours".into(),
            next: Some("ask security".into()),
        };
        assert_eq!(
            line(&finding),
            "web.yaml:3:5: error TW101: spec.inbound.tls: not yours (owner: security); ask security"
        );
        finding.line = None;
        finding.column = None;
        finding.file = None;
        finding.owner = None;
        finding.next = None;
        assert_eq!(line(&finding), "error TW101: spec.inbound.tls: not yours");
    }
}
