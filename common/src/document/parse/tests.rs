use std::fmt::Write;

use super::*;

/// The findings of a text, one a line, without what to do.
fn findings(text: &str, owner: Owner) -> String {
    let findings = match parse("web.yaml", text, owner) {
        Ok(parsed) => parsed.findings,
        Err(findings) => findings,
    };
    findings.iter().fold(String::new(), |mut lines, finding| {
        writeln!(lines, "{finding}").unwrap();
        lines
    })
}

fn service(spec: &str) -> String {
    format!("apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {{name: web}}\nspec:\n{spec}")
}

#[test]
fn a_document_is_read_with_its_places() {
    let text = service(
        "  callers:
    subsets: {stable: {model: a}, canary: {model: b}}
    routes:
    - name: default
      backendRefs: [{subset: stable, weight: 95}, {subset: canary, weight: 5}]
      timeouts: {request: 250ms}
",
    );
    let parsed = parse("web.yaml", &text, Owner::Service).unwrap();
    let route = &parsed.document.spec.callers.routes[0];
    assert_eq!(route.weights().into_iter().collect::<Vec<_>>(), [("canary", 5), ("stable", 95)]);
    assert_eq!(route.timeouts.request.unwrap().as_millis(), 250);
    let place = |path| {
        let place = parsed.places.find(path).unwrap();
        (place.line, place.column)
    };
    assert_eq!(place("spec.callers.routes[0].timeouts.request"), (10, 27));
    assert_eq!(place("spec.callers.routes[0].timeouts"), (10, 7));
    assert_eq!(place("spec.callers.routes[0].backendRefs[1].weight"), (9, 76));
    assert_eq!(place("spec.callers.routes[0].timeouts.idle"), (10, 7));
}

#[test]
fn everything_that_does_not_fit_is_found_at_once() {
    let text = service(
        "  callers:
    loadbalancer: {type: Random}
    connectTimeout: 1.5s
    tls: {mode: strict}
    circuitBreaker: {maxRequests: -1}
    routes:
    - name: default
      matches: [{headers: [{name: x, value: 1}], method: get}]
      retry: {numRetries: 2, retryOn: 503}
      timeouts:
",
    );
    assert_eq!(
        findings(&text, Owner::Service),
        "\
web.yaml:6:5: error[TW003]: spec.callers.loadbalancer: there is no field \"loadbalancer\" here; \
did you mean loadBalancer?
web.yaml:7:21: error[TW008]: spec.callers.connectTimeout: \"1.5s\" is no time: write numbers with units, such as \
\"250ms\" or \"1m30s\" (owner service); write another value
web.yaml:8:5: error[TW004]: spec.callers.tls: spec.callers.tls belongs to security, and this is the part of service \
(owner security); take it out, or write {ref: security}, and ask security for the change
web.yaml:9:35: error[TW008]: spec.callers.circuitBreaker.maxRequests: -1 is not a whole number from 0 to 4294967295 \
(owner service); write another value
web.yaml:12:45: error[TW005]: spec.callers.routes[0].matches[0].headers[0].value: text is wanted here, not a number \
(owner service); put it in quotes
web.yaml:12:58: error[TW006]: spec.callers.routes[0].matches[0].method: \"get\" is not one of GET, HEAD, POST, PUT, \
DELETE, OPTIONS, TRACE, PATCH (owner service); did you mean GET?
web.yaml:13:7: error[TW007]: spec.callers.routes[0].retry.attempts: attempts is needed (owner service); add attempts
web.yaml:13:15: error[TW003]: spec.callers.routes[0].retry.numRetries: there is no field \"numRetries\" here \
(owner service); here it is retry.attempts
web.yaml:13:39: error[TW005]: spec.callers.routes[0].retry.retryOn: a list is wanted here, not a number \
(owner service); write a list, with a dash before each item
web.yaml:14:15: error[TW005]: spec.callers.routes[0].timeouts: an object is wanted here, not nothing \
(owner service); leave the field out, or give it a value
"
    );
}

#[test]
fn what_belongs_to_others_can_be_pointed_out() {
    let text = service("  inbound: {ports: {ref: platform}, tls: {ref: security}}\n");
    assert!(parse("web.yaml", &text, Owner::Service).unwrap().document.spec == Default::default());
    let wrong = service("  inbound: {ports: {ref: security}}\n");
    assert!(findings(&wrong, Owner::Service).contains("TW004"));
    // Where it is one's own, it is no reference.
    assert!(findings(&wrong, Owner::Platform).contains("TW005"));
}

#[test]
fn each_owner_writes_its_own_fields() {
    for (spec, owner) in [
        ("  inbound: {ports: [{name: app, port: 1, appPort: 2}]}\n", Owner::Platform),
        ("  patches: [{target: {kind: Cluster, name: web}, merge: {a: [1, {b: null}]}}]\n", Owner::Platform),
        ("  inbound: {allowedCallers: {rules: []}}\n", Owner::Security),
        ("  callers: {tls: {mode: off}}\n", Owner::Security),
        ("  outbound: {dependencies: [{service: x}]}\n", Owner::Service),
    ] {
        for other in Owner::ALL {
            let parsed = parse("part", &service(spec), other);
            assert_eq!(parsed.is_ok(), other == owner, "{spec} by {other}: {parsed:?}");
            for finding in parsed.err().unwrap_or_default() {
                assert_eq!((finding.code, finding.owner), ("TW004", Some(owner)), "{finding}");
            }
        }
    }
    // Defaults of the platform.
    let spec = "  callers: {outlierDetection: {consecutive5xx: 3}}\n";
    assert!(parse("part", &service(spec), Owner::Platform).is_ok());
    assert!(parse("part", &service(spec), Owner::Security).is_err());
}

#[test]
fn a_service_document_names_its_service_and_a_part_for_all_does_not() {
    let text = "apiVersion: tower.mesh/v1\nkind: MeshService\nmetadata: {}\n";
    assert_eq!(
        findings(text, Owner::Service),
        "web.yaml:3:1: error[TW007]: metadata.name: a service's document names the service (owner service); \
         add metadata.name\n"
    );
    assert!(parse("all", text, Owner::Platform).is_ok());
}

#[test]
fn another_format_is_refused_and_an_older_one_is_upgraded() {
    let text = service("  outbound: {dependencies: [{service: x, overrides: {retry: {tries: 3}}}]}\n");
    assert!(
        findings(&text, Owner::Service).contains("here it is attempts, which does not count the first try")
    );
    let older = text.replace("mesh/v1", "mesh/v1alpha1");
    let parsed = parse("web.yaml", &older, Owner::Service).unwrap();
    assert_eq!(parsed.document.spec.outbound.dependencies[0].overrides.retry.as_ref().unwrap().attempts, 2);
    assert_eq!(
        findings(&older, Owner::Service),
        "\
web.yaml:1:13: info[TW009]: apiVersion: tower.mesh/v1alpha1 is an older format, and is read as tower.mesh/v1 \
(owner service); write tower.mesh/v1
web.yaml:5:62: info[TW009]: spec.outbound.dependencies[0].overrides.retry.attempts: tries: 3 counts the first one, \
too, and is read as attempts: 2 (owner service); write attempts: 2
"
    );
    let newer = text.replace("mesh/v1", "mesh/v2");
    assert!(findings(&newer, Owner::Service).contains("TW006"));
    // Routes on both sides; no try at all is none again, too.
    for side in ["inbound", "callers"] {
        let text = service(&format!("  {side}: {{routes: [{{name: a, retry: {{tries: 0}}}}]}}\n"));
        let older = text.replace("mesh/v1", "mesh/v1alpha1");
        let spec = parse("web.yaml", &older, Owner::Service).unwrap().document.spec;
        let routes = if side == "inbound" { spec.inbound.routes } else { spec.callers.routes };
        assert_eq!(routes[0].retry.as_ref().unwrap().attempts, 0);
    }
}

#[test]
fn what_is_no_yaml_has_a_place() {
    for (text, line) in [("a: [1", 1), ("a: b\n\tc: d\n", 1), ("a: 1\na: 2\n", 2), ("a: *b\n", 1)] {
        let findings = parse("web.yaml", text, Owner::Service).unwrap_err();
        assert_eq!((findings[0].code, findings[0].line, findings.len()), ("TW002", line, 1), "{findings:?}");
    }
    assert!(findings("", Owner::Service).contains("TW005"));
    assert!(findings("a: 1\n---\nb: 1\n", Owner::Service).contains("TW002"));
}

#[test]
fn bombs_do_not_go_off() {
    let large = format!("a: \"{}\"", "x".repeat(MAX_DOCUMENT_BYTES));
    assert!(findings(&large, Owner::Service).contains("TW001"));
    let deep = format!("spec: {}", "[".repeat(10_000));
    assert!(findings(&deep, Owner::Service).contains("TW002"));
    let deep = (0..200).fold(String::new(), |mut text, depth| {
        writeln!(text, "{}a:", " ".repeat(depth)).unwrap();
        text
    });
    assert!(findings(&deep, Owner::Service).contains("TW002"));
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    assert!(findings(&laughs, Owner::Service).contains("TW002"));
}

#[test]
fn anchors_and_merge_keys_work() {
    let text = service(
        "  callers:
    routes:
    - {name: a, timeouts: &limits {request: 1s}}
    - {name: b, timeouts: *limits}
    - {name: c, timeouts: {<<: *limits, idle: 2s}}
",
    );
    let routes = parse("web.yaml", &text, Owner::Service).unwrap().document.spec.callers.routes;
    assert!(routes.iter().all(|route| route.timeouts.request.unwrap().as_millis() == 1000));
}

#[test]
fn json_is_read_as_it_is_written() {
    let text = service("  callers: {routes: [{name: a, mirror: {percent: 0.5}}]}\n");
    let document = parse("web.yaml", &text, Owner::Service).unwrap().document;
    for json in [serde_json::to_string(&document), serde_json::to_string_pretty(&document)] {
        assert_eq!(parse("web.json", &json.unwrap(), Owner::Service).unwrap().document, document);
    }
}

#[test]
fn no_input_is_too_strange() {
    let seeds = [
        service("  callers:\n    routes:\n    - {name: a, matches: [{path: {value: /a}}]}\n"),
        service("  inbound: {ports: {ref: platform}}\n").replace("v1", "v1alpha1"),
        r#"{"apiVersion":"tower.mesh/v1","kind":"MeshService","metadata":{"name":"w"},"spec":{}}"#.to_owned(),
        "a: &x [1, *x]\n<<: {b: 2}\n".to_owned(),
    ];
    let seeds: Vec<_> = seeds.iter().map(String::as_bytes).collect();
    let words = [
        "spec", "callers", "routes", "retry", "tries", "subsets", "1s", "patches", "merge", "&a", "*a", "- ",
    ];
    tower_fuzz::fuzz("service document", &seeds, &words, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return Ok(false) };
        for owner in Owner::ALL {
            if let Ok(parsed) = parse("fuzz", text, owner) {
                let again = serde_json::to_string(&parsed.document).unwrap();
                assert_eq!(parse("fuzz", &again, owner).unwrap().document, parsed.document, "{again}");
            }
        }
        parse("fuzz", text, Owner::Service)
            .map(|_| true)
            .map_err(|findings| findings.iter().map(|finding| finding.code).collect::<Vec<_>>().join(" "))
    });
}
