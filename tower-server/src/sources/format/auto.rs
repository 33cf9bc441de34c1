//! Whatever it is: each child is read as what it looks like, so that a directory may hold several formats
//! while a fleet moves from one to another.
//!
//! Data that are JSON or Thrift say by themselves what they are. All else is text, or noise beside a name that
//! says it all.

use serde_json::{Map, Value};

use super::{DecodeError, Decoded, curator, hostport, json, kingpin, serverset};

/// Lock recipes leave such siblings.
pub(super) fn is_member(name: &str) -> bool {
    !name.ends_with(".lock")
}

pub(super) fn decode(name: &str, data: &[u8]) -> Result<Decoded, DecodeError> {
    if serverset::is_binary(data) {
        return serverset::decode(name, data);
    }
    match data.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => {
            let mut remarks = Vec::new();
            let object = json::object(data, &mut remarks)?;
            by_keys(&object).map_or_else(
                // It is no address, but the name may be one: publishers may put anything beside that.
                || kingpin::decode(name, b"").map_err(|_| DecodeError::UnknownJson),
                |format| match format {
                    Json::Serverset => serverset::decode(name, data),
                    Json::Curator => curator::decode_object(&object, remarks),
                },
            )
        }
        // The data first, because a publisher can correct them in place.
        Some(_) => hostport::decode_data(data).map_or_else(|_| kingpin::decode(name, data), Ok),
        None => kingpin::decode(name, data),
    }
}

/// Formats in JSON.
enum Json {
    Serverset,
    Curator,
}

fn by_keys(object: &Map<String, Value>) -> Option<Json> {
    if object.contains_key("serviceEndpoint") || object.contains_key("vector") {
        Some(Json::Serverset)
    } else if object.contains_key("address") {
        Some(Json::Curator)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::address::Host;

    #[test]
    fn each_child_is_read_as_what_it_looks_like() {
        let thrift = b"\x0c\0\x01\x0b\0\x01\0\0\0\x0810.0.0.1\x08\0\x02\0\0\0\x50\0\0";
        for (name, data) in [
            ("2890a90311ce4d8aa0656bf1650d7e6c-10.0.0.1:80", &b""[..]),
            ("2890a90311ce4d8aa0656bf1650d7e6c-10.0.0.1:80", b"10.0.0.1:80"),
            ("2890a90311ce4d8aa0656bf1650d7e6c-10.0.0.1:80", b"{\"az\":\"a\"}"),
            ("10.0.0.1:80", b"\0"),
            ("10.0.0.1:80", b"10.9.9.9"),
            ("10.0.0.1:80", b"\xff"),
            ("instance-1", b" 10.0.0.1:80\n"),
            ("10.0.0.2:81", b"10.0.0.1:80"),
            ("member_0000000001", thrift),
            ("any-name", thrift),
            ("member_0000000001", br#"{"serviceEndpoint":{"host":"10.0.0.1","port":80}}"#),
            ("10.0.0.2:81", br#" {"address":"10.0.0.1","port":80,"payload":{"vector":1}}"#),
        ] {
            let decoded = decode(name, data).unwrap_or_else(|error| panic!("{name} {data:?}: {error}"));
            let [registration] = &decoded.registrations[..] else { panic!("{decoded:?}") };
            assert_eq!(registration.host, Host::Ip("10.0.0.1".parse().unwrap()), "{name} {data:?}");
            assert_eq!(registration.port, 80);
        }
        let vector = br#"{"vector":[{"select":"shard=1","weight":2}]}"#;
        assert_eq!(decode("vector_0000000001", vector).unwrap().weights.len(), 1);
    }

    #[test]
    fn errors_are_those_of_the_format_it_looks_like() {
        for (name, data, message) in [
            ("x", &b""[..], "name \"x\": no colon"),
            ("x", b"readme", "data \"readme\": no colon"),
            ("x", b"{", "not JSON"),
            ("x", b"[]", "not JSON: not an object"),
            ("x", b"{\"a\":1}", "JSON of no known format"),
            ("x", br#"{"address":"h"}"#, "field \"port\": missing"),
            ("x", br#"{"serviceEndpoint":{}}"#, "field \"serviceEndpoint.port\": missing"),
            ("vector_1", br#"{"vector":7}"#, "field \"vector\": not a list"),
            ("x", b"\x0c\0\x01", "not Thrift: byte 3"),
        ] {
            let error = decode(name, data).unwrap_err().to_string();
            assert!(error.contains(message), "{name} {data:?}: {error:?} does not contain {message:?}");
        }
    }

    #[test]
    fn locks_are_no_members() {
        assert!(is_member("10.0.0.1:80") && is_member("member_1") && is_member("vector_1"));
        assert!(!is_member("web.lock"));
    }
}
