//! Addresses as people and programs write them: `host:port`, with all the ways IPv6 is written.

use std::{net::IpAddr, sync::Arc};

/// A name longer than this is not one of DNS.
const MAX_NAME_BYTES: usize = 253;

/// Where an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// An address. Never unspecified, never multicast, never link-local IPv6; IPv4 is never written as IPv6.
    Ip(IpAddr),
    /// A name, in lower case, that the source resolves.
    Name(Arc<str>),
}

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAddress {
    /// Nothing there.
    #[error("empty")]
    Empty,
    /// No colon.
    #[error("no colon between host and port")]
    NoPort,
    /// The port is not a number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    BadPort,
    /// An opening bracket without a closing one before the port, or the reverse.
    #[error("the brackets around the host do not match")]
    Brackets,
    /// `fe80::1%eth0`: it means something on one machine only.
    #[error("an address with a scope id is of no use to others")]
    Scope,
    /// `fe80::…`: it is of use with a scope id only.
    #[error("an IPv6 link-local address is of no use to others")]
    LinkLocal,
    /// `0.0.0.0`, `::`, or multicast.
    #[error("the address is not one that a client can connect to")]
    Unusable,
    /// Neither an address nor a name.
    #[error("the host is neither an address nor a name")]
    BadHost,
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// 1 to 65535.
    pub port: u16,
    /// An IPv6 address stood there without brackets, so that its end is a guess.
    pub ambiguous: bool,
}

impl HostPort {
    /// Splits at the last colon, and strips brackets.
    ///
    /// # Errors
    /// If the text is not `host:port`.
    pub fn parse(text: &str) -> Result<Self, NotAnAddress> {
        if text.is_empty() {
            return Err(NotAnAddress::Empty);
        }
        let (host, port) = text.rsplit_once(':').ok_or(NotAnAddress::NoPort)?;
        if port.ends_with(']') {
            return Err(NotAnAddress::NoPort);
        }
        let port = parse_port(port)?;
        let bare = match (host.strip_prefix('['), host.strip_suffix(']')) {
            (Some(_), Some(_)) => {
                return Ok(Self { host: parse_v6(&host[1..host.len() - 1])?, port, ambiguous: false });
            }
            (None, None) => host,
            _ => return Err(NotAnAddress::Brackets),
        };
        Ok(Self { host: Host::parse(bare)?, port, ambiguous: bare.contains(':') })
    }
}

impl Host {
    /// An address without brackets, or a name.
    ///
    /// # Errors
    /// If the text is neither, or an address that nobody can connect to.
    pub fn parse(text: &str) -> Result<Self, NotAnAddress> {
        if text.contains('%') {
            return Err(NotAnAddress::Scope);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return usable(address).map(Self::Ip);
        }
        // A trailing dot says that the name is complete, which all of ours are.
        let name = text.strip_suffix('.').unwrap_or(text);
        let label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        // A last label of digits alone is a mistyped IPv4 address: there is no such top-level domain.
        let numeric = name.rsplit('.').next().is_some_and(|last| last.chars().all(|c| c.is_ascii_digit()));
        if name.len() > MAX_NAME_BYTES || numeric || !name.split('.').all(label) {
            return Err(if text.is_empty() { NotAnAddress::Empty } else { NotAnAddress::BadHost });
        }
        Ok(Self::Name(name.to_ascii_lowercase().into()))
    }
}

/// An address that others can connect to, in its one canonical form.
///
/// # Errors
/// If nobody can connect to it.
pub fn usable(address: IpAddr) -> Result<IpAddr, NotAnAddress> {
    let address = address.to_canonical();
    match address {
        _ if address.is_unspecified() || address.is_multicast() => Err(NotAnAddress::Unusable),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Err(NotAnAddress::LinkLocal),
        _ => Ok(address),
    }
}

/// A port in decimal digits.
///
/// # Errors
/// If it is not 1 to 65535.
pub fn parse_port(text: &str) -> Result<u16, NotAnAddress> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotAnAddress::BadPort);
    }
    text.parse().ok().filter(|port| *port != 0).ok_or(NotAnAddress::BadPort)
}

fn parse_v6(text: &str) -> Result<Host, NotAnAddress> {
    match Host::parse(text)? {
        host if text.contains(':') => Ok(host),
        _ => Err(NotAnAddress::Brackets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names() {
        for (text, host, port, ambiguous) in [
            ("10.0.0.1:80", "10.0.0.1", 80, false),
            ("[2001:db8::5]:8080", "2001:db8::5", 8080, false),
            ("2001:db8::5:8080", "2001:db8::5", 8080, true),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1", 80, false),
            ("127.0.0.1:65535", "127.0.0.1", 65535, false),
            ("10.0.0.1:0080", "10.0.0.1", 80, false),
        ] {
            let host = Host::Ip(host.parse().unwrap());
            assert_eq!(HostPort::parse(text), Ok(HostPort { host, port, ambiguous }), "{text}");
        }
        for (text, name) in [
            ("Api-1.Example.net:1", "api-1.example.net"),
            ("api.:1", "api"),
            ("userfeed-8a4e2be7:1", "userfeed-8a4e2be7"),
            ("a_b:1", "a_b"),
        ] {
            assert_eq!(HostPort::parse(text).unwrap().host, Host::Name(name.into()), "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        let long = format!("{}:1", "a".repeat(64));
        for (text, error) in [
            ("", NotAnAddress::Empty),
            ("host", NotAnAddress::NoPort),
            ("[::1]", NotAnAddress::NoPort),
            (":80", NotAnAddress::Empty),
            ("10.0.0.1:", NotAnAddress::BadPort),
            ("10.0.0.1:0", NotAnAddress::BadPort),
            ("10.0.0.1:65536", NotAnAddress::BadPort),
            ("10.0.0.1:+80", NotAnAddress::BadPort),
            ("10.0.0.1:8o", NotAnAddress::BadPort),
            ("[::1:80", NotAnAddress::Brackets),
            ("::1]:80", NotAnAddress::Brackets),
            ("[host]:80", NotAnAddress::Brackets),
            ("fe80::1%eth0:80", NotAnAddress::Scope),
            ("[fe80::1%eth0]:80", NotAnAddress::Scope),
            ("[fe80::1]:80", NotAnAddress::LinkLocal),
            ("0.0.0.0:80", NotAnAddress::Unusable),
            ("[::]:80", NotAnAddress::Unusable),
            ("224.0.0.1:80", NotAnAddress::Unusable),
            ("10.0.0.300:80", NotAnAddress::BadHost),
            ("10.0.0:80", NotAnAddress::BadHost),
            ("a..b:80", NotAnAddress::BadHost),
            ("a b:80", NotAnAddress::BadHost),
            ("ä:80", NotAnAddress::BadHost),
            (&long, NotAnAddress::BadHost),
        ] {
            assert_eq!(HostPort::parse(text), Err(error), "{text}");
        }
    }
}
