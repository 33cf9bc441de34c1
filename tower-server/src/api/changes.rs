//! What is otherwise than before: documents and assignments, in terms of their fields.

use std::collections::BTreeSet;

use serde_json::Value;
use tower_common::api::{plan::Change, service::Rule};

/// The differences of two documents, by field. Items of lists that have a name are told apart by it, others by
/// their place.
pub fn of_documents(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", before.unwrap_or(&Value::Null), after.unwrap_or(&Value::Null), &mut changes);
    changes
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
            changes.push(Change { field: format!("assignment[{audience}]"), before, after, owner: None });
        }
    }
    changes
}

fn compare(path: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let get = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&path, &get(old), &get(new), changes);
            }
        }
        (Value::Array(old), Value::Array(new)) => match (named(old), named(new)) {
            (Some(old), Some(new)) if !(old.is_empty() && new.is_empty()) => {
                let names: BTreeSet<&str> = old.iter().chain(&new).map(|(name, _)| *name).collect();
                let get = |items: &[(&str, &Value)], name: &str| {
                    let item = items.iter().find(|(known, _)| *known == name);
                    item.map_or(Value::Null, |(_, item)| (*item).clone())
                };
                for name in names {
                    compare(&format!("{path}[{name}]"), &get(&old, name), &get(&new, name), changes);
                }
                let order = |items: &[(&str, &Value)]| {
                    Value::from(items.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>())
                };
                let same: BTreeSet<&str> = old.iter().map(|(name, _)| *name).collect();
                if same == new.iter().map(|(name, _)| *name).collect() && order(&old) != order(&new) {
                    push(&format!("{path}, their order"), &order(&old), &order(&new), changes);
                }
            }
            _ => {
                for place in 0..old.len().max(new.len()) {
                    let get = |items: &[Value]| items.get(place).cloned().unwrap_or_default();
                    compare(&format!("{path}[{place}]"), &get(old), &get(new), changes);
                }
            }
        },
        _ => push(path, before, after, changes),
    }
}

/// The items with their names, if all have one, and each its own.
fn named(items: &[Value]) -> Option<Vec<(&str, &Value)>> {
    let named: Vec<_> =
        items.iter().map(|item| Some((item.get("name")?.as_str()?, item))).collect::<Option<_>>()?;
    let names: BTreeSet<&str> = named.iter().map(|(name, _)| *name).collect();
    (names.len() == named.len()).then_some(named)
}

fn push(path: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    let some = |value: &Value| Some(value).filter(|value| !value.is_null()).cloned();
    changes.push(Change { field: path.to_owned(), before: some(before), after: some(after), owner: None });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(before: &Value, after: &Value, expected: &[(&str, Value, Value)]) {
        let changes = of_documents(Some(before), Some(after));
        let told: Vec<_> = changes
            .iter()
            .map(|change| {
                let value = |value: &Option<Value>| value.clone().unwrap_or_default();
                (change.field.as_str(), value(&change.before), value(&change.after))
            })
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn documents_differ_by_field() {
        check(
            &json!({"a": {"b": 1, "c": 2}}),
            &json!({"a": {"b": 1, "c": 3}}),
            &[("a.c", json!(2), json!(3))],
        );
        check(&json!({"a": 1}), &json!({}), &[("a", json!(1), Value::Null)]);
        check(
            &json!({"a": [1, 2]}),
            &json!({"a": [1, 3, 4]}),
            &[("a[1]", json!(2), json!(3)), ("a[2]", Value::Null, json!(4))],
        );
    }

    #[test]
    fn named_items_are_told_apart_by_name_and_their_order_counts() {
        let route = |name: &str, weight: u32| json!({"name": name, "weight": weight});
        check(
            &json!({"r": [route("x", 1), route("y", 2)]}),
            &json!({"r": [route("y", 3)]}),
            &[("r[x]", route("x", 1), Value::Null), ("r[y].weight", json!(2), json!(3))],
        );
        let (one, other) =
            (json!({"r": [route("x", 1), route("y", 2)]}), json!({"r": [route("y", 2), route("x", 1)]}));
        check(&one, &other, &[("r, their order", json!(["x", "y"]), json!(["y", "x"]))]);
        check(
            &json!({"r": [route("x", 1), route("x", 2)]}),
            &json!({"r": [route("x", 1), route("x", 3)]}),
            &[("r[1].weight", json!(2), json!(3))],
        );
    }

    #[test]
    fn assignments_differ_by_audience() {
        use tower_common::api::service::Release;
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
