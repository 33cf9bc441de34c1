//! State of the world: each request lists everything that is wanted.
//!
//! Sources: xDS protocol, "Basic Protocol Overview" to "Deleting Resources", and what an Envoy does on
//! the wire.

use std::{collections::BTreeSet, sync::Arc};

use tower_common::view::{Layer, XdsResource};
use tower_proto::envoy::{
    envoy::{
        config::core::v3::{ControlPlane, Node},
        service::discovery::v3::{DiscoveryRequest, DiscoveryResponse},
    },
    google::protobuf::Any,
};

use super::{
    channel::Channel,
    kind::{Mode, ResourceType},
    protocol::{Answer, Limits, Protocol, Refusal, check_names},
    selection::{Batch, Selection},
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

    fn tells_removals(kind: ResourceType) -> bool {
        // For the others "leaving a name out" of a response says nothing.
        kind.is_whole()
    }

    fn select(
        channel: &Channel,
        layer: &Layer,
        _complete: bool,
        news: Option<&BTreeSet<Arc<str>>>,
    ) -> Option<Selection> {
        if channel.kind.is_whole() { whole(channel, layer, news) } else { part(channel, layer, news) }
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
fn whole(channel: &Channel, layer: &Layer, news: Option<&BTreeSet<Arc<str>>>) -> Option<Selection> {
    let asked = channel.must_answer || channel.due.iter().any(|name| layer.contains_key(name));
    let changed = news.is_some_and(|news| !news.is_empty());
    (asked || changed).then(|| Selection::whole(channel.wanted(layer).cloned().collect()))
}

/// What is to be sent of the names that are wanted and exist.
fn part(channel: &Channel, layer: &Layer, news: Option<&BTreeSet<Arc<str>>>) -> Option<Selection> {
    let mut selection = Selection::default();
    for name in channel.names_to_send(news) {
        if let Some(resource) = layer.get(name) {
            selection.add(name, Some(resource));
        }
    }
    selection.non_empty()
}
