//! Apache Curator's x-discovery, and Spring Cloud Zookeeper, which writes the same with a payload of its own.
//!
//! Service and instance are what the path says: the JSON's `name` and `id` are not looked at. Neither is
//! `@class`: it names a Java class, and is no business of ours.

use serde_json::{Map, Value};
use tower_proto::v1::endpoint::State;

use super::{
    DecodeError, Decoded, Registration, json,
    metadata::{self, Labels},
};

/// The port name of an instance's TLS port, if it has another port too.
const TLS_PORT: &str = "https";

/// Spring's word for whether an instance wants traffic.
const STATUS: &str = "instance_status";

pub(super) fn decode(data: &[u8]) -> Result<Decoded, DecodeError> {
    let mut remarks = Vec::new();
    let object = json::object(data, &mut remarks)?;
    decode_object(&object, remarks)
}

/// [`decode`], of what has been parsed already.
pub(super) fn decode_object(
    object: &Map<String, Value>,
    mut remarks: Vec<String>,
) -> Result<Decoded, DecodeError> {
    let address = json::required(object, "address", "address")?;
    let address = address.as_str().ok_or_else(|| json::field("address", "not a string"))?;
    let host = json::host(address, "address")?;
    let (port, tls_port) = (port(object, "port")?, port(object, "sslPort")?);
    let main_port = port.or(tls_port).ok_or_else(|| {
        json::field("port", "missing, and so is \"sslPort\": there is nowhere to connect to")
    })?;
    let mut main = Registration::new(host, main_port);
    let (mut labels, field) = labels(object.get("payload"), &mut remarks);
    main.state = state(object.get("enabled"), labels.remove(STATUS), field, &mut remarks);
    main.weight = metadata::take_weight(&mut labels, field, &mut remarks);
    main.labels = labels;
    let tls = port.and(tls_port).map(|tls_port| Registration {
        port: tls_port,
        port_name: TLS_PORT.to_owned(),
        ..main.clone()
    });
    let registrations = std::iter::once(main).chain(tls).collect();
    Ok(Decoded { remarks, ..Decoded::of(registrations) })
}

/// A port that may be absent.
fn port(object: &Map<String, Value>, key: &str) -> Result<Option<u16>, DecodeError> {
    object.get(key).filter(|value| !value.is_null()).map(|value| json::port(value, key)).transpose()
}

/// The labels in a payload, and where they stand: Spring has them in `metadata`; what others write is theirs
/// as a whole. A payload that is no object says nothing that a label could hold.
fn labels(payload: Option<&Value>, remarks: &mut Vec<String>) -> (Labels, &'static str) {
    let Some(Value::Object(payload)) = payload else { return (Labels::new(), "payload") };
    match payload.get("metadata") {
        Some(metadata) => {
            const FIELD: &str = "payload.metadata";
            (metadata::labels(Some(metadata), FIELD, remarks), FIELD)
        }
        None => {
            let mut labels = metadata::labels_of(payload, "payload", remarks);
            labels.remove("@class");
            (labels, "payload")
        }
    }
}

/// An instance that is disabled or out of service is one whose end is announced: it lives, and is to get no
/// new requests.
fn state(enabled: Option<&Value>, status: Option<String>, field: &str, remarks: &mut Vec<String>) -> State {
    if enabled.and_then(json::scalar).is_some_and(|enabled| enabled == "false") {
        return State::Draining;
    }
    let status = status.unwrap_or_default();
    match status.trim().to_ascii_uppercase().as_str() {
        "" | "UP" => State::Up,
        "OUT_OF_SERVICE" => State::Draining,
        "STARTING" => State::NotReady,
        "DOWN" => State::Down,
        _ => {
            remarks
                .push(format!("field \"{field}.{STATUS}\": {status:?} is unknown, and counts as not ready"));
            State::NotReady
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::address::Host;

    fn ok(data: &str) -> Decoded {
        decode(data.as_bytes()).unwrap_or_else(|error| panic!("{data}: {error}"))
    }

    fn with(more: &str) -> Decoded {
        ok(&format!(r#"{{"name":"orders","id":"x","address":"10.2.0.17","port":8080{more}}}"#))
    }

    fn ip(text: &str) -> Host {
        Host::Ip(text.parse().unwrap())
    }

    #[test]
    fn a_full_registration_of_curator() {
        let decoded = ok(
            r#"{"name":"orders","id":"2f1c6f0e-8a3b-4d0e-9a0e-1f2d3c4b5a69","address":"10.2.0.17","port":8080,
            "sslPort":8443,"payload":null,"registrationTimeUTC":1752900000123,"serviceType":"DYNAMIC",
            "uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false}]}}"#,
        );
        let [main, tls] = &decoded.registrations[..] else { panic!("{decoded:?}") };
        assert_eq!((&main.host, main.port, main.port_name.as_str()), (&ip("10.2.0.17"), 8080, ""));
        assert_eq!((&tls.host, tls.port, tls.port_name.as_str()), (&ip("10.2.0.17"), 8443, "https"));
        assert!(main.labels.is_empty() && main.state == State::Up && decoded.remarks.is_empty());
    }

    #[test]
    fn a_full_registration_of_spring() {
        let decoded = ok(
            r#"{"name":"cart","id":"5b7e","address":"cart-1.example","port":8081,"sslPort":null,
            "payload":{"@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance","id":"cart-1",
            "name":"cart","metadata":{"instance_status":"UP","version":"1.4","weight":"2.5","zone":"b"}},
            "registrationTimeUTC":1752900000456,"serviceType":"DYNAMIC","uriSpec":{"parts":[]}}"#,
        );
        let [main] = &decoded.registrations[..] else { panic!("{decoded:?}") };
        assert_eq!(
            (&main.host, main.port, main.state),
            (&Host::Name("cart-1.example".into()), 8081, State::Up)
        );
        let labels: Vec<_> = main.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(labels, [("version", "1.4"), ("zone", "b")]);
        assert_eq!(main.weight, Some(2.5));
    }

    #[test]
    fn a_tls_port_alone_is_the_main_port() {
        let decoded =
            ok(r#"{"id":"10.2.0.18:8080","address":"2001:db8:0:0:0:0:0:12","port":null,"sslPort":8443,
            "payload":{"@class":"com.example.Meta","zone":"b"},"uriSpec":null,"enabled":false}"#);
        let [main] = &decoded.registrations[..] else { panic!("{decoded:?}") };
        assert_eq!((&main.host, main.port, main.port_name.as_str()), (&ip("2001:db8::12"), 8443, ""));
        assert_eq!((main.state, main.labels["zone"].as_str(), main.labels.len()), (State::Draining, "b", 1));
    }

    #[test]
    fn payloads_of_all_kinds() {
        for payload in ["null", "\"hey\"", "7", "[1]", "{}", r#"{"@class":"x"}"#, r#"{"metadata":null}"#] {
            let decoded = with(&format!(r#","payload":{payload}"#));
            assert!(decoded.registrations[0].labels.is_empty() && decoded.remarks.is_empty(), "{payload}");
        }
        let odd = with(r#","payload":{"metadata":{"a":{},"weight":"much"}}"#);
        assert_eq!(odd.remarks.len(), 2, "{odd:?}");
        assert_eq!(odd.registrations[0].labels["weight"], "much");
    }

    #[test]
    fn statuses() {
        for (more, state, remarks) in [
            ("", State::Up, 0),
            (r#","enabled":true"#, State::Up, 0),
            (r#","enabled":null"#, State::Up, 0),
            (r#","enabled":"false""#, State::Draining, 0),
            (r#","payload":{"metadata":{"instance_status":""}}"#, State::Up, 0),
            (r#","payload":{"metadata":{"instance_status":"up"}}"#, State::Up, 0),
            (r#","payload":{"metadata":{"instance_status":"OUT_OF_SERVICE"}}"#, State::Draining, 0),
            (r#","payload":{"metadata":{"instance_status":"STARTING"}}"#, State::NotReady, 0),
            (r#","payload":{"metadata":{"instance_status":"DOWN"}}"#, State::Down, 0),
            (r#","payload":{"metadata":{"instance_status":"TIRED"}}"#, State::NotReady, 1),
        ] {
            let decoded = with(more);
            assert_eq!((decoded.registrations[0].state, decoded.remarks.len()), (state, remarks), "{more}");
            assert!(decoded.registrations[0].labels.is_empty(), "{more}");
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (data, message) in [
            ("", "no data"),
            // What Curator writes if it is given nothing.
            ("10.1.2.3", "not JSON"),
            ("{}", "field \"address\": missing"),
            (r#"{"address":7}"#, "field \"address\": not a string"),
            (r#"{"address":"h"}"#, "field \"port\": missing, and so is \"sslPort\""),
            (r#"{"address":"h","port":null,"sslPort":null}"#, "field \"port\": missing, and so is"),
            (r#"{"address":"h","port":0}"#, "field \"port\": 0: the port"),
            (r#"{"address":"h","port":1,"sslPort":70000}"#, "field \"sslPort\": 70000: the port"),
            (
                r#"{"address":"fe80:0:0:0:1%eth0","port":8080}"#,
                "field \"address\": \"fe80:0:0:0:1%eth0\": an address with a scope id",
            ),
            (r#"{"address":"fe80:0:0:0:0:0:0:1","port":8080}"#, "link-local"),
            (r#"{"address":"","port":8080}"#, "field \"address\": \"\": empty"),
        ] {
            let error = decode(data.as_bytes()).expect_err(data).to_string();
            assert!(error.contains(message), "{data}: {error:?} does not contain {message:?}");
        }
    }
}
