//! The bytes of a source's last good state.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use prost::Message;
use tower_common::sealed::{Kind, SealError};

use crate::sources::model::{EndpointKey, Place, Position, Saved, SavedEndpoint, SavedEntry};

const KIND: Kind = Kind { magic: b"TOWRSRCE", format: 1 };

/// Why a file is not the last good state of a source.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormatError {
    #[error("it cannot be read: {0}")]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("its payload cannot be decoded: {0}")]
    Payload(#[from] prost::DecodeError),
    #[error("{0:?} in it is not an address")]
    Address(String),
    #[error("port {0} in it is not one")]
    Port(u32),
    #[error("an entry in it claims endpoint {0}, and there are not so many")]
    Claim(u32),
    #[error("it belongs to the scope {actual:?}, and this process to {expected:?}")]
    Scope { expected: String, actual: String },
}

#[derive(Clone, PartialEq, Message)]
struct SourceState {
    #[prost(string, tag = "1")]
    scope: String,
    #[prost(string, tag = "2")]
    incarnation: String,
    #[prost(uint64, tag = "3")]
    index: u64,
    #[prost(message, repeated, tag = "4")]
    places: Vec<PlaceState>,
    #[prost(message, repeated, tag = "5")]
    entries: Vec<EntryState>,
    #[prost(message, repeated, tag = "6")]
    endpoints: Vec<EndpointState>,
    #[prost(string, repeated, tag = "7")]
    services: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    names: Vec<NameState>,
}

#[derive(Clone, PartialEq, Message)]
struct PlaceState {
    #[prost(string, tag = "1")]
    path: String,
    #[prost(string, tag = "2")]
    service: String,
    #[prost(uint64, tag = "3")]
    created: u64,
    #[prost(uint64, tag = "4")]
    changed: u64,
}

#[derive(Clone, PartialEq, Message)]
struct EntryState {
    #[prost(string, tag = "1")]
    path: String,
    #[prost(string, tag = "2")]
    place: String,
    #[prost(string, tag = "3")]
    service: String,
    #[prost(uint64, tag = "4")]
    rank: u64,
    #[prost(uint64, tag = "5")]
    index: u64,
    /// Places in the list of endpoints.
    #[prost(uint32, repeated, tag = "6")]
    claimed: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct EndpointState {
    #[prost(string, tag = "1")]
    service: String,
    #[prost(string, tag = "2")]
    address: String,
    #[prost(uint32, tag = "3")]
    port: u32,
    #[prost(string, tag = "4")]
    port_name: String,
    #[prost(uint64, tag = "5")]
    index: u64,
    #[prost(bytes = "bytes", tag = "6")]
    body: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct NameState {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "2")]
    addresses: Vec<String>,
}

/// The bytes of a file.
pub(super) fn encode(saved: &Saved, scope: &str) -> Vec<u8> {
    // Endpoints are sorted by their keys.
    let number = |key: &EndpointKey| {
        let found = saved.endpoints.binary_search_by(|endpoint| endpoint.key.cmp(key));
        found.ok().and_then(|number| u32::try_from(number).ok())
    };
    let state = SourceState {
        scope: scope.to_owned(),
        incarnation: saved.position.incarnation.clone(),
        index: saved.position.index,
        places: saved
            .places
            .iter()
            .map(|Place { path, service, created, changed }| PlaceState {
                path: path.to_string(),
                service: service.to_string(),
                created: *created,
                changed: *changed,
            })
            .collect(),
        entries: saved
            .entries
            .iter()
            .map(|SavedEntry { path, place, service, rank, index, claimed }| EntryState {
                path: path.to_string(),
                place: place.to_string(),
                service: service.to_string(),
                rank: *rank,
                index: *index,
                claimed: claimed.iter().filter_map(number).collect(),
            })
            .collect(),
        endpoints: saved
            .endpoints
            .iter()
            .map(|SavedEndpoint { key, index, body }| EndpointState {
                service: key.service.to_string(),
                address: key.address.to_string(),
                port: key.port.into(),
                port_name: key.port_name.to_string(),
                index: *index,
                body: body.clone(),
            })
            .collect(),
        services: saved.services.iter().map(ToString::to_string).collect(),
        names: saved
            .names
            .iter()
            .map(|(name, addresses)| NameState {
                name: name.to_string(),
                addresses: addresses.iter().map(ToString::to_string).collect(),
            })
            .collect(),
    };
    KIND.seal(|file| state.encode(file).expect("a vector grows as needed"))
}

/// Reads the bytes of a file.
pub(super) fn decode(file: &[u8], scope: &str) -> Result<Saved, FormatError> {
    let state = SourceState::decode(KIND.open(file)?)?;
    if state.scope != scope {
        return Err(FormatError::Scope { expected: scope.to_owned(), actual: state.scope });
    }
    let endpoints = state.endpoints.into_iter().map(endpoint).collect::<Result<Vec<_>, _>>()?;
    let entries = state.entries.into_iter().map(|entry| {
        let key = |number: u32| {
            let endpoint = usize::try_from(number).ok().and_then(|number| endpoints.get(number));
            endpoint.map(|endpoint| endpoint.key.clone()).ok_or(FormatError::Claim(number))
        };
        Ok(SavedEntry {
            claimed: entry.claimed.into_iter().map(key).collect::<Result<_, _>>()?,
            path: entry.path.into(),
            place: entry.place.into(),
            service: entry.service.into(),
            rank: entry.rank,
            index: entry.index,
        })
    });
    let entries = entries.collect::<Result<_, FormatError>>()?;
    let names = state.names.into_iter().map(|NameState { name, addresses }| {
        let addresses = addresses.iter().map(|text| address(text)).collect::<Result<_, _>>()?;
        Ok((Arc::from(name), addresses))
    });
    Ok(Saved {
        position: Position { incarnation: state.incarnation, index: state.index },
        places: state
            .places
            .into_iter()
            .map(|PlaceState { path, service, created, changed }| Place {
                path: path.into(),
                service: service.into(),
                created,
                changed,
            })
            .collect(),
        entries,
        names: names.collect::<Result<_, FormatError>>()?,
        services: state.services.into_iter().map(Arc::from).collect(),
        endpoints,
    })
}

fn endpoint(state: EndpointState) -> Result<SavedEndpoint, FormatError> {
    let key = EndpointKey {
        service: state.service.into(),
        address: address(&state.address)?,
        port: u16::try_from(state.port).map_err(|_| FormatError::Port(state.port))?,
        port_name: state.port_name.into(),
    };
    Ok(SavedEndpoint { key, index: state.index, body: state.body })
}

fn address(text: &str) -> Result<IpAddr, FormatError> {
    text.parse().map_err(|_| FormatError::Address(text.to_owned()))
}
