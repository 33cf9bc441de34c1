use super::*;
use crate::document::{Parts, merge, parse};

fn found(owner: Owner, spec: &str) -> Vec<(String, String)> {
    let text =
        format!("apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {{name: web}}\nspec: {spec}\n");
    let parsed = parse("web.yaml", &text, owner).unwrap_or_else(|findings| panic!("{findings:?}"));
    let effective = merge(&Parts { service: &parsed.document, ..Parts::alone(&parsed.document) });
    let mut effective = effective.unwrap();
    effective.document = parsed.document.clone();
    let mut findings = check(&effective, &World::unknown());
    locate(&mut findings, &parsed.places);
    findings.retain(|finding| finding.severity > Severity::Info);
    assert!(findings.iter().all(|finding| finding.line > 0 && !finding.next_step.is_empty()), "{findings:?}");
    findings.into_iter().map(|finding| (finding.code.to_owned(), finding.field)).collect()
}

fn codes(spec: &str) -> Vec<String> {
    found(Owner::Service, spec).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn a_good_document_has_no_faults() {
    let spec = "{callers: {subsets: {stable: {model: a}, canary: {model: b}}, loadBalancer: {type: LeastRequest}, \
                circuitBreaker: {maxRequests: 2000}, outlierDetection: {consecutive5xx: 5, maxEjectionPercent: 20}, \
                healthChecks: [{http: {path: /health}, interval: 5s}], routes: [{name: default, backendRefs: \
                [{subset: stable, weight: 95}, {subset: canary, weight: 5}], timeouts: {request: 250ms, \
                backendRequest: 100ms}, retry: {attempts: 1, retryOn: [connect-failure, \"503\"], budgetPercent: 20}}]}, \
                outbound: {dependencies: [{service: features, overrides: {timeouts: {request: 80ms}}}]}, tiers: \
                [{name: canary, clusters: [web-canary]}]}";
    assert_eq!(found(Owner::Service, spec), []);
}

#[test]
fn each_fault_has_its_rule() {
    let route = |inner: &str| format!("{{callers: {{routes: [{{name: r, {inner}}}]}}}}");
    for (spec, code) in [
        (route("backendRefs: [{subset: nope}]"), "TW103"),
        (route("matches: [{path: {value: rank}}]"), "TW201"),
        (route("matches: [{path: {value: /rank/}}]"), "TW201"),
        (route("matches: [{path: {type: RegularExpression, value: '/[a-z0-9]{1,200}'}}]"), "TW202"),
        (route("requestHeaders: {set: [{name: 'a b', value: x}]}"), "TW203"),
        (route("requestHeaders: {set: [{name: host, value: x}]}"), "TW203"),
        (route("backendRefs: [{weight: 0}]"), "TW205"),
        (route("redirect: {host: a}, directResponse: {status: 200}"), "TW206"),
        (route("redirect: {host: a, status: 200}"), "TW208"),
        (route("directResponse: {status: 999}"), "TW208"),
        (route("backendRefs: [{port: app}]"), "TW207"),
        (route("backendRefs: [{weight: 2000000}]"), "TW210"),
        (route("timeouts: {request: 1s, backendRequest: 2s}"), "TW301"),
        (route("retry: {attempts: 1, retryOn: [sometimes]}"), "TW303"),
        (route("retry: {attempts: 1, backoff: {base: 0s}}"), "TW303"),
        (route("timeouts: {request: 1s, backendRequest: 1s}, retry: {attempts: 1}"), "TW304"),
        (route("rateLimits: {local: {requests: 1, interval: 10ms}}"), "TW406"),
        (route("rateLimits: {local: {requests: 5, interval: 1s, burst: 1}}"), "TW405"),
        (route("rewrite: {regex: {pattern: a, substitution: '\\1'}}"), "TW202"),
        (route("rewrite: {prefix: /a, path: /b}"), "TW208"),
        ("{callers: {loadBalancer: {type: Maglev, tableSize: 100}}}".into(), "TW401"),
        ("{callers: {loadBalancer: {type: Random, choiceCount: 3}}}".into(), "TW402"),
        (
            "{callers: {loadBalancer: {type: RingHash, hashPolicy: [{header: a, sourceIp: true}]}}}".into(),
            "TW401",
        ),
        ("{callers: {healthChecks: [{}]}}".into(), "TW403"),
        ("{callers: {outlierDetection: {maxEjectionTime: 1s}}}".into(), "TW404"),
        ("{callers: {panicThresholdPercent: 101}}".into(), "TW407"),
        ("{callers: {subsets: {a: {}}}}".into(), "TW108"),
        ("{callers: {subsets: {'a/b': {x: y}}}}".into(), "TW101"),
        ("{callers: {protocol: tcp, routes: [{name: a, timeouts: {request: 1s}}]}}".into(), "TW209"),
        ("{outbound: {dependencies: [{service: a}, {service: a}]}}".into(), "TW102"),
        ("{outbound: {dependencies: [{service: a.mesh}]}}".into(), "TW101"),
        ("{outbound: {dependencies: [{service: a, listen: 80}]}}".into(), "TW501"),
        ("{tiers: [{name: a, clusters: []}]}".into(), "TW101"),
    ] {
        assert_eq!(codes(&spec), [code], "{spec}");
    }
}

#[test]
fn each_fault_of_platform_and_security_has_its_rule() {
    for (owner, spec, code) in [
        (Owner::Platform, "{inbound: {ports: [{name: a, port: 80, appPort: 80}]}}", "TW501"),
        (Owner::Platform, "{inbound: {ports: [{name: a, port: 80, appPort: 81, address: host}]}}", "TW501"),
        (
            Owner::Platform,
            "{inbound: {ports: [{name: a, port: 80, appPort: 81}, {name: b, port: 80, appPort: 82}]}}",
            "TW102",
        ),
        (Owner::Platform, "{callers: {accessLog: {path: logs}}}", "TW503"),
        (Owner::Security, "{callers: {tls: {mode: strict, caFile: /ca}}}", "TW502"),
        (
            Owner::Security,
            "{inbound: {allowedCallers: {rules: [{name: a, identities: [spiffe://m/a]}]}}}",
            "TW504",
        ),
        (Owner::Security, "{inbound: {allowedCallers: {rules: []}}}", "TW505"),
        (
            Owner::Security,
            "{inbound: {allowedCallers: {rules: [{name: a, addresses: [10.0.0.0/33]}]}}}",
            "TW501",
        ),
    ] {
        let found = found(owner, spec);
        assert!(found.iter().any(|(found, _)| found == code), "{spec}: {found:?}");
    }
}

#[test]
fn routes_that_no_request_reaches_are_told() {
    let routes = |routes: &str| codes(&format!("{{callers: {{routes: [{routes}]}}}}"));
    assert_eq!(routes("{name: a}, {name: b, matches: [{path: {value: /x}}]}"), ["TW204"]);
    assert_eq!(
        routes("{name: a, matches: [{path: {value: /x}}]}, {name: b, matches: [{path: {value: /x/y}}]}"),
        ["TW204"]
    );
    assert!(
        routes("{name: a, matches: [{path: {value: /x}}]}, {name: b, matches: [{path: {value: /xy}}]}")
            .is_empty()
    );
    let second = "{name: b, matches: [{path: {value: /x}}]}";
    assert!(
        routes(&format!("{{name: a, matches: [{{path: {{value: /x}}, method: GET}}]}}, {second}")).is_empty()
    );
}

#[test]
fn what_others_have_is_looked_up_where_it_is_known() {
    let text = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {name: web}\nspec: {callers: {subsets: \
                {a: {v: a}}, routes: [{name: r, mirror: {service: ads, subset: x}}]}, outbound: {dependencies: \
                [{service: nobody}, {service: db}]}}\n";
    let parsed = parse("web.yaml", text, Owner::Service).unwrap();
    assert!(!refuses(&check_part(&parsed, &World::unknown())));
    let world = World::of(BTreeMap::from([
        ("web".to_owned(), ServiceFacts { endpoints: vec![BTreeMap::new()], ..ServiceFacts::default() }),
        ("ads".to_owned(), ServiceFacts::default()),
        ("db".to_owned(), ServiceFacts { tcp: true, ..ServiceFacts::default() }),
    ]));
    let findings = check_part(&parsed, &world);
    let told: Vec<(&str, u32)> = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .map(|finding| (finding.code, finding.line))
        .collect();
    assert_eq!(told, [("TW103", 4), ("TW105", 4), ("TW506", 4), ("TW107", 4)], "{findings:?}");
}
