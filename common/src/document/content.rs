//! What a document says, whatever it looks like: its canonical form, its hash, differences, weights.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{
    Document, Finding, Owner,
    places::{child, item},
    rules,
};

/// A difference between two documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The field's path. Items of lists with names are told apart by them: `routes[default]`.
    pub path: String,
    /// What it was; absent if it was not there.
    pub before: Option<Value>,
    /// What it is; absent if it is there no more.
    pub after: Option<Value>,
}

impl Document {
    /// The canonical form: JSON in which fields have one order, and those that say nothing are left out.
    pub fn canonical(&self) -> Vec<u8> {
        // Fields have the order of the model, and maps are sorted.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// A service's document as text for people: YAML, or the canonical form if YAML would not say the same.
    pub fn to_text(&self) -> String {
        let same = |text: &String| {
            super::parse("", text, Owner::Service).is_ok_and(|parsed| parsed.document.hash() == self.hash())
        };
        serde_saphyr::to_string(self)
            .ok()
            .filter(same)
            .unwrap_or_else(|| String::from_utf8_lossy(&self.canonical()).into_owned())
    }

    /// The BLAKE3 hash of the canonical form. Comments, order of fields and layout do not change it.
    pub fn hash(&self) -> [u8; 32] {
        *blake3::hash(&self.canonical()).as_bytes()
    }
}

/// How two documents differ, by field.
pub fn diff(before: &Document, after: &Document) -> Vec<Change> {
    let value = |document: &Document| serde_json::to_value(document).unwrap_or_default();
    let mut changes = Vec::new();
    compare("", Some(&value(before)), Some(&value(after)), &mut changes);
    changes
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    if before == after {
        return;
    }
    let none = serde_json::Map::new();
    match (before, after) {
        // What comes or goes as a whole is told field by field, too.
        (None, Some(Value::Object(fields))) if !fields.is_empty() => {
            compare_fields(path, &none, fields, changes);
        }
        (Some(Value::Object(fields)), None) if !fields.is_empty() => {
            compare_fields(path, fields, &none, changes);
        }
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            compare_fields(path, before, after, changes);
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => lists(path, before, after, changes),
        (before, after) => {
            changes.push(Change { path: path.to_owned(), before: before.cloned(), after: after.cloned() });
        }
    }
}

fn compare_fields(
    path: &str,
    before: &serde_json::Map<String, Value>,
    after: &serde_json::Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        compare(&child(path, name), before.get(name), after.get(name), changes);
    }
}

/// Items with names are compared by them, others by their place. Another order of names is a change.
fn lists(path: &str, before: &[Value], after: &[Value], changes: &mut Vec<Change>) {
    let (Some(old), Some(new)) = (names(before), names(after)) else {
        for index in 0..before.len().max(after.len()) {
            compare(&item(path, index), before.get(index), after.get(index), changes);
        }
        return;
    };
    let all: BTreeSet<&str> = old.iter().chain(&new).copied().collect();
    for name in all {
        let of = |names: &[&str], items: &'_ [Value]| {
            names.iter().position(|held| *held == name).and_then(|index| items.get(index).cloned())
        };
        let (before, after) = (of(&old, before), of(&new, after));
        compare(&format!("{path}[{name}]"), before.as_ref(), after.as_ref(), changes);
    }
    let shared = |names: &[&str], other: &[&str]| {
        let shared = names.iter().filter(|name| other.contains(name)).map(|name| Value::from(*name));
        Value::Array(shared.collect())
    };
    let (before, after) = (shared(&old, &new), shared(&new, &old));
    if before != after {
        let path = format!("{path}[order]");
        changes.push(Change { path, before: Some(before), after: Some(after) });
    }
}

/// By what the items of a list are told apart, if each has it and none twice.
fn names(items: &[Value]) -> Option<Vec<&str>> {
    let name = |item: &'_ Value, key: &str| item.get(key).and_then(Value::as_str).map(|name| name.len());
    let key = ["name", "service", "subset"]
        .into_iter()
        .find(|key| items.iter().all(|item| name(item, key).is_some()))?;
    let names: Vec<&str> = items.iter().filter_map(|item| item.get(key)?.as_str()).collect();
    let unique: BTreeSet<&&str> = names.iter().collect();
    (unique.len() == names.len()).then_some(names)
}

/// The document with other weights and nothing else. Without a route's name, those of every route of the callers'
/// side that splits over subsets. Subsets that are not named get nothing.
///
/// # Errors
/// No such route or subset, no weight above 0, or no route that splits.
pub fn set_weights(
    document: &Document,
    route: Option<&str>,
    weights: &BTreeMap<String, u32>,
) -> Result<Document, Box<Finding>> {
    let wrong = |field: &str, message: String, next: String| {
        Err(Box::new(Finding::new(rules::NO_SUCH_WEIGHT, field, message, next)))
    };
    let field = "spec.callers.routes";
    if weights.values().all(|weight| *weight == 0) {
        let next = "give a subset a weight above 0".to_owned();
        return wrong(field, "all weights are 0, so that nobody would answer".to_owned(), next);
    }
    let mut changed = document.clone();
    let mut found = false;
    for (index, of) in changed.spec.callers.routes.iter_mut().enumerate() {
        // A route to one subset alone is meant as it is.
        let splits =
            of.backend_refs.len() > 1 && of.backend_refs.iter().any(|backend| backend.subset.is_some());
        if !splits || route.is_some_and(|route| route != of.name) {
            continue;
        }
        found = true;
        let known: BTreeSet<String> =
            of.backend_refs.iter().map(|backend| backend.subset.clone().unwrap_or_default()).collect();
        if let Some(unknown) = weights.keys().find(|subset| !known.contains(*subset)) {
            let known: Vec<String> = known.into_iter().collect();
            let path = format!("{}.backendRefs", item(field, index));
            let message = format!("the route {:?} has no subset {unknown:?}", of.name);
            return wrong(&path, message, format!("it has: {}", known.join(", ")));
        }
        for backend in &mut of.backend_refs {
            let subset = backend.subset.clone().unwrap_or_default();
            backend.weight = Some(weights.get(&subset).copied().unwrap_or_default());
        }
    }
    match (found, route) {
        (true, _) => Ok(changed),
        (false, Some(route)) => {
            let message = format!("there is no route {route:?} that splits over subsets");
            wrong(field, message, "name one of the document's".to_owned())
        }
        (false, None) => {
            let message = "no route splits over subsets".to_owned();
            wrong(field, message, "upload a document with subsets and backendRefs".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    fn document(spec: &str) -> Document {
        let text =
            format!("apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {{name: web}}\nspec: {spec}\n");
        parse("web.yaml", &text, Owner::Service).unwrap().document
    }

    const SPLIT: &str = "{callers: {subsets: {a: {v: a}, b: {v: b}}, routes: [{name: r, backendRefs: \
                         [{subset: a, weight: 1}, {subset: b, weight: 0}]}, {name: s}]}}";

    #[test]
    fn a_route_to_one_subset_alone_stays_as_it_is() {
        let of = document(
            "{callers: {subsets: {a: {v: a}, b: {v: b}}, routes: [{name: r, backendRefs: [{subset: a, weight: 1}, \
             {subset: b, weight: 0}]}, {name: s, backendRefs: [{subset: a}]}]}}",
        );
        let weights = [("a".to_owned(), 3), ("b".to_owned(), 7)].into();
        let changed = set_weights(&of, None, &weights).unwrap();
        assert_eq!(changed.spec.callers.routes[1], of.spec.callers.routes[1]);
        assert_eq!(changed.spec.callers.routes[0].backend_refs[1].weight, Some(7));
        assert!(set_weights(&of, Some("s"), &weights).is_err());
    }

    #[test]
    fn the_text_for_people_says_the_same_in_lines() {
        let hostile = r#"{callers: {subsets: {a: {v: "yes"}, "null": {"1.0": "0x1f", "~": "- a\n# b\n"}}, routes:
                          [{name: r, matches: [{path: {type: RegularExpression, value: "/a: #\\d+\"'"}}], timeouts: {request: 1s}}]}}"#;
        for of in [document(SPLIT), document(hostile), document("{}")] {
            let text = of.to_text();
            assert!(text.starts_with("apiVersion: tower.mesh/v1\n"), "{text}");
            assert_eq!(parse("web.yaml", &text, Owner::Service).unwrap().document, of, "{text}");
        }
    }

    #[test]
    fn layout_does_not_change_the_hash_and_content_does() {
        let other = document(
            "# said otherwise\n  callers:\n    routes: [{backendRefs: [{weight: 1, subset: a}, {weight: 0, \
             subset: b}], name: r}, {name: s}]\n    subsets: {b: {v: b}, a: {v: a}}\n",
        );
        assert_eq!(document(SPLIT).hash(), other.hash());
        assert_ne!(document(SPLIT).hash(), document("{}").hash());
    }

    #[test]
    fn a_difference_is_told_by_field_and_name() {
        let before = document(SPLIT);
        let mut after = before.clone();
        after.spec.callers.routes[0].backend_refs[1].weight = Some(5);
        after.spec.callers.routes.swap(0, 1);
        let told: Vec<String> = diff(&before, &after).into_iter().map(|change| change.path).collect();
        assert_eq!(told, ["spec.callers.routes[r].backendRefs[b].weight", "spec.callers.routes[order]"]);
        assert!(diff(&before, &before).is_empty());
    }

    #[test]
    fn weights_change_alone() {
        let before = document(SPLIT);
        let weights = BTreeMap::from([("a".to_owned(), 9), ("b".to_owned(), 1)]);
        let after = set_weights(&before, None, &weights).unwrap();
        let changes = diff(&before, &after);
        assert!(changes.iter().all(|change| change.path.ends_with(".weight")), "{changes:?}");
        assert_eq!(after.spec.callers.routes[0].weights(), BTreeMap::from([("a", 9), ("b", 1)]));
        let one = BTreeMap::from([("b".to_owned(), 1)]);
        let after = set_weights(&before, Some("r"), &one).unwrap();
        assert_eq!(after.spec.callers.routes[0].weights(), BTreeMap::from([("a", 0), ("b", 1)]));
    }

    #[test]
    fn weights_that_cannot_be_are_refused() {
        let weights = |subset: &str, weight| BTreeMap::from([(subset.to_owned(), weight)]);
        let before = document(SPLIT);
        for (route, weights) in
            [(None, weights("a", 0)), (None, weights("c", 1)), (Some("s"), weights("a", 1))]
        {
            assert!(set_weights(&before, route, &weights).is_err(), "{route:?} {weights:?}");
        }
        assert!(set_weights(&document("{}"), None, &weights("a", 1)).is_err());
    }
}
