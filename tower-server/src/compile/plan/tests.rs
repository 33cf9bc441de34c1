//! Changes of documents, and their effects.

use super::{Connections, plan};
use crate::compile::testing::bundle;

const BASE: &str = "
inbound: {ports: [{name: app, port: 8443, appPort: 8080}], rateLimits: {local: {requests: 9, interval: 1s}}}
callers:
  subsets: {s: {v: '1'}}
  routes: [{name: a, backendRefs: [{subset: s, weight: 90}, {weight: 10}]}]
outbound: {dependencies: [{service: db, listen: 3306, overrides: {retry: {attempts: 1}}}]}
";

fn check(change: (&str, &str), expected: &[(&str, Connections)]) {
    let (from, to) = change;
    let after = BASE.replace(from, to);
    assert_ne!(after, BASE, "{from} is in it");
    let effects = plan(Some(&bundle(BASE)), &bundle(&after));
    let found: Vec<_> = effects.iter().map(|effect| (effect.resource.as_str(), effect.effect)).collect();
    assert_eq!(found, expected, "{from} -> {to}");
}

#[test]
fn what_is_only_routes_drains_nothing() {
    use Connections::NoDrain;
    check(("weight: 90", "weight: 50"), &[("virtual host web", NoDrain)]);
    check(("requests: 9", "requests: 7"), &[("virtual host inbound/web/app", NoDrain)]);
    check(("attempts: 1", "attempts: 2"), &[("extension dependency/db", NoDrain)]);
    check(("v: '1'", "v: '2'"), &[("cluster web/s", NoDrain)]);
    check(("subsets: {", "subsets: {t: {v: '2'}, "), &[("cluster web/t", NoDrain)]);
}

#[test]
fn what_else_changes_does() {
    use Connections::{ConnectionsDrained, NoDrain, PoolsReset};
    check(
        ("  subsets", "  circuitBreaker: {maxRequests: 9}\n  subsets"),
        &[("cluster web", PoolsReset), ("cluster web/s", PoolsReset)],
    );
    check(("port: 8443", "port: 8444"), &[("listener inbound/web/app", ConnectionsDrained)]);
    check(("appPort: 8080", "appPort: 8081"), &[("cluster inbound/web/app", PoolsReset)]);
    check((", listen: 3306", ""), &[("listener outbound/web/db", ConnectionsDrained)]);
    check(
        (
            "  subsets: {s: {v: '1'}}\n  routes: [{name: a, backendRefs: [{subset: s, weight: 90}, {weight: 10}]}]",
            "  subsets: {}",
        ),
        &[("cluster web/s", PoolsReset), ("virtual host web", NoDrain)],
    );
}

#[test]
fn what_is_new_or_the_same_costs_nothing() {
    let bundle = bundle(BASE);
    assert_eq!(plan(Some(&bundle), &bundle), []);
    let effects = plan(None, &bundle);
    assert_eq!(effects.len(), bundle.parts.len());
    assert!(effects.iter().all(|effect| effect.effect == Connections::NoDrain));
    assert_eq!(Connections::PoolsReset.as_str(), "pools reset");
}
