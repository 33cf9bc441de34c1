//! What identifies an endpoint, and what is published of it.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;
use prost::Message;
use tower_proto::v1;

use crate::sources::format::Registration;

/// Two registrations with the same key are the same endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sources) struct EndpointKey {
    pub(in crate::sources) service: Arc<str>,
    pub(in crate::sources) address: IpAddr,
    pub(in crate::sources) port: u16,
    pub(in crate::sources) port_name: Arc<str>,
}

impl EndpointKey {
    pub(super) fn new(service: &Arc<str>, address: IpAddr, registration: &Registration) -> Self {
        Self {
            service: service.clone(),
            address,
            port: registration.port,
            port_name: registration.port_name.as_str().into(),
        }
    }
}

/// `host:port[/port name]`, with brackets around IPv6.
impl fmt::Display for EndpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", SocketAddr::new(self.address, self.port))?;
        if self.port_name.is_empty() { Ok(()) } else { write!(f, "/{}", self.port_name) }
    }
}

/// Whether an endpoint in this state, and of this weight, takes traffic: one that does not has announced that
/// it may go.
pub(super) fn takes_traffic(state: v1::endpoint::State, weight: Option<f64>) -> bool {
    let in_service = match state {
        v1::endpoint::State::Unspecified | v1::endpoint::State::Up | v1::endpoint::State::Degraded => true,
        v1::endpoint::State::Draining | v1::endpoint::State::NotReady | v1::endpoint::State::Down => false,
    };
    in_service && weight.is_none_or(|weight| weight > 0.0)
}

/// The encoded [`v1::Endpoint`]. Equal registrations have equal bytes.
pub(super) fn body(address: IpAddr, registration: &Registration) -> Bytes {
    let Registration { zone, region, sub_zone, .. } = registration;
    let somewhere = [zone, region, sub_zone].iter().any(|name| !name.is_empty());
    v1::Endpoint {
        address: address.to_string(),
        port: registration.port.into(),
        port_name: registration.port_name.clone(),
        locality: somewhere.then(|| v1::Locality {
            region: region.clone(),
            zone: zone.clone(),
            sub_zone: sub_zone.clone(),
        }),
        weight: registration.weight,
        state: registration.state.into(),
        labels: registration.labels.clone(),
    }
    .encode_to_vec()
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::address::HostPort;

    #[test]
    fn names_are_addresses_with_brackets_and_port_names() {
        for (text, port_name, name) in [
            ("10.0.0.1:80", "", "10.0.0.1:80"),
            ("10.0.0.1:80", "admin", "10.0.0.1:80/admin"),
            ("[2001:db8:0::5]:80", "", "[2001:db8::5]:80"),
        ] {
            let HostPort { host, port, .. } = HostPort::parse(text).unwrap();
            let crate::sources::address::Host::Ip(address) = host.clone() else { panic!("{host:?}") };
            let mut registration = Registration::new(host, port);
            registration.port_name = port_name.to_owned();
            assert_eq!(EndpointKey::new(&"web".into(), address, &registration).to_string(), name);
            let body = v1::Endpoint::decode(body(address, &registration)).unwrap();
            assert_eq!(body.address, address.to_string(), "no brackets in the body");
            assert!(body.locality.is_none() && body.state() == v1::endpoint::State::Up);
        }
    }
}
