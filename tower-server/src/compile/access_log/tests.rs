//! Logs of applications and of callers.

use serde_json::{Value, json};
use tower_proto::{
    envoy::envoy::config::accesslog::v3::AccessLog,
    v1::{Kind, VirtualHostPart},
};

use crate::compile::testing::{bundle, contains, listener, part, virtual_host};

fn inbound(of: &str) -> Value {
    let bundle = bundle(&format!("inbound: {{ports: [{{name: app, port: 8443, appPort: 8080}}], {of}}}"));
    listener(&bundle, "inbound/web/app")["filter_chains"][0]["filters"][0]["typed_config"].clone()
}

#[test]
fn logs_of_the_application() {
    assert_eq!(inbound("routes: []").get("access_log"), None);
    contains(
        &(inbound("accessLog: {mode: errors, path: /var/log/web.json, fields: {s: '%RESPONSE_CODE%'}}"))["access_log"],
        &json!([{
            "name": "envoy.access_loggers.file",
            "filter": {"or_filter": {"filters": [
                {"status_code_filter": {"comparison": {"op": "GE", "value": {"default_value": 500}}}},
                {"status_code_filter": {"comparison": {"value": {"runtime_key": "tower.access_log.status_0"}}}},
            ]}},
            "typed_config": {
                "path": "/var/log/web.json", "log_format": {"json_format": {"s": "%RESPONSE_CODE%"}},
            },
        }]),
    );
    let all = inbound("accessLog: {mode: all}")["access_log"].clone();
    contains(
        &all,
        &json!([{
            "name": "envoy.access_loggers.stdout",
            "typed_config": {"log_format": {"json_format": {"status": "%RESPONSE_CODE%"}}},
        }]),
    );
    assert_eq!(all[0].get("filter"), None);
}

#[test]
fn callers_share_a_log_of_one_form_and_routes_say_whether_they_are_in_it() {
    let of = |log: &str| {
        let bundle = bundle(&format!("callers: {{accessLog: {log}}}"));
        let part: VirtualHostPart = part(&bundle, Kind::VirtualHost, "web");
        let route = virtual_host(&bundle, "web")["routes"][0].clone();
        (part.access_log, route["metadata"]["filter_metadata"]["tower"].clone())
    };
    let (none, silent) = of("{mode: off}");
    assert!(none.is_empty() && silent.is_null());
    let (all, of_all) = of("{mode: all}");
    let (errors, of_errors) = of("{mode: errors}");
    let (other, of_other) = of("{mode: all, fields: {s: '%RESPONSE_CODE%'}}");
    assert_eq!((&all, &of_all["log"]), (&errors, &of_errors["log"]), "the listener does not change");
    assert_eq!((&of_all["log_mode"], &of_errors["log_mode"]), (&json!("all"), &json!("errors")));
    assert!(other != all && of_other["log"] != of_all["log"]);
    let log = crate::compile::testing::json::<AccessLog>(&all);
    let expression = log["filter"]["extension_filter"]["typed_config"]["expression"].as_str().unwrap();
    assert!(expression.contains(of_all["log"].as_str().unwrap()), "{expression}");
}
