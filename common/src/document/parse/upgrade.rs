//! Older formats of the document, brought up to the current one before anything else looks at it.
//!
//! `tower.mesh/v1alpha1`: `retry.tries` counts all tries; since `v1`, `retry.attempts` counts those after the
//! first.

use super::{
    super::{
        Finding,
        model::API_VERSION,
        places::{child, item},
        rules,
    },
    tree::{Field, Node, Tree},
};

/// Formats that can be upgraded.
pub(super) const OLDER: [&str; 1] = ["tower.mesh/v1alpha1"];

/// Brings a document in an older format up to the current one, and says what has changed.
pub(super) fn upgrade(root: &mut Node, findings: &mut Vec<Finding>) {
    let Some(version) = root.get_mut("apiVersion") else { return };
    let Some(older) = version.text().and_then(|text| OLDER.into_iter().find(|older| *older == text)) else {
        return;
    };
    let place = version.place;
    version.value = Tree::Text(API_VERSION.to_owned());
    findings.push(
        Finding::new(
            rules::OLD_FORMAT,
            "apiVersion",
            format!("{older} is an older format, and is read as {API_VERSION}"),
            format!("write {API_VERSION}"),
        )
        .at(place),
    );
    let Some(spec) = root.get_mut("spec") else { return };
    for side in ["inbound", "callers"] {
        let routes = spec.get_mut(side).and_then(|side| side.get_mut("routes"));
        for (index, route) in items(routes).enumerate() {
            let path = item(&format!("spec.{side}.routes"), index);
            if let Some(retry) = route.get_mut("retry") {
                count_tries(retry, &child(&path, "retry"), findings);
            }
        }
    }
    let dependencies = spec.get_mut("outbound").and_then(|outbound| outbound.get_mut("dependencies"));
    for (index, dependency) in items(dependencies).enumerate() {
        let path = item("spec.outbound.dependencies", index);
        let retry = dependency.get_mut("overrides").and_then(|overrides| overrides.get_mut("retry"));
        if let Some(retry) = retry {
            count_tries(retry, &format!("{path}.overrides.retry"), findings);
        }
    }
}

fn items(node: Option<&mut Node>) -> impl Iterator<Item = &mut Node> {
    match node.map(|node| &mut node.value) {
        Some(Tree::List(items)) => items.iter_mut(),
        _ => [].iter_mut(),
    }
}

/// Turns `tries` into `attempts`. What is no number of tries stays, and is found to be an unknown field.
fn count_tries(retry: &mut Node, path: &str, findings: &mut Vec<Finding>) {
    let Tree::Map(fields) = &mut retry.value else { return };
    let Some(Field { name, place, node }) = fields.iter_mut().find(|field| field.name == "tries") else {
        return;
    };
    let Tree::Number(number) = &node.value else { return };
    let Some(tries) = number.as_u64() else { return };
    let attempts = tries.saturating_sub(1);
    *name = "attempts".to_owned();
    node.value = Tree::Number(attempts.into());
    findings.push(
        Finding::new(
            rules::OLD_FORMAT,
            &child(path, "attempts"),
            format!("tries: {tries} counts the first one, too, and is read as attempts: {attempts}"),
            format!("write attempts: {attempts}"),
        )
        .at(*place),
    );
}
