//! A member in Thrift's binary form:
//!
//! ```thrift
//! struct Endpoint { 1: string host, 2: i32 port }
//! struct ServiceInstance {
//!   1: Endpoint serviceEndpoint, 2: map<string, Endpoint> additionalEndpoints, 3: Status status,
//!   4: optional i32 shard
//! }
//! ```
//!
//! As Thrift's own readers do, this one skips fields of other numbers or types.

use super::member::{self, additional};
use crate::sources::{
    address::parse_port,
    format::{
        DecodeError, Decoded, Registration, SHARD, json,
        thrift::{Kind, Reader},
    },
};

/// By their numbers.
const STATUS: [&str; 6] = ["DEAD", "STARTING", "ALIVE", "STOPPING", "STOPPED", "WARNING"];

pub(super) fn decode(data: &[u8]) -> Result<Decoded, DecodeError> {
    let mut reader = Reader::new(data);
    let mut remarks = Vec::new();
    let (mut main, mut more, mut status, mut shard) = (None, Vec::new(), None, None);
    while let Some(field) = reader.field()? {
        match field {
            (Kind::Struct, 1) => main = Some(endpoint(&mut reader, "serviceEndpoint")?),
            (Kind::Map, 2) => more = endpoints(&mut reader)?,
            (Kind::I32, 3) => status = Some(reader.i32()?),
            (Kind::I32, 4) => shard = Some(reader.i32()?),
            (kind, _) => reader.skip(kind)?,
        }
    }
    if reader.rest() > 0 {
        remarks.push(format!("{} bytes follow the Thrift structure", reader.rest()));
    }
    let mut main = main.ok_or_else(|| json::field("serviceEndpoint", "missing"))?;
    if let Some(number) = status {
        let word = usize::try_from(number).ok().and_then(|number| STATUS.get(number));
        main.state = member::state(word.map_or(number.to_string().as_str(), |word| *word), &mut remarks);
    }
    if let Some(shard) = shard {
        main.labels.insert(SHARD.to_owned(), shard.to_string());
    }
    Ok(Decoded { remarks, ..Decoded::of(member::all(main, more)?) })
}

fn endpoints<'a>(reader: &mut Reader<'a>) -> Result<Vec<(&'a str, Registration)>, DecodeError> {
    let (key, value, size) = reader.map()?;
    if (key, value) != (Kind::Text, Kind::Struct) {
        return Err(json::field("additionalEndpoints", "not a map of names and endpoints"));
    }
    let mut endpoints = Vec::new();
    for _ in 0..size {
        let name = reader.text()?;
        endpoints.push((name, endpoint(reader, &additional(name))?));
    }
    Ok(endpoints)
}

fn endpoint(reader: &mut Reader<'_>, name: &str) -> Result<Registration, DecodeError> {
    let (mut host, mut port) = (None, None);
    while let Some(field) = reader.field()? {
        match field {
            (Kind::Text, 1) => host = Some(reader.text()?),
            (Kind::I32, 2) => port = Some(reader.i32()?),
            (kind, _) => reader.skip(kind)?,
        }
    }
    let (host_field, port_field) = (format!("{name}.host"), format!("{name}.port"));
    let host = host.ok_or_else(|| json::field(&host_field, "missing"))?;
    let port = port.ok_or_else(|| json::field(&port_field, "missing"))?.to_string();
    let port = parse_port(&port).map_err(|problem| json::field(&port_field, format!("{port}: {problem}")))?;
    Ok(Registration::new(json::host(host, &host_field)?, port))
}

#[cfg(test)]
mod tests {
    use tower_proto::v1::endpoint::State;

    use super::*;
    use crate::sources::address::Host;

    /// As an old writer left it: h1.example:31001, http at 8080, alive, shard 7.
    const SAMPLE: &str = "0c0001 0b0001 0000000a 68312e6578616d706c65 080002 00007919 00 \
        0d0002 0b0c 00000001 00000004 68747470 0b0001 0000000a 68312e6578616d706c65 080002 00001f90 00 \
        080003 00000002 080004 00000007 00";

    /// `10.0.0.1:80`, and nothing else.
    const BARE: &str = "0c0001 0b0001 00000008 31302e302e302e31 080002 00000050 00 00";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    #[test]
    fn the_sample() {
        let decoded = decode(&bytes(SAMPLE)).unwrap();
        assert_eq!(decoded.remarks, [""; 0]);
        let [main, http] = &decoded.registrations[..] else { panic!("{decoded:?}") };
        assert_eq!((&main.host, main.port), (&Host::Name("h1.example".into()), 31001));
        assert_eq!((main.state, main.labels["shard"].as_str()), (State::Up, "7"));
        assert_eq!((http.port, http.port_name.as_str(), http.state), (8080, "http", State::Up));
    }

    #[test]
    fn what_is_not_known_is_skipped() {
        let bare = decode(&bytes(BARE)).unwrap();
        // A set, a field of another type, and fields of the future.
        for (before_stop, state) in [
            ("", State::Up),
            ("0e0009 0b 00000001 00000001 61", State::Up),
            ("0b0003 00000005 414c495645", State::Up),
            ("0c0063 0c0001 00 0f0002 08 00000001 00000005 00", State::Up),
            ("080003 00000001", State::NotReady),
            ("080003 00000005", State::Degraded),
            ("080003 00000000", State::Down),
        ] {
            let decoded = decode(&bytes(&format!("{}{before_stop} 00", &BARE[..BARE.len() - 2]))).unwrap();
            assert_eq!(decoded.registrations[0].host, bare.registrations[0].host);
            assert_eq!(decoded.registrations[0].state, state, "{before_stop}");
        }
        let odd = decode(&bytes(&format!("{} 080003 00000009 00 aa", &BARE[..BARE.len() - 2]))).unwrap();
        assert_eq!(odd.registrations[0].state, State::NotReady);
        assert_eq!(odd.remarks.len(), 2, "{odd:?}");
    }

    #[test]
    fn errors_name_byte_or_field() {
        for (hex, message) in [
            ("0c0001", "byte 3: the data end here"),
            ("0c0001 00 00", "field \"serviceEndpoint.host\": missing"),
            ("00", "field \"serviceEndpoint\": missing"),
            ("0c0001 0b0001 00000001 68 00 00", "field \"serviceEndpoint.port\": missing"),
            ("0c0001 0b0001 00000001 68 080002 00010000 00 00", "field \"serviceEndpoint.port\": 65536"),
            ("0c0001 0b0001 00000001 20 080002 00000050 00 00", "field \"serviceEndpoint.host\": \" \""),
            ("0c0001 0b0001 00000001 ff", "byte 10: a text that is not UTF-8"),
            ("0d0002 0808 00000001", "field \"additionalEndpoints\": not a map"),
            ("0d0002 0b0c 00000001 00000001 61 00", "field \"additionalEndpoints.a.host\": missing"),
        ] {
            let error = decode(&bytes(hex)).expect_err(hex).to_string();
            assert!(error.contains(message), "{hex}: {error:?} does not contain {message:?}");
        }
        // However it is cut, or a byte of it changed, it is read or refused.
        let whole = bytes(SAMPLE);
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut]).is_err(), "cut at {cut}");
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[cut] ^= 1 << bit;
                let _ = decode(&changed);
            }
        }
    }
}
