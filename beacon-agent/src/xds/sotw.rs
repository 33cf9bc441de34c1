//! State of the world: each request lists everything that is wanted.
//!
//! Sources: xDS protocol, "Basic Protocol Overview" to "Deleting Resources", and what an Envoy does on
//! the wire.

use std::collections::BTreeSet;

use tower_common::view::{Layer, XdsResource};
use tower_proto::envoy::{
    envoy::{
        config::core::v3::{ControlPlane, Node},
        service::discovery::v3::{DiscoveryRequest, DiscoveryResponse},
    },
    google::protobuf::Any,
};

use super::{
    channel::{Batch, Channel, Selection},
    kind::Mode,
    protocol::{Answer, Limits, Protocol, Refusal, check_names},
};

/// State of the world.
#[derive(Debug)]
pub(super) enum Sotw {}

impl Protocol for Sotw {
    const MODE: Mode = Mode::Sotw;
    const NAMES_FIELD: &'static str = "resource_names";
    type Request = DiscoveryRequest;
    type Response = DiscoveryResponse;

    fn take_node(request: &mut Self::Request) -> Option<Node> {
        request.node.take()
    }

    fn type_url(request: &Self::Request) -> &str {
        &request.type_url
    }

    fn check(request: &Self::Request, limits: &Limits) -> Result<(), Refusal> {
        if !request.resource_locators.is_empty() {
            return Err(Refusal::Locators { field: "resource_locators" });
        }
        check_names(Self::NAMES_FIELD, &request.resource_names, limits)
    }

    fn receive(channel: &mut Channel, request: Self::Request, first: bool) -> Option<Answer> {
        let DiscoveryRequest { resource_names, response_nonce: nonce, error_detail, version_info, .. } =
            request;
        let newest = channel.ledger.newest();
        let Some((newest, version)) = newest.filter(|_| !first && !nonce.is_empty()) else {
            // The first request "starts fresh", whatever it says of other streams. Without a nonce it
            // says nothing of a response.
            let change = channel.subscription.replace(resource_names);
            channel.apply(&change);
            if first && !version_info.is_empty() && channel.kind.is_whole() {
                // It has something from an earlier stream, and learns by an omission only that it is gone.
                channel.must_answer |= !channel.subscription.is_empty();
            }
            return None;
        };
        if newest.to_string() != nonce {
            // Of a response before the newest: what it says of that response is news, its list of names
            // is older than what the client will say next ("stale").
            return Some(channel.settle(&nonce, error_detail).unwrap_or(Answer::Stale));
        }
        let failed = error_detail.clone();
        let answer = channel.settle(&nonce, error_detail);
        let change = channel.subscription.replace(resource_names);
        channel.apply(&change);
        if let (None, Some(status)) = (&answer, failed.clone()) {
            return Some(Answer::Nack { nonce, version: version.to_string(), status });
        }
        if answer.is_none() && failed.is_none() && change.is_empty() && !channel.kind.is_whole() {
            // Nothing is open, and nothing has changed: the client has lost what it had. An Envoy asks
            // like this after a cluster or listener was replaced, and waits for the answer.
            channel.due.extend(channel.subscription.names().iter().cloned());
        }
        answer
    }

    fn tidy(channel: &mut Channel, layer: &Layer) {
        // Leaving a name out of a response says nothing for these types, so the client still has it; but
        // what is created again is sent again.
        if !channel.kind.is_whole() {
            channel.ledger.retain(|name| layer.contains_key(name));
        }
    }

    fn select(channel: &Channel, layer: &Layer, _complete: bool, content: bool) -> Option<Selection> {
        if channel.kind.is_whole() { whole(channel, layer, content) } else { part(channel, layer, content) }
    }

    fn response(batch: Batch, identifier: &str) -> Self::Response {
        let type_url = batch.kind.url();
        let any =
            |resource: &XdsResource| Any { type_url: type_url.to_owned(), value: resource.body.to_vec() };
        DiscoveryResponse {
            version_info: batch.version.to_string(),
            resources: batch.resources.iter().map(any).collect(),
            type_url: type_url.to_owned(),
            nonce: batch.nonce.to_string(),
            control_plane: Some(ControlPlane { identifier: identifier.to_owned() }),
            ..Default::default()
        }
    }
}

/// Everything that is wanted, changed or not, in one message: what is missing is gone.
fn whole(channel: &Channel, layer: &Layer, content: bool) -> Option<Selection> {
    let asked = channel.must_answer || channel.due.iter().any(|name| layer.contains_key(name));
    if !(asked || content && differs_as_a_whole(channel, layer)) {
        return None;
    }
    Some(Selection::whole(channel.wanted(layer).cloned().collect()))
}

fn differs_as_a_whole(channel: &Channel, layer: &Layer) -> bool {
    let ledger = &channel.ledger;
    let mut count = 0;
    for resource in channel.wanted(layer) {
        count += 1;
        if ledger.differs(&resource.name, Some(resource)) {
            return true;
        }
    }
    // If each of them is known, the same number means the same names.
    count != ledger.len()
}

/// What is to be sent of the names that are wanted and exist.
fn part(channel: &Channel, layer: &Layer, content: bool) -> Option<Selection> {
    let ledger = &channel.ledger;
    let differs = |resource: &XdsResource| content && ledger.differs(&resource.name, Some(resource));
    let mut doubtful = BTreeSet::new();
    // What was rejected is not sent along with a mere answer, which it might spoil.
    if channel.wanted(layer).any(|resource| differs(resource) && !channel.due.contains(&resource.name)) {
        doubtful.extend(ledger.doubtful());
    }
    let mut selection = Selection::default();
    for resource in channel.wanted(layer) {
        let name = &resource.name;
        if channel.due.contains(name) || differs(resource) || doubtful.contains(name) {
            selection.add(name, Some(resource));
        }
    }
    selection.non_empty()
}
