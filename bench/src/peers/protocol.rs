//! What clients of the peers say and hear. As with the simulated Beacons, what many receive is decoded once.

use std::rc::Rc;

use prost::Message as _;
use tower_proto::envoy::envoy::{
    config::{
        core::v3::{Address, Node, address, socket_address::PortSpecifier},
        endpoint::v3::{ClusterLoadAssignment, lb_endpoint::HostIdentifier},
    },
    service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse},
};

use crate::swarm::{connection::Kind, messages::framed};

/// The type of endpoints' assignments.
const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// The folder of all keys in etcd.
const FOLDER: &str = "/services/";

/// The first key that is not in it.
const AFTER_FOLDER: &str = "/services0";

/// What a client speaks.
#[derive(Debug, Clone)]
pub enum Protocol {
    /// xDS, aggregated and incremental: the assignments of these services.
    Discovery(Vec<String>),
    /// A watch of etcd, of all that there is.
    Watch,
    /// A subscription in NATS.
    Subscription,
}

/// The endpoint that is waited for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Its service.
    pub service: String,
    /// Its address.
    pub address: String,
    /// How many endpoints the service then has.
    pub endpoints: usize,
}

/// What a message amounts to.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// What to answer, framed for gRPC.
    pub answer: Option<Rc<[u8]>>,
    /// Services whose assignments are in it; or that the watch has begun.
    pub begun: usize,
    /// Whether what is waited for is in it.
    pub found: bool,
}

/// Decodes what is received.
#[derive(Debug)]
pub struct Decoder {
    protocol: Protocol,
    /// What was decoded last, for the same [`Wanted`]: mostly the next client receives the same.
    last: Option<(usize, Box<[u8]>, Heard)>,
}

impl Protocol {
    /// What there is at the other end.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Discovery(_) => Some(Kind::Other(
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
            )),
            Self::Watch => Some(Kind::Other("/etcdserverpb.Watch/Watch")),
            Self::Subscription => None,
        }
    }

    /// The first message of a client, framed for gRPC.
    pub fn opening(&self, number: usize) -> Vec<u8> {
        match self {
            Self::Discovery(services) => framed(&DeltaDiscoveryRequest {
                node: Some(Node { id: format!("host-{number:05}"), ..Default::default() }),
                type_url: ENDPOINTS.to_owned(),
                resource_names_subscribe: services.clone(),
                ..Default::default()
            }),
            Self::Watch => {
                let (key, range_end) = (FOLDER.as_bytes().to_vec(), AFTER_FOLDER.as_bytes().to_vec());
                let create = Some(WatchCreateRequest { key, range_end });
                framed(&WatchRequest { create })
            }
            Self::Subscription => Vec::new(),
        }
    }

    /// What must have begun before a client has all that there is.
    pub fn beginnings(&self) -> usize {
        match self {
            Self::Discovery(services) => services.len(),
            Self::Watch | Self::Subscription => 1,
        }
    }
}

impl Decoder {
    /// For clients that speak this.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, last: None }
    }

    /// Takes a message, while the so-and-so-many-th is waited for.
    ///
    /// # Errors
    /// If it is not what the server may say, or not what was to come.
    pub fn hear(&mut self, bytes: &[u8], number: usize, wanted: &Wanted) -> Result<Heard, String> {
        if let Some((at, last, heard)) = &self.last
            && (*at, &**last) == (number, bytes)
        {
            return Ok(heard.clone());
        }
        let heard = match self.protocol {
            Protocol::Discovery(_) => discovery(bytes, wanted)?,
            Protocol::Watch => watch(bytes, wanted)?,
            // What is published is told apart by when it comes.
            Protocol::Subscription => Heard { found: true, ..Heard::default() },
        };
        self.last = Some((number, bytes.into(), heard.clone()));
        Ok(heard)
    }
}

fn discovery(bytes: &[u8], wanted: &Wanted) -> Result<Heard, String> {
    let response = DeltaDiscoveryResponse::decode(bytes).map_err(|error| error.to_string())?;
    let mut found = false;
    for resource in &response.resources {
        let Some(any) = resource.resource.as_ref().filter(|_| resource.name == wanted.service) else {
            continue;
        };
        let assignment = ClusterLoadAssignment::decode(&any.value[..]).map_err(|error| error.to_string())?;
        let endpoints = || assignment.endpoints.iter().flat_map(|locality| &locality.lb_endpoints);
        let addresses = endpoints().filter_map(|endpoint| match &endpoint.host_identifier {
            Some(HostIdentifier::Endpoint(endpoint)) => text(endpoint.address.as_ref()?),
            _ => None,
        });
        found |= addresses.into_iter().any(|address| address == wanted.address);
        let count = endpoints().count();
        if found && count != wanted.endpoints {
            return Err(format!("{} has {count} endpoints, not {}", wanted.service, wanted.endpoints));
        }
    }
    let answer = framed(&DeltaDiscoveryRequest {
        type_url: response.type_url,
        response_nonce: response.nonce,
        ..Default::default()
    });
    Ok(Heard { answer: Some(answer.into()), begun: response.resources.len(), found })
}

fn text(address: &Address) -> Option<String> {
    let address::Address::SocketAddress(socket) = address.address.as_ref()? else { return None };
    let PortSpecifier::PortValue(port) = socket.port_specifier.as_ref()? else { return None };
    Some(format!("{}:{port}", socket.address))
}

fn watch(bytes: &[u8], wanted: &Wanted) -> Result<Heard, String> {
    let response = WatchResponse::decode(bytes).map_err(|error| error.to_string())?;
    if response.canceled {
        return Err("the watch is cancelled".to_owned());
    }
    let key = format!("{FOLDER}{}/{}", wanted.service, wanted.address);
    let mut pairs = response.events.iter().filter_map(|event| event.pair.as_ref());
    let found = pairs.any(|pair| pair.key == key.as_bytes());
    Ok(Heard { answer: None, begun: response.created.into(), found })
}

/// As much of `etcdserverpb.WatchRequest` as is said.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    create: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
}

/// As much of `etcdserverpb.WatchResponse` as is looked at.
#[derive(Clone, PartialEq, prost::Message)]
struct WatchResponse {
    #[prost(bool, tag = "3")]
    created: bool,
    #[prost(bool, tag = "4")]
    canceled: bool,
    #[prost(message, repeated, tag = "11")]
    events: Vec<WatchEvent>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WatchEvent {
    #[prost(message, optional, tag = "2")]
    pair: Option<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use tower_proto::envoy::{
        envoy::{
            config::{
                core::v3::SocketAddress,
                endpoint::v3::{Endpoint, LbEndpoint, LocalityLbEndpoints},
            },
            service::discovery::v3::Resource,
        },
        google::protobuf::Any,
    };

    use super::*;

    fn assignment(addresses: &[(&str, u32)]) -> Vec<u8> {
        let endpoint = |(address, port): &(&str, u32)| {
            let socket = SocketAddress {
                address: (*address).to_owned(),
                port_specifier: Some(PortSpecifier::PortValue(*port)),
                ..Default::default()
            };
            let address = Address { address: Some(address::Address::SocketAddress(socket)) };
            let endpoint = Endpoint { address: Some(address), ..Default::default() };
            LbEndpoint { host_identifier: Some(HostIdentifier::Endpoint(endpoint)), ..Default::default() }
        };
        let lb_endpoints = addresses.iter().map(endpoint).collect();
        let endpoints = vec![LocalityLbEndpoints { lb_endpoints, ..Default::default() }];
        let made = ClusterLoadAssignment { cluster_name: "web".into(), endpoints, ..Default::default() };
        let any = Any { type_url: ENDPOINTS.to_owned(), value: made.encode_to_vec() };
        DeltaDiscoveryResponse {
            resources: vec![Resource { name: "web".into(), resource: Some(any), ..Default::default() }],
            type_url: ENDPOINTS.to_owned(),
            nonce: "7".to_owned(),
            ..Default::default()
        }
        .encode_to_vec()
    }

    #[test]
    fn an_endpoint_is_found_in_a_complete_assignment_only() {
        let mut decoder = Decoder::new(Protocol::Discovery(vec!["web".to_owned()]));
        let wanted = Wanted { service: "web".into(), address: "127.0.0.2:80".into(), endpoints: 2 };
        let both = assignment(&[("127.0.0.1", 80), ("127.0.0.2", 80)]);
        let heard = decoder.hear(&both, 1, &wanted).unwrap();
        assert!(heard.found && heard.begun == 1);
        let said = DeltaDiscoveryRequest::decode(&heard.answer.unwrap()[5..]).unwrap();
        assert_eq!(said.response_nonce, "7");
        let next = Wanted { address: "127.0.0.3:80".into(), endpoints: 3, ..wanted.clone() };
        assert!(!decoder.hear(&both, 2, &next).unwrap().found);
        assert!(decoder.hear(&assignment(&[("127.0.0.2", 80)]), 1, &wanted).is_err());
    }

    #[test]
    fn a_key_is_found_by_who_watches() {
        let mut decoder = Decoder::new(Protocol::Watch);
        let wanted = Wanted { service: "web".into(), address: "127.0.0.1:80".into(), endpoints: 1 };
        let created = WatchResponse { created: true, ..Default::default() };
        assert_eq!(decoder.hear(&created.encode_to_vec(), 0, &wanted).unwrap().begun, 1);
        let event = |key: &str| {
            let pair = Some(KeyValue { key: key.into() });
            WatchResponse { events: vec![WatchEvent { pair }], ..Default::default() }.encode_to_vec()
        };
        assert!(decoder.hear(&event("/services/web/127.0.0.1:80"), 0, &wanted).unwrap().found);
        assert!(!decoder.hear(&event("/services/web/127.0.0.2:80"), 0, &wanted).unwrap().found);
    }
}
