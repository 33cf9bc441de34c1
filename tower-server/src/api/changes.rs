//! What is otherwise than before: documents and assignments, in terms of their fields.

use std::collections::BTreeSet;

use tower_common::{
    api::{plan::Change, service::Rule},
    document::{self, Document},
};

/// The differences of two documents, by field. One that is not there says nothing.
pub fn of_documents(before: Option<&Document>, after: Option<&Document>) -> Vec<Change> {
    let none = Document::default();
    let changes = document::diff(before.unwrap_or(&none), after.unwrap_or(&none)).into_iter();
    let told = |change: document::Change| Change {
        owner: document::owner_of(&change.path).map(|owner| owner.to_string()),
        field: change.path,
        before: change.before,
        after: change.after,
        author: None,
    };
    changes.map(told).collect()
}

/// The differences of two assignments, by audience.
pub fn of_assignments(before: &[Rule], after: &[Rule]) -> Vec<Change> {
    let audiences = |rules: &[Rule]| rules.iter().map(|rule| rule.audience.clone()).collect::<BTreeSet<_>>();
    let has = |rules: &[Rule], audience: &str| {
        let rule = rules.iter().find(|rule| rule.audience == audience)?;
        Some(serde_json::to_value(&rule.release).unwrap_or_default())
    };
    let mut changes = Vec::new();
    for audience in audiences(before).union(&audiences(after)) {
        let (before, after) = (has(before, audience), has(after, audience));
        if before != after {
            changes.push(Change {
                field: format!("assignment[{audience}]"),
                before,
                after,
                owner: None,
                author: None,
            });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use tower_common::{api::service::Release, document::Owner};

    use super::*;

    #[test]
    fn documents_differ_by_field_and_each_belongs_to_somebody() {
        let head = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {name: web}\n";
        let text = format!("{head}spec: {{callers: {{connectTimeout: 3s}}}}\n");
        let parsed = |text: &str| document::parse("f", text, Owner::Platform).unwrap().document;
        let (before, after) = (parsed(head), parsed(&text));
        let changes = of_documents(Some(&before), Some(&after));
        let told: Vec<_> = changes.iter().map(|change| (change.field.as_str(), &change.before)).collect();
        assert!(
            !told.is_empty() && told.iter().all(|(field, _)| field.starts_with("spec.callers")),
            "{told:?}"
        );
        assert!(of_documents(Some(&after), Some(&after)).is_empty());
    }

    #[test]
    fn assignments_differ_by_audience() {
        let rule = |audience: &str, release: Option<&str>| Rule {
            audience: audience.to_owned(),
            release: release.map(|release| Release { release: release.to_owned(), version: 1 }),
            activation: None,
        };
        let changes =
            of_assignments(&[rule("everyone", None)], &[rule("zone=a", Some("r1")), rule("everyone", None)]);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].field, "assignment[zone=a]");
        assert_eq!(changes[0].after.as_ref().unwrap()["release"], "r1");
    }
}
