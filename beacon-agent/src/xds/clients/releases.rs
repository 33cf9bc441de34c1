//! What became of the releases that the host holds, at all of its clients.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Serialize;
use tower_common::view::{Held, PartKind};
use tower_proto::v1;

use super::{Clients, Reason};
use crate::xds::{
    kind::ResourceType,
    standing::{Changes, Parts, Standing},
};

/// What one stream's client has of each service.
#[derive(Debug, Default)]
pub(super) struct StreamStandings {
    node_id: String,
    /// It is gRPC: it wants what its targets need, and nothing else.
    is_grpc: bool,
    /// The types that it has asked for.
    pub(super) types: BTreeSet<ResourceType>,
    by_service: BTreeMap<Arc<str>, Standing>,
}

/// What became of a service's assignment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReleaseStatus {
    /// The service.
    pub service: String,
    /// The release that the assignment gives to this host; empty is `default`, and `None` that this cannot be
    /// told.
    pub release: Option<String>,
    /// The release that is served.
    pub served: String,
    /// What became of it.
    pub state: ReleaseState,
    /// The client, the resource and the reason, if something is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ReleaseTrouble>,
    /// What is served otherwise than the release says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What is wrong with a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReleaseTrouble {
    /// The client's node id; empty if it is the Beacon itself.
    pub client: String,
    /// The resource's type.
    pub type_url: String,
    /// Its name.
    pub resource: String,
    /// Why.
    pub error: String,
}

/// As in [`v1::held_release::State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReleaseState {
    /// Composed; no client is connected that could accept it.
    Applied,
    /// Every client has accepted all of it.
    Accepted,
    /// Sent, and not yet accepted by every client.
    Pending,
    /// A client could not take it, for a reason of its host.
    Host,
    /// A client refused it, for its content.
    Rejected,
    /// It cannot be composed: the one before stays.
    Unknown,
}

impl Clients {
    /// What became of what the host holds, in the order of services.
    pub fn releases(&self, held: &BTreeMap<Arc<str>, Arc<Held>>) -> Vec<ReleaseStatus> {
        let streams = self.shared.standings.lock();
        let mut nodes: BTreeMap<&str, Vec<&StreamStandings>> = BTreeMap::new();
        for stream in streams.values() {
            nodes.entry(&stream.node_id).or_default().push(stream);
        }
        held.iter().map(|(service, held)| status(service, held, &nodes)).collect()
    }
}

impl StreamStandings {
    /// A stream of this node, of which nothing is known.
    pub(super) fn new(node_id: &str, is_grpc: bool) -> Self {
        Self { node_id: node_id.to_owned(), is_grpc, ..Self::default() }
    }

    /// Takes in what has changed.
    pub(super) fn change(&mut self, changes: Changes) {
        for (service, standing) in changes {
            match standing {
                Some(standing) => self.by_service.insert(service, standing),
                None => self.by_service.remove(&service),
            };
        }
    }
}

fn status(
    service: &Arc<str>,
    held: &Arc<Held>,
    nodes: &BTreeMap<&str, Vec<&StreamStandings>>,
) -> ReleaseStatus {
    let of_nodes = nodes.iter().filter_map(|(node_id, streams)| of_node(service, held, node_id, streams));
    let (state, trouble) = match &held.problem {
        Some(problem) => {
            let trouble = ReleaseTrouble { error: problem.to_string(), ..ReleaseTrouble::default() };
            (ReleaseState::Unknown, Some(trouble))
        }
        // The worst of all; of several that are as bad, the first client's.
        None => of_nodes.rev().max_by_key(|(state, _)| *state).unwrap_or((ReleaseState::Applied, None)),
    };
    ReleaseStatus {
        service: service.to_string(),
        release: held.assigned.as_ref().map(ToString::to_string),
        served: held.served.to_string(),
        state,
        trouble,
        notes: held.notes.clone(),
    }
}

/// What a client makes of a service, on all of its streams; `None` if that does not concern it.
fn of_node(
    service: &Arc<str>,
    held: &Arc<Held>,
    node_id: &str,
    streams: &[&StreamStandings],
) -> Option<(ReleaseState, Option<ReleaseTrouble>)> {
    let (mut asked, mut accepted, mut exempt) = (Parts::default(), Parts::default(), Parts::default());
    let mut trouble: Option<(ReleaseState, ReleaseTrouble)> = None;
    let mut behind = false;
    for stream in streams {
        // A stream that has not been polled since speaks of what was.
        let now = stream.by_service.get(service).filter(|standing| standing.held == *held);
        let Some(standing) = now else {
            behind = true;
            continue;
        };
        asked = asked.or(standing.asked);
        accepted = accepted.or(standing.accepted);
        exempt = exempt.or(standing.exempt);
        if let Some(found) = &standing.trouble {
            let state = match found.reason {
                Reason::Host => ReleaseState::Host,
                Reason::Content => ReleaseState::Rejected,
            };
            if trouble.as_ref().is_none_or(|(held, _)| *held < state) {
                let told = ReleaseTrouble {
                    client: node_id.to_owned(),
                    type_url: found.kind.url().to_owned(),
                    resource: found.name.to_string(),
                    error: found.message.to_string(),
                };
                trouble = Some((state, told));
            }
        }
    }
    if let Some((state, trouble)) = trouble {
        return Some((state, Some(trouble)));
    }
    let needed = if streams.iter().all(|stream| stream.is_grpc) {
        if asked.is_empty() && !behind {
            return None;
        }
        asked
    } else {
        let types: BTreeSet<ResourceType> =
            streams.iter().flat_map(|stream| &stream.types).copied().collect();
        needed(held, &types).minus(exempt)
    };
    let state =
        if behind || !needed.are_in(accepted) { ReleaseState::Pending } else { ReleaseState::Accepted };
    Some((state, None))
}

/// What an Envoy has to accept that has asked for these types. Without listeners from here it takes nothing
/// that belongs to them. But clusters and routes every Envoy has to take: one that has not asked for them yet
/// is about to.
fn needed(held: &Held, types: &BTreeSet<ResourceType>) -> Parts {
    let takes_listeners = types.contains(&ResourceType::Listener);
    let not_needed = |part: PartKind| match part {
        PartKind::Listener | PartKind::Routes => !takes_listeners,
        PartKind::Secret => !takes_listeners && !types.contains(&ResourceType::Secret),
        PartKind::Cluster | PartKind::Piece => false,
    };
    let parts = held.parts.iter().enumerate().filter(|(_, part)| not_needed(part.kind));
    parts.fold(Parts::first(held.parts.len()), |needed, (index, _)| needed.without(index))
}

impl ReleaseStatus {
    /// As it is reported.
    pub fn to_proto(&self) -> v1::HeldRelease {
        let trouble = self.trouble.clone().unwrap_or_default();
        v1::HeldRelease {
            service: self.service.clone(),
            release: self.release.clone().unwrap_or_default(),
            state: self.state.to_proto().into(),
            client: trouble.client,
            type_url: trouble.type_url,
            resource: trouble.resource,
            error: trouble.error,
        }
    }
}

impl ReleaseState {
    /// As it is called on pages.
    pub fn as_str(self) -> &'static str {
        self.to_proto().as_str_name().trim_start_matches("STATE_")
    }

    fn to_proto(self) -> v1::held_release::State {
        match self {
            Self::Applied => v1::held_release::State::Applied,
            Self::Accepted => v1::held_release::State::Accepted,
            Self::Pending => v1::held_release::State::Pending,
            Self::Host => v1::held_release::State::Host,
            Self::Rejected => v1::held_release::State::Rejected,
            Self::Unknown => v1::held_release::State::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
