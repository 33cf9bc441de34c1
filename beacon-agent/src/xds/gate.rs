//! Make before break: nothing refers to a cluster that the client does not have yet.

use std::{collections::BTreeSet, sync::Arc};

use tower_common::view::{Layer, XdsResource};

/// What of `wanted` the client may have now, and whether that is all of it. What refers to a cluster that is
/// not `ready` waits, and what the client was `sent` under that name before stays. What it has is not taken
/// away again, whatever it says of the cluster. `new`: what it has nothing of waits as well.
pub(super) fn gate<'a>(
    wanted: &Layer,
    new: bool,
    sent: impl Fn(&str) -> Option<&'a XdsResource>,
    ready: impl Fn(&str) -> bool,
) -> (Layer, bool) {
    let mut waiting = Vec::new();
    for (name, resource) in wanted.iter() {
        let before = sent(name);
        let known = |cluster: &Arc<str>| before.is_some_and(|before| before.clusters().any(|c| c == cluster));
        let held = before.is_some() || new;
        if held && !resource.clusters().all(|cluster| known(cluster) || ready(cluster)) {
            waiting.push((name, before));
        }
    }
    if waiting.is_empty() {
        return (wanted.clone(), true);
    }
    let mut layer = (**wanted).clone();
    for (name, before) in waiting {
        match before {
            Some(before) => layer.insert(name.clone(), before.clone()),
            None => layer.remove(name),
        };
    }
    (Arc::new(layer), false)
}

/// The clusters that resources refer to.
pub(super) fn references<'a>(resources: impl Iterator<Item = &'a XdsResource>) -> BTreeSet<Arc<str>> {
    resources.flat_map(XdsResource::clusters).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tower_common::view::References;

    use super::*;

    fn resource(name: &str, revision: &str, clusters: &[&str]) -> XdsResource {
        let clusters = clusters.iter().map(|&cluster| cluster.into()).collect();
        XdsResource {
            refers: Some(Arc::new(References { clusters, ..References::default() })),
            ..XdsResource::from_body(name.into(), revision.to_owned().into())
        }
    }

    fn layer(resources: &[XdsResource]) -> Layer {
        Arc::new(resources.iter().map(|r| (r.name.clone(), r.clone())).collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn what_refers_to_what_is_not_ready_waits_by_itself() {
        let sent = layer(&[resource("a", "1", &["a"]), resource("c", "1", &["c"])]);
        let wanted = layer(&[
            resource("a", "2", &["a", "a/canary"]),
            resource("b", "1", &["b"]),
            resource("c", "2", &["c"]),
        ]);
        let gated = |ready: &[&str]| {
            let (layer, all) = gate(&wanted, true, |name| sent.get(name), |cluster| ready.contains(&cluster));
            let shown = layer.values().map(|r| format!("{}:{}", r.name, String::from_utf8_lossy(&r.body)));
            (shown.collect::<Vec<_>>().join(" "), all)
        };
        assert_eq!(gated(&[]), ("a:1 c:2".to_owned(), false), "it has a route to c");
        assert_eq!(gated(&["b"]), ("a:1 b:1 c:2".to_owned(), false));
        assert_eq!(gated(&["a/canary"]), ("a:2 c:2".to_owned(), false));
        assert_eq!(gated(&["a/canary", "b"]), ("a:2 b:1 c:2".to_owned(), true));
        assert!(Arc::ptr_eq(&gate(&wanted, true, |_| None, |_| true).0, &wanted));
        let (layer, _) = gate(&wanted, false, |name| sent.get(name), |_| false);
        assert_eq!(layer.keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((&layer["a"], &layer["b"]), (&sent["a"], &wanted["b"]));
    }

    #[test]
    fn references_are_those_of_all() {
        let found = references([resource("a", "1", &["x", "y"]), resource("b", "1", &[])].iter());
        assert_eq!(found, ["x".into(), "y".into()].into());
        let plain = XdsResource::from_body("web".into(), "1".to_owned().into());
        assert_eq!(references([plain].iter()), ["web".into()].into(), "a piece that says nothing");
    }
}
