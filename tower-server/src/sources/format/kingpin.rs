//! Pinterest KingPin: `<uuid4 in hex>-<host>:<port>`, or `<host>:<port>`. Of the two readers in KingPin
//! this is the tolerant one, except that only a hexadecimal prefix is cut off, so that host names with
//! dashes stay whole. The data is only looked at if the name is no address: publishers may put anything
//! there.

use super::{DecodeError, Decoded, Registration, excerpt, text};
use crate::sources::address::{HostPort, NotAnAddress};

pub(super) fn decode(name: &str, data: &[u8]) -> Result<Decoded, DecodeError> {
    let name = without_prefix(name);
    let parsed = HostPort::parse(name).or_else(|by_name| {
        text(data).map_or(Err(NotAnAddress::BadHost), HostPort::parse).map_err(|by_data| {
            DecodeError::NoAddress { name: name.to_owned(), by_name, data: excerpt(data), by_data }
        })
    })?;
    Ok(from_address(parsed))
}

/// An endpoint of which nothing but the address is known.
pub(super) fn from_address(HostPort { host, port, ambiguous }: HostPort) -> Decoded {
    let mut decoded = Decoded::of(vec![Registration::new(host, port)]);
    if ambiguous {
        decoded
            .remarks
            .push("an IPv6 address without brackets: the last colon was taken to end it".to_owned());
    }
    decoded
}

/// Without 14 to 36 hexadecimal digits and a dash.
fn without_prefix(name: &str) -> &str {
    match name.split_once('-') {
        Some((prefix, rest))
            if (14..=36).contains(&prefix.len())
                && prefix.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) =>
        {
            rest
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::address::Host;

    const UUID: &str = "2890a90311ce4d8aa0656bf1650d7e6c";

    fn host_port(name: &str, data: &[u8]) -> (String, u16) {
        let decoded = decode(name, data).unwrap_or_else(|error| panic!("{name}: {error}"));
        let [registration] = &decoded.registrations[..] else { panic!("{decoded:?}") };
        let host = match &registration.host {
            Host::Ip(address) => address.to_string(),
            Host::Name(name) => name.to_string(),
        };
        (host, registration.port)
    }

    #[test]
    fn names_as_they_are_found() {
        for (name, data, host, port) in [
            (format!("{UUID}-10.86.5.55:8707"), "10.86.5.55:8707", "10.86.5.55", 8707),
            (
                "69ca9daa191e40aab2c31d00aa11bb22-userfeed-8a4e2be7:8707".to_owned(),
                "",
                "userfeed-8a4e2be7",
                8707,
            ),
            ("10.86.5.77:8707".to_owned(), "", "10.86.5.77", 8707),
            ("01234567890abc-10.0.0.1:80".to_owned(), "", "10.0.0.1", 80),
            ("my-host:80".to_owned(), "", "my-host", 80),
            (format!("{UUID}-api.example.net:80"), "", "api.example.net", 80),
            (format!("{UUID}-[2001:db8::5]:80"), "", "2001:db8::5", 80),
            // Thirteen digits are not a prefix, and neither is upper case.
            ("0123456789abc-h:80".to_owned(), "", "0123456789abc-h", 80),
            ("0123456789ABCDEF-h:80".to_owned(), "", "0123456789abcdef-h", 80),
            // The name wins; the data is the way out.
            (format!("{UUID}-10.0.0.1:80"), "10.0.0.2:80", "10.0.0.1", 80),
            (format!("{UUID}-renamed"), " 10.0.0.2:80\n\0", "10.0.0.2", 80),
        ] {
            assert_eq!(host_port(&name, data.as_bytes()), (host.to_owned(), port), "{name}");
        }
    }

    #[test]
    fn an_ambiguous_address_is_remarked() {
        let decoded = decode(&format!("{UUID}-2001:db8::5:80"), b"").unwrap();
        assert_eq!(decoded.remarks.len(), 1);
    }

    #[test]
    fn errors_show_name_and_data() {
        let error = decode("readme", b"hello").unwrap_err().to_string();
        assert_eq!(
            error,
            "name \"readme\": no colon between host and port; data \"hello\": no colon between host and port"
        );
        assert!(decode("x", &[0xff, 0xfe]).is_err());
    }
}
