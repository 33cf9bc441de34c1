//! A member in JSON.

use std::net::IpAddr;

use serde_json::{Map, Value};
use tower_proto::v1::endpoint::State;

use crate::sources::{
    address::{Host, usable},
    format::{DecodeError, Decoded, Registration, SHARD, json, metadata},
};

pub(super) fn decode(data: &[u8]) -> Result<Decoded, DecodeError> {
    let mut remarks = Vec::new();
    let object = json::object(data, &mut remarks)?;
    let main = json::required(&object, "serviceEndpoint", "serviceEndpoint")?;
    let mut main = endpoint(main, "serviceEndpoint", &mut remarks)?;
    main.state = match object.get("status") {
        None | Some(Value::Null) => State::Up,
        Some(value) => state(&json::scalar(value).unwrap_or_default(), &mut remarks),
    };
    main.labels = metadata::labels(object.get("metadata"), "metadata", &mut remarks);
    main.weight = metadata::take_weight(&mut main.labels, "metadata", &mut remarks);
    let shard = object.get("shard").and_then(json::scalar);
    if let Some(shard) = shard.and_then(|shard| shard.parse::<i64>().ok()) {
        main.labels.insert(SHARD.to_owned(), shard.to_string());
    }
    let mut more = Vec::new();
    match object.get("additionalEndpoints") {
        None | Some(Value::Null) => {}
        Some(Value::Object(named)) => {
            for (name, value) in named {
                let field = additional(name);
                more.push((name.as_str(), endpoint(value, &field, &mut remarks)?));
            }
        }
        Some(_) => return Err(json::field("additionalEndpoints", "not an object")),
    }
    Ok(Decoded { remarks, ..Decoded::of(all(main, more)?) })
}

/// A member has no more additional endpoints than this. Each carries all labels, so that many of both would be
/// far more than their data.
const MAX_ADDITIONAL: usize = 100;

/// The path of an additional endpoint.
pub(super) fn additional(name: &str) -> String {
    format!("additionalEndpoints.{name}")
}

/// A member's endpoints: the additional ones share all but the address with the main one.
pub(super) fn all(
    main: Registration,
    more: Vec<(&str, Registration)>,
) -> Result<Vec<Registration>, DecodeError> {
    if more.len() > MAX_ADDITIONAL {
        let problem = format!("{} endpoints, more than {MAX_ADDITIONAL}", more.len());
        return Err(json::field("additionalEndpoints", problem));
    }
    let mut registrations = vec![main];
    for (name, Registration { host, port, .. }) in more {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(json::field(
                &additional(name),
                "the name of a port is empty, or has control characters",
            ));
        }
        registrations.push(Registration {
            host,
            port,
            port_name: name.to_owned(),
            ..registrations[0].clone()
        });
    }
    Ok(registrations)
}

/// `{"host", "port", "inet"?, "inet6"?}`. The latter two are the host's addresses, as its publisher
/// resolved it; one of them spares looking the name up, and two would count the instance twice.
fn endpoint(value: &Value, field: &str, remarks: &mut Vec<String>) -> Result<Registration, DecodeError> {
    let Value::Object(object) = value else { return Err(json::field(field, "not an object")) };
    let port_field = format!("{field}.port");
    let port = json::port(json::required(object, "port", &port_field)?, &port_field)?;
    let host_field = format!("{field}.host");
    let host = json::required(object, "host", &host_field)?;
    let host = host.as_str().ok_or_else(|| json::field(&host_field, "not a string"))?;
    let host = json::host(host, &host_field)?;
    let host = match host {
        Host::Name(_) => ["inet", "inet6"]
            .into_iter()
            .find_map(|key| resolved(object, key, field, remarks))
            .map_or(host, Host::Ip),
        Host::Ip(_) => host,
    };
    Ok(Registration::new(host, port))
}

fn resolved(
    object: &Map<String, Value>,
    key: &str,
    field: &str,
    remarks: &mut Vec<String>,
) -> Option<IpAddr> {
    let text = object.get(key)?.as_str()?;
    let address = text.parse().ok().and_then(|address| usable(address).ok());
    if address.is_none() {
        remarks.push(format!("field \"{field}.{key}\": {text:?} is not a usable address, and is ignored"));
    }
    address
}

/// What a status means. One that is not known is taken for the safe side.
pub(super) fn state(word: &str, remarks: &mut Vec<String>) -> State {
    match word.to_ascii_uppercase().as_str() {
        "ALIVE" => State::Up,
        "WARNING" => State::Degraded,
        "STARTING" => State::NotReady,
        "STOPPING" => State::Draining,
        "STOPPED" | "DEAD" => State::Down,
        _ => {
            remarks.push(format!("field \"status\": {word:?} is unknown, and counts as not ready"));
            State::NotReady
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIVE: &str = r#"{"serviceEndpoint":{"host":"10.0.0.1","port":31623},
        "additionalEndpoints":{"http":{"host":"10.0.0.1","port":31623},"health":{"host":"10.0.0.1","port":31863}},
        "status":"ALIVE","shard":7,"metadata":{"zone":"a"}}"#;

    fn ok(data: &str) -> Decoded {
        decode(data.as_bytes()).unwrap_or_else(|error| panic!("{data}: {error}"))
    }

    fn with(more: &str) -> Decoded {
        ok(&format!(r#"{{"serviceEndpoint":{{"host":"10.0.0.1","port":80}}{more}}}"#))
    }

    #[test]
    fn a_full_registration() {
        let decoded = ok(ALIVE);
        let ports: Vec<_> = decoded.registrations.iter().map(|r| (r.port_name.as_str(), r.port)).collect();
        assert_eq!(ports, [("", 31623), ("health", 31863), ("http", 31623)]);
        for registration in &decoded.registrations {
            assert_eq!(registration.state, State::Up);
            assert_eq!(registration.labels["zone"], "a");
            assert_eq!(registration.labels["shard"], "7");
        }
        assert!(decoded.remarks.is_empty());
    }

    #[test]
    fn status_words() {
        for (status, state, remarks) in [
            ("", State::Up, 0),
            (r#","status":null"#, State::Up, 0),
            (r#","status":"ALIVE""#, State::Up, 0),
            (r#","status":"alive""#, State::Up, 0),
            (r#","status":"WARNING""#, State::Degraded, 0),
            (r#","status":"STARTING""#, State::NotReady, 0),
            (r#","status":"STOPPING""#, State::Draining, 0),
            (r#","status":"STOPPED""#, State::Down, 0),
            (r#","status":"DEAD""#, State::Down, 0),
            (r#","status":"HAPPY""#, State::NotReady, 1),
            (r#","status":{}"#, State::NotReady, 1),
        ] {
            let decoded = with(status);
            assert_eq!((decoded.registrations[0].state, decoded.remarks.len()), (state, remarks), "{status}");
        }
    }

    #[test]
    fn metadata_becomes_labels_and_weight() {
        let decoded = with(r#","metadata":{"a":"x","n":5,"t":true,"null":null,"deep":{},"weight":"2.5"}"#);
        let registration = &decoded.registrations[0];
        let labels: Vec<_> = registration.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(labels, [("a", "x"), ("n", "5"), ("t", "true")]);
        assert_eq!(registration.weight, Some(2.5));
        assert_eq!(decoded.remarks.len(), 1);
        for (metadata, weight) in [
            (r#"{"weight":0}"#, Some(0.0)),
            (r#"{"weight":-1}"#, Some(-1.0)),
            (r#"{"weight":"heavy"}"#, None),
            (r#"{"weight":"inf"}"#, None),
        ] {
            assert_eq!(
                with(&format!(r#","metadata":{metadata}"#)).registrations[0].weight,
                weight,
                "{metadata}"
            );
        }
        assert_eq!(with(r#","metadata":[]"#).remarks.len(), 1);
    }

    #[test]
    fn tolerated_oddities() {
        let decoded = ok(" {\"x\":1, \"serviceEndpoint\":{\"port\":\"80\",\"host\":\"10.0.0.1\"}}\n\0");
        assert_eq!(decoded.registrations[0].port, 80);
        assert!(decoded.remarks.is_empty());
        assert_eq!(ok(&format!("{ALIVE}}}garbage")).remarks, ["8 bytes follow the JSON value"]);
        assert!(!with(r#","shard":"x""#).registrations[0].labels.contains_key("shard"));
        assert_eq!(with(r#","shard":"12""#).registrations[0].labels["shard"], "12");
        assert_eq!(with(r#","additionalEndpoints":null"#).registrations.len(), 1);
    }

    #[test]
    fn a_member_has_so_many_endpoints_and_no_more() {
        let many = |count: usize| {
            let named = (0..count).map(|name| format!(r#""p{name}":{{"host":"10.0.0.1","port":81}}"#));
            let named = named.collect::<Vec<_>>().join(",");
            let data = format!(
                r#"{{"serviceEndpoint":{{"host":"10.0.0.1","port":80}},"additionalEndpoints":{{{named}}}}}"#
            );
            decode(data.as_bytes()).map(|decoded| decoded.registrations.len())
        };
        assert_eq!(many(MAX_ADDITIONAL).unwrap(), MAX_ADDITIONAL + 1);
        let error = many(MAX_ADDITIONAL + 1).unwrap_err().to_string();
        assert_eq!(error, "field \"additionalEndpoints\": 101 endpoints, more than 100");
    }

    #[test]
    fn a_name_with_its_address_is_not_looked_up() {
        let host = |endpoint: &str| {
            ok(&format!(r#"{{"serviceEndpoint":{endpoint}}}"#)).registrations[0].host.clone()
        };
        let v6 = r#"{"host":"api6.example","port":9090,"inet6":"2001:db8::15"}"#;
        assert_eq!(host(v6), Host::Ip("2001:db8::15".parse().unwrap()));
        let both = r#"{"host":"api.example","port":9090,"inet":"10.0.0.5","inet6":"2001:db8::15"}"#;
        assert_eq!(host(both), Host::Ip("10.0.0.5".parse().unwrap()));
        let bad = r#"{"host":"api.example","port":9090,"inet":"0.0.0.0"}"#;
        assert_eq!(host(bad), Host::Name("api.example".into()));
        assert_eq!(host(r#"{"host":"[::1]","port":1}"#), Host::Ip("::1".parse().unwrap()));
    }

    #[test]
    fn errors_name_the_field() {
        for (data, message) in [
            ("", "no data"),
            (" \0", "no data"),
            ("{", "not JSON: EOF"),
            ("[]", "not JSON: not an object"),
            ("10.0.0.1:80", "not JSON"),
            ("{}", "field \"serviceEndpoint\": missing"),
            (r#"{"serviceEndpoint":7}"#, "field \"serviceEndpoint\": not an object"),
            (r#"{"serviceEndpoint":{"port":80}}"#, "field \"serviceEndpoint.host\": missing"),
            (r#"{"serviceEndpoint":{"host":5,"port":80}}"#, "field \"serviceEndpoint.host\": not a string"),
            (r#"{"serviceEndpoint":{"host":"10.0.0.1"}}"#, "field \"serviceEndpoint.port\": missing"),
            (
                r#"{"serviceEndpoint":{"host":"10.0.0.1","port":0}}"#,
                "field \"serviceEndpoint.port\": 0: the port",
            ),
            (r#"{"serviceEndpoint":{"host":"10.0.0.1","port":80.5}}"#, "80.5: the port"),
            (r#"{"serviceEndpoint":{"host":"fe80::1%eth0","port":80}}"#, "scope id"),
            (
                r#"{"serviceEndpoint":{"host":"h","port":1},"additionalEndpoints":{"http":{"host":"h"}}}"#,
                "field \"additionalEndpoints.http.port\": missing",
            ),
            (
                r#"{"serviceEndpoint":{"host":"h","port":1},"additionalEndpoints":{"":{"host":"h","port":1}}}"#,
                "the name of a port",
            ),
            (
                r#"{"serviceEndpoint":{"host":"h","port":1},"additionalEndpoints":5}"#,
                "field \"additionalEndpoints\": not an object",
            ),
        ] {
            let error = decode(data.as_bytes()).expect_err(data).to_string();
            assert!(error.contains(message), "{data}: {error:?} does not contain {message:?}");
        }
    }
}
