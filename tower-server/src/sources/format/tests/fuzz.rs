//! Whatever stands in a znode, it is read or refused, and what is read can be published.

use super::*;
use crate::sources::address::usable;

/// Members as they are found, of all formats: the name, the end of a line, the data.
const MEMBERS: [&[u8]; 9] = [
    b"2890a90311ce4d8aa0656bf1650d7e6c-10.86.5.55:8707\n10.86.5.55:8707",
    b"[2001:db8::5]:80\n",
    b"instance-1\nh1.example:80",
    br#"member_0000000001
{"serviceEndpoint":{"host":"h","port":1,"inet":"10.0.0.1"},
"additionalEndpoints":{"http":{"host":"h","port":2}},
"status":"ALIVE","shard":7,"metadata":{"zone":"a","weight":"2"}}"#,
    b"member_0000000002\n\
      \x0c\0\x01\x0b\0\x01\0\0\0\x01h\x08\0\x02\0\0\0\x50\0\
      \x0d\0\x02\x0b\x0c\0\0\0\x01\0\0\0\x04http\x0b\0\x01\0\0\0\x01h\x08\0\x02\0\0\x1f\x90\0\
      \x08\0\x03\0\0\0\x02\x08\0\x04\0\0\0\x07\0",
    b"member_0000000003\n\
      \x0c\0\x01\x0b\0\x01\0\0\0\x01h\x08\0\x02\0\0\0\x50\0\
      \x0f\0\x09\x0e\0\0\0\x01\x08\0\0\0\x01\0\0\0\x05\x0c\0\x0a\x0a\0\x01\0\0\0\0\0\0\0\x01\0\0",
    br#"vector_0000000001
{"vector":[{"select":"member=member_0000000007","weight":1.5,"priority":1},
{"select":"inet=10.0.0.3:1","weight":2},{"select":"shard=7","weight":-1.0}]}"#,
    br#"2f1c6f0e
{"name":"o","id":"i","address":"10.2.0.17","port":8080,"sslPort":8443,
"payload":{"@class":"x","metadata":{"instance_status":"UP","weight":"2"}},"uriSpec":null,"enabled":false}"#,
    br#"x
{"address":"2001:db8:0:0:0:0:0:12","port":null,"sslPort":8443,"payload":"hey"}"#,
];

const WORDS: [&str; 16] = [
    "{",
    "}",
    "[",
    "]",
    "\":",
    ",\"",
    "null",
    "\\u0000",
    "\"weight\":",
    "\"metadata\":",
    "\"payload\":",
    "\"serviceEndpoint\":",
    "\"address\":",
    "%eth0",
    "\u{0}",
    "\u{fffd}",
];

/// What the rest of Tower counts on.
fn check(decoded: &Decoded) {
    for registration in &decoded.registrations {
        assert_ne!(registration.port, 0);
        assert!(registration.weight.is_none_or(f64::is_finite));
        assert!(!registration.port_name.chars().any(char::is_control));
        if let Host::Ip(address) = registration.host {
            assert_eq!(usable(address), Ok(address));
        }
    }
    for rule in &decoded.weights {
        assert!(!matches!(rule.factor, Factor::Times(factor) if !factor.is_finite() || factor < 0.0));
    }
}

fn fuzz(format: Format) {
    tower_fuzz::fuzz(&format!("format {format}"), &MEMBERS, &WORDS, |input| {
        let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
        let (name, data) = (String::from_utf8_lossy(&input[..end]), input.get(end + 1..).unwrap_or_default());
        let decoded = format.is_member(&name).then(|| format.decode(&name, data)).transpose()?;
        decoded.iter().for_each(check);
        Ok::<_, DecodeError>(decoded.map(|decoded| (decoded.registrations.len(), decoded.remarks)))
    });
}

#[test]
fn auto() {
    fuzz(Format::Auto);
}

#[test]
fn kingpin() {
    fuzz(Format::Kingpin);
}

#[test]
fn serverset() {
    fuzz(Format::Serverset);
}

#[test]
fn curator() {
    fuzz(Format::Curator);
}

#[test]
fn hostport() {
    fuzz(Format::Hostport);
}
