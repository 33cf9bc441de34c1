//! `host:port`, in the data or as the name of the member. The data wins if it is an address, because a
//! publisher can only correct that in place; otherwise it is noise, such as the address of its writer that
//! Curator leaves there.

use super::{DecodeError, Decoded, excerpt, kingpin::from_address, text};
use crate::sources::address::{HostPort, NotAnAddress};

pub(super) fn decode(name: &str, data: &[u8]) -> Result<Decoded, DecodeError> {
    decode_data(data).or_else(|by_data| {
        let parsed = HostPort::parse(name).map_err(|by_name| DecodeError::NoAddress {
            name: name.to_owned(),
            by_name,
            data: excerpt(data),
            by_data,
        })?;
        Ok(from_address(parsed))
    })
}

/// The address in the data.
pub(super) fn decode_data(data: &[u8]) -> Result<Decoded, NotAnAddress> {
    text(data).map_or(Err(NotAnAddress::BadHost), HostPort::parse).map(from_address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::address::Host;

    #[test]
    fn data_first_then_the_name() {
        for (name, data, address, port) in [
            ("10.0.0.1:80", &b""[..], "10.0.0.1", 80),
            ("member_0000000001", b"10.0.0.2:81", "10.0.0.2", 81),
            ("10.0.0.1:80", b"10.0.0.2:81\n", "10.0.0.2", 81),
            ("10.0.0.1:80", b"10.9.9.9", "10.0.0.1", 80),
            ("10.0.0.1:80", b"{\"a\":1}", "10.0.0.1", 80),
            ("10.0.0.1:80", &[0xff], "10.0.0.1", 80),
            ("[::1]:80", b"", "::1", 80),
        ] {
            let decoded = decode(name, data).unwrap();
            assert_eq!(decoded.registrations[0].host, Host::Ip(address.parse().unwrap()), "{name}");
            assert_eq!(decoded.registrations[0].port, port);
        }
        let error = decode("x", b"10.0.0.1:0").unwrap_err().to_string();
        assert!(error.contains("data \"10.0.0.1:0\": the port is not a number"), "{error}");
    }
}
