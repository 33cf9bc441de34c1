//! Holds: which endpoints stay published though they are registered no more, and until when. Also what is
//! shown of them, and what is kept of them on disk.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::sizes::Shrink;
use crate::sources::model::EndpointKey;

/// So many endpoints of a hold are listed; the others are only counted.
const MAX_LISTED: usize = 100;

/// What shrank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Service(Arc<str>),
    Source,
}

/// One shrink that is held.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) scope: Scope,
    since: Instant,
    /// The same, for people: worked out once, so that it does not waver with the clocks.
    since_unix_ms: OnceCell<u64>,
    pub(super) largest: u64,
    pub(super) left: u64,
    /// Each with the time until which it stays.
    pub(super) endpoints: BTreeMap<EndpointKey, Instant>,
}

/// The same instant by two clocks: the one decides, the other is for people and for the disk.
#[derive(Debug, Clone, Copy)]
pub(in crate::sources) struct Now {
    pub(in crate::sources) at: Instant,
    pub(in crate::sources) unix_ms: u64,
}

impl Now {
    /// Now, by both clocks.
    pub(in crate::sources) fn read() -> Self {
        Self { at: tower_common::clock::monotonic(), unix_ms: tower_common::clock::unix_millis() }
    }

    fn to_unix_ms(self, instant: Instant) -> u64 {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let ahead = millis(instant.saturating_duration_since(self.at));
        let behind = millis(self.at.saturating_duration_since(instant));
        self.unix_ms.saturating_add(ahead).saturating_sub(behind)
    }

    /// A time to come. The wall clock may have been set meanwhile: never later than `longest` from now.
    fn to_deadline(self, unix_ms: u64, longest: Duration) -> Instant {
        self.at + Duration::from_millis(unix_ms.saturating_sub(self.unix_ms)).min(longest)
    }
}

/// A hold, as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HoldReport {
    /// Unique, also over restarts.
    pub id: String,
    /// The source.
    pub source: String,
    /// The service that shrank; none if the whole source did.
    pub service: Option<String>,
    /// When it began.
    pub since_unix_ms: u64,
    /// When the last of its endpoints passes, unless the source is out of touch then.
    pub ends_unix_ms: u64,
    /// How many endpoints were in service before.
    pub largest: u64,
    /// How many were left when it began.
    pub left: u64,
    /// How many endpoints it holds now.
    pub endpoint_count: usize,
    /// `service/host:port` of them; at most 100.
    pub endpoints: Vec<String>,
}

/// All that is kept of a guard on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sources) struct Record {
    pub(super) next_id: u64,
    pub(super) holds: Vec<HoldRecord>,
    /// Endpoints that were held, and have left since the last snapshot of what is published.
    pub(super) left: Vec<EndpointRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HoldRecord {
    pub(super) id: u64,
    service: Option<String>,
    since_unix_ms: u64,
    largest: u64,
    left: u64,
    endpoints: Vec<(EndpointRecord, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EndpointRecord {
    service: String,
    address: IpAddr,
    port: u16,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    port_name: String,
}

impl Record {
    /// Whether an endpoint that a snapshot may have has left since.
    pub(in crate::sources) fn has_left(&self, key: &EndpointKey) -> bool {
        self.left.contains(&key.into())
    }
}

impl Hold {
    pub(super) fn new(scope: Scope, since: Instant, Shrink { largest, left }: Shrink) -> Self {
        Self { scope, since, since_unix_ms: OnceCell::new(), largest, left, endpoints: BTreeMap::new() }
    }

    fn since_unix_ms(&self, now: Now) -> u64 {
        *self.since_unix_ms.get_or_init(|| now.to_unix_ms(self.since))
    }

    pub(super) fn report(&self, source: &str, id: u64, now: Now) -> HoldReport {
        let ends = self.endpoints.values().max().map_or(now.at, |until| *until);
        HoldReport {
            id: format!("{source}-{id}"),
            source: source.to_owned(),
            service: match &self.scope {
                Scope::Service(service) => Some(service.to_string()),
                Scope::Source => None,
            },
            since_unix_ms: self.since_unix_ms(now),
            ends_unix_ms: now.to_unix_ms(ends),
            largest: self.largest,
            left: self.left,
            endpoint_count: self.endpoints.len(),
            endpoints: self
                .endpoints
                .keys()
                .take(MAX_LISTED)
                .map(|key| format!("{}/{key}", key.service))
                .collect(),
        }
    }

    pub(super) fn to_record(&self, id: u64, now: Now) -> HoldRecord {
        HoldRecord {
            id,
            service: match &self.scope {
                Scope::Service(service) => Some(service.to_string()),
                Scope::Source => None,
            },
            since_unix_ms: self.since_unix_ms(now),
            largest: self.largest,
            left: self.left,
            endpoints: self
                .endpoints
                .iter()
                .map(|(key, until)| (key.into(), now.to_unix_ms(*until)))
                .collect(),
        }
    }

    /// The hold again, with the endpoints that are still published. None of them stays longer than `longest`.
    pub(super) fn from_record(
        record: &HoldRecord,
        published: &BTreeSet<EndpointKey>,
        longest: Duration,
        now: Now,
    ) -> Self {
        let endpoints = record.endpoints.iter().filter_map(|(key, ends_unix_ms)| {
            let key = published.get(&EndpointKey::from(key))?.clone();
            Some((key, now.to_deadline(*ends_unix_ms, longest)))
        });
        Self {
            scope: record.service.as_deref().map_or(Scope::Source, |service| Scope::Service(service.into())),
            since: now.at,
            since_unix_ms: OnceCell::from(record.since_unix_ms),
            largest: record.largest,
            left: record.left,
            endpoints: endpoints.collect(),
        }
    }
}

impl From<&EndpointKey> for EndpointRecord {
    fn from(key: &EndpointKey) -> Self {
        Self {
            service: key.service.to_string(),
            address: key.address,
            port: key.port,
            port_name: key.port_name.to_string(),
        }
    }
}

impl From<&EndpointRecord> for EndpointKey {
    fn from(record: &EndpointRecord) -> Self {
        Self {
            service: record.service.as_str().into(),
            address: record.address,
            port: record.port,
            port_name: record.port_name.as_str().into(),
        }
    }
}
